--- Plans: a plan holds the kernel of a configuration and its prepared launches.
--
--     local plan = plans.new(p, c, call)   -- a problem, its candidate, a call
--     local D, ... = plan:run(call, ready)
--
-- A call is {A, B, C, o, alpha, beta, f, captured, out, at}. A, B, C are the
-- operands and o the options; alpha and beta are nil if they have no effect. f
-- is the epilogue, captured the values that it captures, and out a list of
-- tensors for results. `at` maps the name of an argument that may contain
-- numbers to its index among the arguments that identify the call
-- (cute.ops.calls). Grouped calls also have `where`, their offsets or counts.
local core = require "cute.core"
local cute = require "cute"
local calls = require "cute.ops.calls"
local choose = require "cute.ops.choose"
local elementwise = require "cute.ops.elementwise"
local epilogue = require "cute.ops.epilogue_function"
local families = require "cute.ops.families"
local formats = require "cute.ops.formats"
local operand = require "cute.ops.operand"
local partial = require "cute.ops.partial"
local prepared = require "cute.ops.family.prepared"
local reduce = require "cute.ops.reduce"
local report = require "cute.lang.report"
local tiles = require "cute.tiles"

local plans = {}

-- The module of package cutelua that describes plans.
local workshop = require "cute.lang.signature".extensible("workshop", {},
                                                          "explained")

local fail = operand.fail

---------------------------------------------------------------------------
-- Plans
---------------------------------------------------------------------------

local MATRICES = {"A", "B", "D"}

local Plan = {}
Plan.__index = Plan

-- Describes a result r of the epilogue as {shape =, dtype =}. For a reduction,
-- adds the extents of the partial results and the operation that reduces them.
local function result(plan, p, c, r)
  local shape, b = {}, #p.batch
  for i = 1, b do shape[i] = p.shape[i] end
  if r.kind == "tile" then return {shape = p.shape, dtype = r.dtype} end
  local how = {mma = plan.mma, tile = plan.tile, m = p.m, n = p.columns}
  local kind = r.kind
  if c.swap then
    how.m, how.n = p.columns, p.m
    kind = epilogue.TURNED[kind]
  end
  local rows, parts = partial.extents(how, kind)
  local count = r.kind == "row" and p.columns or r.kind == "col" and p.m
    or p.m * p.columns * p.batches
  local all = r.kind == "all"
  if all then shape = {1} else shape[b + 1] = rows end
  return {shape = shape, dtype = cute.f32, rows = rows, parts = parts,
          all = all, op = r.op, count = count,
          floats = rows * parts * p.batches}
end

-- Assigns places in the work memory to the repacked matrices `to`, after the
-- first `floats` elements, which have other uses. Returns the places by name,
-- and the total size in f32 elements.
local function placed(to, floats)
  local list = {}
  for _, name in ipairs(to and MATRICES or {}) do
    local t = to[name]
    if t then
      local bits = cute.cosize(t.layout) * t.element_type.bits
      local x = {at = tiles.count(floats, 64) * 64, dtype = t.element_type,
                 n = tiles.count(bits, 2048) * 64, layout = t.layout}
      list[name], floats = x, x.at + x.n
    end
  end
  return list, floats
end

--- Returns the plan for a call with problem p. The plan uses the best
-- candidate. If D is empty, the plan has no kernel.
function plans.of(p, call)
  if cute.product(p.shape) == 0 then return plans.empty(p) end
  return plans.new(p, choose.must(p), call)
end

--- Makes a plan that computes problem p with candidate c.
function plans.new(p, c, call)
  local ending = epilogue.new(p, c, call)
  c.options.epilogue = ending.finish
  c.options.pdl = calls.dependent(p.device)
  local plan = setmetatable(families.of(c.base).make(p, c), Plan)
  plan.device, plan.place = p.device, p.place
  plan.batch, plan.batches = p.batch, p.batches
  -- The batch modes of A and D. Groups of rows have no batch modes.
  plan.rows = p.ragged == "rows" and {} or p.batch
  plan.ending, plan.ready = ending, {}
  plan.results = {{shape = p.shape, dtype = p.d}}
  for i = 2, #(p.results or {}) do
    plan.results[i] = result(plan, p, c, p.results[i])
  end
  local sums = plan.sums or 0
  for _, r in ipairs(plan.results) do
    if r.floats then
      r.at, sums = sums, sums + r.floats
      r.folds = partial.folds(r, p.batches, plan.pdl)
    end
  end
  plan.moved, plan.floats = placed(c.moved, sums)
  return plan
end

-- Returns the extents of a result r of the epilogue if D is empty.
local function extents_of(p, r)
  local b, shape = #p.shape - 2, {}
  if r.kind == "tile" then return p.shape elseif r.kind == "all" then
    return {1}
  end
  for i = 1, b do shape[i] = p.shape[i] end
  shape[b + 1] = p.shape[r.kind == "row" and b + 1 or b + 2]
  return shape
end

local Empty = setmetatable({}, {__index = Plan})
Empty.__index = Empty

--- Makes a plan for a problem with an empty D. Reductions then yield the result
-- of a reduction over no elements.
function plans.empty(p)
  local plan = setmetatable({place = p.place, device = p.device, fills = {},
                             results = {{shape = p.shape, dtype = p.d}}}, Empty)
  for i = 2, #(p.results or {}) do
    local r = p.results[i]
    local shape = extents_of(p, r)
    plan.results[i] = {shape = shape, dtype = r.dtype or cute.f32, op = r.op}
    if r.op and cute.product(shape) > 0 then
      plan.fills[i] = reduce.of_nothing(fail, r.op, ("D is (%s)"):format(
        table.concat(p.shape, ",")))
    end
  end
  return plan
end

function Empty:run(call)
  local out = self:outputs(call)
  for i, value in pairs(self.fills) do
    for _, step in ipairs(elementwise.filling(out[i], value, cute.f32,
      call.o)) do
      calls.launch(step, step.arguments(nil, {out[i]}),
                   {device = self.device, stream = call.o.stream})
    end
  end
  return table.unpack(out)
end

-- Returns the memory that the blocks of a call share: sums and counters. Also
-- returns whether the counters belong to the graph that is being captured.
function Plan:memory(call)
  local work = self.floats > 0 and calls.work(self.place, self.floats) or nil
  if not self.counts then return work end
  local turns, alone = calls.counts(self.device, self.place, call.o.stream,
                                    self.counts)
  return work, prepared.view(turns, self.counts), alone
end

-- Returns two lists: all tensors for the results (from the call, or new), and
-- only the new ones.
function Plan:outputs(call)
  local out, made = {}, {}
  for i, r in ipairs(self.results) do
    local given = call.out[i]
    if given and i > 1 then
      local same = cute.rank(given) == #r.shape
      for mode, extent in ipairs(r.shape) do
        same = same and cute.size(given, mode - 1) == extent
      end
      if not same then
        fail("out %d is %s, but result %d has extents (%s)", i, given.layout, i,
             table.concat(r.shape, ","))
      end
      operand.check_strides("out " .. i, given, r.op and 1 or 2)
    end
    out[i] = given or calls.empty(r.shape, r.dtype, self.place)
    if not given then made[#made + 1] = out[i] end
  end
  return out, made
end

-- Returns matrix t of a call in the layout that kernels accept. If the matrix
-- must be repacked, returns its repacked copy in `work`.
local function seen(plan, name, t, batch, work)
  local to = plan.moved[name]
  if not to then
    return core.typename(t) == "tensor" and operand.matrix(t, batch) or nil
  end
  local part = cute.make_tensor(work.iterator + to.at, cute.make_layout {to.n})
  return cute.make_tensor(cute.recast_tensor(part, to.dtype).iterator,
                          to.layout)
end

-- Returns matrix t with its leaves (undivided parts of modes) as top-level
-- modes, for copying. Omits leaves along which the repacked copy `moved` has
-- stride 0, so that each element is copied once.
local function each_once(t, moved)
  local shape, stride = {}, {}
  local extents, far = cute.flatten_to_tuple(t.shape),
    cute.flatten_to_tuple(t.stride)
  for i, d in ipairs(cute.flatten_to_tuple(moved.layout.stride)) do
    if d ~= 0 then
      shape[#shape + 1], stride[#stride + 1] = extents[i], far[i]
    end
  end
  return cute.make_tensor(t.iterator, cute.make_layout(shape, stride))
end

-- Returns a step (launch) that repacks matrix `name` by copying `from` to `to`,
-- with its arguments. One of the two is in the work memory. Elements of 4 bits
-- are copied as bytes, unless they become elements of 8 bits.
local function moving(plan, name, from, to)
  local m = plan.moved[name]
  from, to = each_once(from, m), each_once(to, m)
  if from.element_type.bits < 8 and m.dtype.bits == 8 then
    local step, arguments = formats.widening(from, to)
    m.step = m.step or step
    return {m.step, arguments}
  elseif m.dtype.bits < 8 then
    from = cute.recast_tensor(from, cute.u8)
    to = cute.recast_tensor(to, cute.u8)
  end
  m.step = m.step or elementwise.converting(from, to)
  return {m.step, m.step.arguments({operands = {from}}, {to})}
end

--- Returns all arguments of a plan's kernel for a call. `out` has the tensors
-- for the results. `work` (sums) and `turns` (counters) are memory that blocks
-- share.
function Plan:arguments_of(call, out, work, turns)
  local batch, C = self.batch, call.C
  local list = self.arguments(seen(self, "A", call.A, self.rows, work),
    seen(self, "B", call.B, batch, work),
    seen(self, "D", out[1], self.rows, work),
    self.sums and prepared.view(work, self.sums), turns, call)
  self.ending.more(list, C and operand.matrix(C, batch), call)
  for i = 2, #out do
    local r = self.results[i]
    list.n = list.n + 1
    list[list.n] = r.floats and cute.make_tensor(work.iterator + r.at,
      cute.make_layout {r.rows, r.parts, self.batches})
      or operand.matrix(out[i], batch)
  end
  if self.space then
    list.n = list.n + 1
    list[list.n] = self.space(work, turns, call)
  end
  return list
end

-- Returns the steps (launches) of a call with their arguments: those that
-- repack matrices and factors, and the kernel. The steps that reduce partial
-- results are not included.
function Plan:launches(call, out, work, turns)
  local list = {}
  for _, name in ipairs {"A", "B"} do
    if self.moved[name] then
      local t = operand.matrix(call[name], self.batch)
      list[#list + 1] = moving(self, name, t, seen(self, name, t, nil, work))
    end
  end
  for _, l in ipairs(self.before and self.before(call, work) or {}) do
    list[#list + 1] = l
  end
  list[#list + 1] = {self, self:arguments_of(call, out, work, turns)}
  if self.moved.D then
    list[#list + 1] = moving(self, "D", seen(self, "D", nil, nil, work),
                             operand.matrix(out[1], self.batch))
  end
  return list
end

-- Raises an error if results of a call overlap operands or each other.
local function check_memory(call, out)
  local B, o = call.B, call.o
  for i, D in ipairs(out) do
    local what = i == 1 and "out" or "out " .. i
    if i > 1 then operand.check_apart(what, D) end
    operand.check_shared("A", call.A, D, what)
    operand.check_shared("B", type(B) == "table" and B.packed or B, D, what)
    if call.where then
      operand.check_shared(cute.rank(call.A) == 3 and "counts" or "offsets",
                           call.where, D, what)
    end
    if call.C then operand.check_shared("C", call.C, D, what, true) end
    for _, name in ipairs {"scale_a", "scale_b", "zeros"} do
      if core.typename(o[name]) == "tensor" then
        operand.check_shared(name, o[name], D, what)
      end
    end
    for _, v in ipairs(call.captured and call.captured.values or {}) do
      if core.typename(v) == "tensor" then
        operand.check_shared("a tensor of the epilogue", v, D, what, true)
      end
    end
    for j = 1, i - 1 do operand.check_shared("out " .. j, out[j], D, what) end
  end
end

-- Prepares a launch of a step with these arguments.
local function made_ready(plan, call, step, list)
  local ready, why = step.kernel(table.unpack(list, 1, list.n)):compile {
    grid = step.grid, block = step.block, cluster = step.cluster,
    pdl = step.pdl, device = plan.device, stream = call.o.stream}
  if not ready then report.raise(why) end
  return ready
end

--- Prepares the launch of a call that stores to the tensors `out`. Does not
-- include the steps that reduce partial results.
function Plan:prepare(call, out)
  check_memory(call, out)
  local work, turns = self:memory(call)
  local list = {}
  for i, l in ipairs(self:launches(call, out, work, turns)) do
    list[i] = made_ready(self, call, l[1], l[2])
  end
  if #list == 1 then return list[1] end
  return {launch = function()
    for _, ready in ipairs(list) do ready:launch() end
  end}
end

-- Launches the steps that repack matrices, the kernel, and the steps that
-- reduce partial results. Returns the launches as a list for known:ready
-- (cute.ops.calls).
function Plan:launch(call, out, work, turns)
  local plain = {device = self.device, stream = call.o.stream,
                 seed = call.o.seed}
  local own = {device = self.device, stream = call.o.stream,
               seed = call.o.seed, captured = call.captured}
  local run = {steps = {}}
  for i, l in ipairs(self:launches(call, out, work, turns)) do
    local is_own = l[1] == self
    local reads
    run.steps[i], reads = calls.launch(l[1], l[2], is_own and own or plain,
      is_own and function()
        check_memory(call, out)
        if call.captured then self.ending.take(call.captured) end
      end or nil)
    run.reads = run.reads or reads
  end
  for i, r in ipairs(self.results) do
    for _, fold in ipairs(r.folds or {}) do
      local function part(layout)
        return cute.make_tensor(work.iterator + r.at, layout)
      end
      local Y = fold.Y and part(fold.Y) or operand.flat(out[i],
        r.all and 1 or self.batches)
      run.steps[#run.steps + 1] = calls.launch(fold, {part(fold.P), Y, n = 2},
                                               plain)
    end
  end
  return run
end

--- Launches all kernels of the plan and returns the results. Passes the
-- launches to `ready`, which records them for later calls with the same
-- configuration.
---@param call table
---@param ready fun(run: table)
function Plan:run(call, ready)
  local out, made = self:outputs(call)
  local work, turns, alone = self:memory(call)
  local ok, run = pcall(self.launch, self, call, out, work, turns)
  -- After an error, the counters of the device may differ from 0.
  if not ok then
    calls.failed(self.place)
    error(run, 0)
  end
  if #run.steps > 0 and not alone then
    run.made, run.work, run.alone = made, work, turns ~= nil
    ready(run)
  end
  if work then work:close() end
  return table.unpack(out)
end

--- Returns the plan's kernel, traced for a call.
function Plan:trace(call)
  local list = self:arguments_of(call, self:outputs(call), self:memory(call))
  return self.kernel(table.unpack(list, 1, list.n)):trace {
    block = self.block, cluster = self.cluster, arch = self.device.arch}
end

--- Describes a call's plan, as the function of the same name in
-- cutelua.text.choice.
---@param p table the call's problem
---@param call table
function plans.explained(p, call)
  if cute.product(p.shape) == 0 then
    fail("D is (%s): it has no elements, and nothing is launched",
         table.concat(p.shape, ","))
  end
  local explained = workshop.explained(p, call)
  return explained
end

return plans
-- SPDX-License-Identifier: MIT
