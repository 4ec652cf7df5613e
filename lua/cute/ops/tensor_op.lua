--- Common parts of operations on whole tensors: checks of options and operands,
-- device, results, launches.
--
-- A plan has these fields: device; place; results = {{shape =, order = a layout
-- or nil, dtype =}}; steps = {{kernel, grid, block, ready = {}, arguments =
-- function(call, out, work, turns)}}, one for each launch; floats, the number
-- of f32 elements in the memory `work` that the steps share; counts, the number
-- of i32 counters `turns`, which are 0 between launches. A call is {operands, o
-- = options, out = tensors given for results, captured = the values that a
-- function captures (cute.ops.capture)}.
local calls = require "cute.ops.calls"
local core = require "cute.core"
local devices = require "cute.lang.devices"
local operand = require "cute.ops.operand"
local report = require "cute.lang.report"

local tensor_op = {}

--- Returns a function that raises errors about the arguments of operation
-- `what`.
---@param what string such as "ops.reduce"
function tensor_op.failing(what)
  return function(text, ...)
    core.fail("bad-argument", what .. ": " .. text:format(...))
  end
end

-- Options that all operations have.
local COMMON = {out = "tensor table", dtype = "dtype string",
                device = "string table device", arch = "string",
                stream = "stream table", seed = "integer"}

--- Raises an error for an unknown option, or one with a wrong type.
---@param what string
---@param o table
---@param own? table<string, string> the types of further options, by name
function tensor_op.options(what, o, own)
  local known = {}
  for _, types in ipairs {COMMON, own or {}} do
    for name, want in pairs(types) do known[name] = want end
  end
  operand.check_options(what, known, o)
end

--- Returns a copy of the options `o`, with those of `more` added. Options of
-- `more` replace options of `o` with the same name.
---@param o? table
---@param more? table
function tensor_op.with(o, more)
  local all = {}
  for name, v in next, o or all do all[name] = v end
  for name, v in next, more or all do all[name] = v end
  return all
end

--- Reports whether x is a table of options.
function tensor_op.is_options(x)
  return type(x) == "table" and getmetatable(x) == nil
end

--- Raises an error unless t is a tensor that these operations accept.
---@param narrow? boolean whether elements may have less than 8 bits
function tensor_op.check(fail, name, t, narrow)
  if core.typename(t) ~= "tensor" or t.memspace == "coord" then
    fail("%s is %s; a tensor is needed", name, core.show(t))
  elseif t.layout.is_composed then
    fail("%s is %s; a layout of strides is needed", name, tostring(t.layout))
  elseif t.element_type.bits < 8 and not narrow then
    fail("%s has elements of type %s; elements of 8 bits or more are "
      .. "needed", name,
         tostring(t.element_type))
  end
end

--- Returns three values: the device on which a call runs; the place of its
-- operands' memory, "host" or the name of a device; whether its launches are
-- programmatic dependent launches (cute.ops.calls).
---@param tensors any[]
function tensor_op.device(tensors, o)
  local list = {n = #tensors, table.unpack(tensors)}
  local device, why = devices.pick(core.launch_values(list), o, "auto")
  if not device then report.raise(why) end
  local pdl = calls.dependent(device)
  for _, t in ipairs(tensors) do
    if t.device ~= "host" then return device, t.device, pdl end
  end
  return device, tensors[1].device, pdl
end

--- Returns the type that the options request, or nil. Raises an error if the
-- first output tensor has another type.
---@param what string
function tensor_op.dtype(what, o)
  local dtype = o.dtype and core.find_dtype(tostring(o.dtype)) or nil
  if o.dtype and not dtype then
    tensor_op.failing(what)("dtype = %s; this type does not exist",
                        core.show(o.dtype))
  elseif dtype and dtype.bits < 8 then
    tensor_op.failing(what)("dtype = %s; elements of 8 bits or more are needed",
                        tostring(dtype))
  end
  local out = tensor_op.outputs(o)[1]
  if dtype and core.typename(out) == "tensor" and out.element_type ~= dtype then
    tensor_op.failing(what)("out has type %s, but dtype is %s",
                            tostring(out.element_type), tostring(dtype))
  end
  return dtype
end

--- Returns the tensors that the option `out` gives, as a list.
function tensor_op.outputs(o)
  local out = o.out
  if core.typename(out) == "table" then return out end
  return {out}
end

-- Returns the list of a plan's results: the tensors that the call provides, and
-- new tensors for the other results. Also returns the list of new tensors.
local function results(plan, call)
  local out, made = {}, {}
  for i, r in ipairs(plan.results) do
    out[i] = call.out[i]
    if not out[i] then
      out[i] = calls.empty(r.order or r.shape, r.dtype, plan.place)
      made[#made + 1] = out[i]
    end
  end
  return out, made
end

-- Returns the memory that the steps (launches) of a call share, and its
-- counters. Also returns whether the counters belong to a graph.
local function memory(plan, call)
  local work = plan.floats and calls.work(plan.place, plan.floats)
  if not plan.counts then return work end
  return work, calls.counts(plan.device, plan.place, call.o.stream, plan.counts)
end

--- Returns the kernel of a plan's main step, traced for a call. This is step
-- plan.main, by default the first one.
function tensor_op.trace(plan, call)
  local step, work, turns = plan.steps[plan.main or 1], memory(plan, call)
  local list = step.arguments(call, results(plan, call), work, turns)
  return step.kernel(table.unpack(list, 1, list.n)):trace {
    block = step.block, cluster = step.cluster, arch = plan.device.arch}
end

--- Runs the steps (launches) of a plan and returns the results. Passes the
-- launches to `ready`, which records them for later calls with the same
-- configuration. If the plan has `anew`, its steps make new tensors in each
-- call, and the launches are not recorded.
---@param plan table
---@param call table
---@param ready fun(run: table)
function tensor_op.run(plan, call, ready)
  local out, made = results(plan, call)
  local work, turns, alone = memory(plan, call)
  local o = {device = plan.device, stream = call.o.stream, seed = call.o.seed,
             captured = call.captured}
  local run = {steps = {}, made = made, work = work, alone = turns ~= nil}
  for i, step in ipairs(plan.steps) do
    local reads
    run.steps[i], reads = calls.launch(step,
      step.arguments(call, out, work, turns), o,
      plan.check and function() plan.check(call, out) end)
    run.reads = run.reads or reads
  end
  if #run.steps > 0 and not plan.anew and not alone then ready(run) end
  if work then work:close() end
  return table.unpack(out)
end

return tensor_op
-- SPDX-License-Identifier: MIT
