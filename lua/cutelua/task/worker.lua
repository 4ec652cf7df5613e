--- A process that runs a candidate. It receives inputs, and returns the outputs
-- and the simulator's findings. The expected outputs, the other inputs, and the
-- clocks that measure the candidate are in the referee's process, where the
-- candidate cannot reach them.
--
-- The request is one line of JSON: {name =, text = the candidate, launch = text
-- of a LAUNCH file for PTX?, args = {{name =, dtype =, shape =, out =}, ...},
-- sizes =, calls = {{seed =, inputs = {name = hex}}, ...}, check = seconds?,
-- estimate = name of a card?, graph = {device =, timed =, rival = text?}?,
-- memory = bytes, nonce =}. With `graph`, the worker runs a graph of the first
-- call on a device. The answer has two frames (cutelua.mcp.calls): a record of
-- findings, with the field `evidence`, and the exit code.
local calls = require "cutelua.mcp.calls"
local core = require "cute.core"
local cute = require "cute"
local check = require "cutelua.check"
local devices = require "cute.lang.devices"
local errors = require "cutelua.text.errors"
local estimate = require "cutelua.profile.estimate"
local findings = require "cutelua.findings"
local guard = require "cutelua.task.guard"
local hex = require "cutelua.task.hex"
local json = require "cutelua.text.json"
local kernel = require "cute.lang.kernel"
local launches = require "cutelua.task.launches"
local ptx = require "cutelua.task.ptx"
local source = require "cute.lang.source"
local sys = require "cute.sys"

local worker = {}

-- The error that ends a candidate after the simulator found a fault.
local STOP = {}

---------------------------------------------------------------------------
-- Arguments
---------------------------------------------------------------------------

-- Makes the tensors of all arguments. All calls use the same tensors.
local function arguments(request)
  local list, fields = {}, {}
  for name, n in pairs(request.sizes) do fields[name] = n end
  for i, arg in ipairs(request.args) do
    local n = 1
    for _, extent in ipairs(arg.shape) do n = n * extent end
    local buffer = core.buffer(arg.dtype, n)
    list[i] = {name = arg.name, out = arg.out, buffer = buffer, count = n,
      dtype = arg.dtype, size = buffer.nbytes}
    fields[arg.name] = core.make_tensor(buffer,
      cute.make_layout(arg.shape, cute.LayoutRight))
  end
  return list, fields
end

-- The byte with which `fill` may fill outputs before a call. A correct result
-- of any type very probably differs from this pattern.
local ODD = "\x5b"

-- Sets the inputs to their contents for a call. Outputs become undefined or, if
-- `odd` is true, get the pattern of ODD. The pattern shows which elements a
-- candidate leaves unwritten, even if it declares them as undefined_ok.
local function fill(list, call, odd)
  for _, a in ipairs(list) do
    if a.out and odd then
      a.buffer:set_bytes(ODD:rep(a.size))
    elseif a.out then
      a.buffer:copy(core.buffer(a.dtype, a.count))
    else
      local text = call.inputs[a.name]
      if text then a.buffer:set_bytes(hex.decode(text))
      else a.buffer:fill_normal(1) end
      a.given = a.buffer:bytes()
    end
  end
end

---------------------------------------------------------------------------
-- Runs
---------------------------------------------------------------------------

-- Returns the report for a launch that was not run.
local function nothing()
  return {ok = true, reports = {}, relies = {}, lines = {}, output = "",
          instructions = 0, ctas = 0}
end

-- Returns the function that runs a candidate's launches on the simulator.
local function runner(request, log, collector, result)
  local checked, launched = {}, 0
  return function(program, launch)
    local note = log:before(program, launch)
    launch.seed = result.seed
    if request.estimate then
      result.seconds = result.seconds + estimate.of(
        estimate.launched(program, launch),
        {card = request.estimate, cold = true}).seconds
      return nothing()
    end
    launched = launched + 1
    if request.check and not checked[note.key] then
      checked[note.key] = true
      local v = check.launch(program, launch,
        {gpu = false, mend = true, seconds = request.check})
      v.launch = launched
      collector:verdict(v, program, launch)
      if v.verdict == "bug" then error(STOP, 0) end
    end
    local found = core.sim_run(program.fn, launch)
    collector:launched(program, launch, found)
    log:after(program, launch, found.instructions)
    return found
  end
end

-- Returns the candidate's function; raises an error if the candidate's text
-- does not return one.
local function load_candidate(request, env)
  local chunk = "@" .. request.name
  source.add(chunk, request.text)
  if request.launch then return ptx.candidate(request) end
  local f, why = load(request.text, chunk, "t", env)
  if not f then error(why, 0) end
  local run = f()
  if type(run) ~= "function" then
    core.fail("bad-argument", ("the candidate %s returned %s, where a function "
      .. "of the task's arguments is needed"):format(request.name,
      core.show(run)))
  end
  return run
end

-- Raises an error about a value that a candidate's function returned.
local function reject_result(x, list)
  local out
  for _, a in ipairs(list) do out = out or a.out and a.name end
  local is = core.typename(x) == "tensor"
    and "a tensor of shape " .. tostring(x.shape) or core.show(x)
  core.fail("shape-mismatch", ("the candidate returned %s: it must write its "
    .. "results to %s and return nothing"):format(is, out))
end

-- Runs all calls; returns their outputs.
local function run_calls(request, env, watch, log, result)
  local run = load_candidate(request, env)
  log:loaded()
  local list, fields = arguments(request)
  log:watch(list)
  for i, call in ipairs(request.calls) do
    local last = i > 1 and i == #request.calls
    fill(list, call, last)
    log:start(last)
    result.seed = call.seed
    local x = run(watch:arguments(fields))
    if x ~= nil then reject_result(x, list) end
    log:finish()
    local out = {}
    for _, a in ipairs(list) do
      if a.out and not request.estimate then
        out[a.name] = hex.encode(a.buffer:bytes())
      end
    end
    result.outputs[i] = out
  end
end

-- Runs the candidate on a device by a graph; also times it if the request says
-- so.
local function run_graph(request, env, watch, result)
  local timing = require "cutelua.task.timing"
  local o = request.graph
  local list, fields = arguments(request)
  fill(list, request.calls[1])
  local rival = o.rival
    and load_candidate({name = "rival.lua", text = o.rival}, env)
  local outputs, times = timing.run(load_candidate(request, env), watch, fields,
    list, {device = o.device, timed = o.timed, rival = rival})
  result.times = times
  result.outputs[1] = {}
  for name, bytes in pairs(o.timed and {} or outputs) do
    result.outputs[1][name] = hex.encode(bytes)
  end
end

--- Runs the request that arrives on standard input; returns the exit code.
function worker.main()
  io.stdout:setvbuf "line"
  local request = json.decode(io.read "L" or "")
  if not request then return 1 end
  local watch, result = guard.new(), {outputs = {}, seconds = 0}
  local log = launches.new()
  local collector = findings.new("task", request.name)
  local env = watch:globals()
  devices.simulates = not request.graph or request.graph.device == "sim"
  if not request.graph then
    kernel.runner = {run = runner(request, log, collector, result)}
    local ok, why = sys.limit(request.memory, false)
    if not ok then
      error(("the limits cannot be set: %s [io]"):format(why), 0)
    end
  end
  local ok, failure = sys.call(function()
    if request.graph then return run_graph(request, env, watch, result) end
    return run_calls(request, env, watch, log, result)
  end, errors.capture)
  if not ok and failure.value ~= STOP then collector:failed(failure) end
  local record = collector:record(ok and 0 or 1)
  record.evidence = log:evidence()
  record.evidence.attempts = watch.attempts
  record.evidence.outputs = result.outputs
  record.evidence.seconds = request.estimate and result.seconds
  record.evidence.times = result.times
  io.stdout:flush()
  calls.frame(request.nonce, {kind = "record", record = record})
  calls.frame(request.nonce, {kind = "exit", code = ok and 0 or 1})
  return 0
end

return worker
-- SPDX-License-Identifier: MIT
