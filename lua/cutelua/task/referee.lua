--- Judges a candidate for a task: runs it in separate processes, compares its
-- outputs with the reference, looks for cheats, and scores its speed.
local bounded = require "cutelua.task.bounded"
local calls = require "cutelua.mcp.calls"
local cards = require "cutelua.profile.cards"
local cheats = require "cutelua.task.cheats"
local core = require "cute.core"
local folder = require "cutelua.task.folder"
local hex = require "cutelua.task.hex"
local sys = require "cute.sys"

local referee = {}

-- The allowed error of an output, as a multiple of the derived bound. A
-- candidate may compute another formula than the reference, with other rounding
-- errors.
local SLACK = 2

-- The largest number of bytes that a candidate may print in one process.
local OUTPUT = 1 << 16

---------------------------------------------------------------------------
-- Processes
---------------------------------------------------------------------------

-- Runs a request in a new process; returns the outcome (see cutelua.mcp.calls).
local function ask(request, seconds)
  local set, outcome = calls.new(1, "task"), nil
  local call = {request = request, seconds = seconds, grace = 0,
    output = OUTPUT, done = function(o) outcome = o end}
  set:add(call)
  while not outcome do
    if sys.poll({call.process}, set:patience(0.5)) then set:receive(call) end
    if call.cut and not outcome then
      set:cancel(call)
      outcome = {text = "", failed = ("the candidate printed more than %d "
        .. "bytes"):format(OUTPUT)}
    end
    set:expire()
  end
  set:close()
  return outcome
end

-- Returns a request by which a new process runs the candidate with the sizes of
-- a case. It has no calls yet.
local function request_of(task, candidate, case, opts)
  local args = {}
  for i, arg in ipairs(task.args) do
    args[i] = {name = arg[1], dtype = arg[2], out = arg[4] and true,
               shape = (folder.shape(arg, case.sizes))}
  end
  return {name = candidate.name, text = candidate.text,
    launch = candidate.launch, args = args, sizes = case.sizes, calls = {},
    memory = opts.memory, check = case.check}
end

-- Adds a call to a request: the bytes of the call's inputs, and the seed of its
-- schedule.
local function add_call(request, inputs, seed)
  local given = {}
  for name, b in pairs(inputs) do given[name] = hex.encode(b:bytes()) end
  table.insert(request.calls, {inputs = given, seed = seed})
end

---------------------------------------------------------------------------
-- Comparison
---------------------------------------------------------------------------

-- Reports whether an output is right: it differs from the expected value by at
-- most `slack` (SLACK when absent) times its error bound.
local function within(got, want, bound, slack)
  if got == want then return true end
  if bound == math.huge then return got == got end
  return math.abs(got - want) <= (slack or SLACK) * bound
end

-- Returns the coordinate of element i as text.
local function place(shape, i)
  local c = {}
  for k = #shape, 1, -1 do c[k], i = i % shape[k], i // shape[k] end
  return ("(%s)"):format(table.concat(c, ","))
end

-- Compares the outputs of a call with the expected outputs. Returns a table
-- about the first wrong element, or nil if all elements are right. Also returns
-- the largest error of a right element, relative to its allowed error.
local function compare(task, case, got, expected, slack)
  local first, count, of, worst = nil, 0, 0, 0.0
  for _, arg in ipairs(task.out) do
    local name, e = arg[1], expected[arg[1]]
    local b = core.buffer_from(arg[2], got[name])
    of = of + #e.value
    for i = 1, #e.value do
      local x, want, bound = b[i - 1], e.value[i], e.bound[i]
      if type(x) == "boolean" then x = x and 1 or 0 end
      if not within(x, want, bound, slack) then
        count = count + 1
        first = first or {name = name, at = place(folder.shape(arg, case.sizes),
          i - 1), got = x, want = want, bound = SLACK * bound}
      elseif bound > 0 and bound < math.huge then
        worst = math.max(worst, math.abs(x - want) / (SLACK * bound))
      end
    end
  end
  if first then first.count, first.of = count, of end
  return first, worst
end

local function same_outputs(task, a, b)
  for _, arg in ipairs(task.out) do
    if a[arg[1]] ~= b[arg[1]] then return false end
  end
  return true
end

-- Reports whether the expected outputs a and b, which belong to two inputs,
-- differ by more than their error bounds.
local function expectations_vary(task, a, b)
  for _, arg in ipairs(task.out) do
    local x, y = a[arg[1]], b[arg[1]]
    for i = 1, #x.value do
      if not within(x.value[i], y.value[i], x.bound[i] + y.bound[i]) then
        return true
      end
    end
  end
  return false
end

-- Types that may be coarser than the type in which a task computes, the finest
-- first: {type, name in reports}.
local COARSER = {{"f32", "f32"}, {"f16", "f16 or tf32"}, {"bf16", "bf16"}}

-- Wrong outputs fit a coarser type if their errors are at most this many times
-- the errors that are expected of that type.
local LARGEST = 5

-- Returns the name of the coarser type with which the candidate seems to have
-- computed, because its errors explain the wrong outputs. Returns nil if only a
-- few elements are wrong, or if no type explains them.
local function coarse(task, case, inputs, got, wrong)
  if wrong.count < math.max(8, wrong.of // 4) then return nil end
  for _, row in ipairs(COARSER) do
    if bounded.U[row[1]] > bounded.U[task.compute] and not compare(task, case,
        got, task:expected(case, inputs, row[1]), LARGEST) then
      return row[2]
    end
  end
end

---------------------------------------------------------------------------
-- Cases
---------------------------------------------------------------------------

-- For each call of a case, the index of the seed of its inputs. The first
-- inputs are used once, the second inputs twice, then the first inputs again.
-- Each call has another schedule.
local ORDER = {1, 2, 2, 1}

-- Compares the outputs of case c with the expected outputs, and stores the
-- results in c.
local function compare_calls(task, c, inputs, expected)
  local case, first = c.case, nil
  c.varies = expectations_vary(task, expected[1], expected[2])
  for i, out in ipairs(c.facts.outputs) do
    local k, got = ORDER[i], {}
    for name, text in pairs(out) do got[name] = hex.decode(text) end
    first = first or got
    local call = {same = same_outputs(task, got, first)}
    call.wrong, call.error = compare(task, case, got, expected[k])
    if call.wrong then
      call.stale = i == 2 and c.varies
        and not compare(task, case, got, expected[1])
      c.coarse = c.coarse or coarse(task, case, inputs[k], got, call.wrong)
      c.wrong = c.wrong or call.wrong
    end
    c.calls[i] = call
    c.error = math.max(c.error or 0, call.error)
  end
  c.unsteady = c.calls[4] and not c.calls[4].same
end

-- The evidence that is used if a process sent none.
local NOTHING = {attempts = {}, counts = {}, instructions = {}, dead = {},
                 host = {}, changed = {}, outputs = {}, early = 0}

-- Runs a candidate for one case, that is, with its sizes and inputs. Returns
-- the evidence of this run (see cutelua.task.cheats).
local function run_case(task, candidate, case, opts)
  local inputs, expected = {}, {}
  for k, seed in ipairs(case.seeds) do
    inputs[k] = task:inputs(case, seed)
    expected[k] = task:expected(case, inputs[k])
  end
  local request = request_of(task, candidate, case, opts)
  for i, k in ipairs(ORDER) do add_call(request, inputs[k], i) end
  local o = ask(request, opts.seconds)
  local record = o.record
  local c = {case = case, calls = {}, failed = o.failed,
    facts = record and record.evidence or NOTHING,
    findings = record and record.findings or {},
    open = case.check and record and record.not_checked or {},
    verdict = record and record.verdict}
  compare_calls(task, c, inputs, expected)
  if case.check and not c.varies then
    core.fail("bad-argument", ("task %s: the expected outputs are the same for "
      .. "both seeds at %s; they must differ"):format(task.name, case.name))
  end
  c.ok = not (c.failed or c.wrong or c.unsteady or c.verdict == "bug"
    or c.verdict == "error")
  return c
end

---------------------------------------------------------------------------
-- Reasons
---------------------------------------------------------------------------

local function number(x)
  return math.type(x) == "float" and ("%.9g"):format(x) or tostring(x)
end

-- Returns a sentence about wrong outputs. w is the table that compare returned.
local function wrong_text(w)
  return ("%s%s is %s, expected is %s with an error of at most %.3g; %d of "
    .. "%d elements are wrong"):format(w.name, w.at, number(w.got),
    number(w.want), w.bound, w.count, w.of)
end

-- Returns the message of the first finding of a record that is an error; nil
-- if there is none.
local function failure(record)
  for _, f in ipairs(record and record.findings or {}) do
    if f.severity == "error" then return f.message end
  end
end

-- Returns a sentence that says why case c failed, for reasons other than
-- cheats; nil if the case passed.
local function reason(c)
  local why = c.failed or failure(c)
  if why then return why end
  if #c.facts.host > 0 then
    return ("the host wrote %s: kernels must do the work"):format(
      c.facts.host[1])
  elseif c.facts.counts[1] == 0 then
    return "the candidate launched no kernel"
  elseif c.wrong then
    return wrong_text(c.wrong)
  elseif c.facts.other then
    return "what the candidate launches depends on more than the sizes"
  elseif c.unsteady then
    return "two runs of the same inputs differ: the results must not depend on "
      .. "the schedule"
  elseif not c.ok then
    return "the candidate failed"
  end
end

-- Adds the cheat and the reason for a rejection to the verdict.
local function decide(v, cases)
  v.cheat, v.reason = cheats.find(cases)
  for _, c in ipairs(cases) do
    local one = {name = c.case.name, held = c.case.held or false,
                 mask = c.case.mask, error = c.error or 0, reason = reason(c)}
    v.cases[#v.cases + 1] = one
    v.reason = v.reason or one.reason
    for _, o in ipairs(c.verdict == "incomplete" and c.open or {}) do
      if o.what ~= "sizes" then
        v.not_checked[#v.not_checked + 1] = {what = o.what, text = o.text}
      end
    end
    if not v.findings[1] then
      for i, f in ipairs(c.findings) do v.findings[i] = f end
    end
  end
  v.verdict = v.reason and "rejected" or "accepted"
end

---------------------------------------------------------------------------
-- Speed
---------------------------------------------------------------------------

-- Returns the request to run the candidate once with the sizes of the speed
-- case. Outputs are not compared. The request contains the inputs of integer
-- types; the worker fills the inputs of float types itself.
local function speed_request(task, candidate, opts)
  local case = {sizes = task.speed, mask = "causal"}
  local request = request_of(task, candidate, case, opts)
  add_call(request, task:inputs(case, 1, true), 1)
  return request
end

-- Estimates the candidate's time by the cost model, and stores it in v.speed.
local function estimated(v, task, candidate, opts)
  local request = speed_request(task, candidate, opts)
  request.estimate = opts.card
  local o = ask(request, opts.seconds)
  local why = o.failed or o.record.verdict == "error" and failure(o.record)
  v.speed = {by = "estimate", failed = why or nil,
             seconds = not why and o.record.evidence.seconds or nil}
end

-- Measures the candidate's time on the GPU, and stores it in v.speed. Rejects
-- the candidate if a later launch has other outputs.
local function measured(v, task, candidate, opts)
  local request = speed_request(task, candidate, opts)
  request.graph = {device = "gpu", timed = true, rival = opts.rival}
  local o = ask(request, opts.seconds * 10)
  local times = o.record and o.record.evidence.times
  v.speed = {by = "gpu", failed = not times and (o.failed
    or failure(o.record) or "the measurement failed") or nil}
  if not times then return end
  v.speed.seconds, v.speed.hot = times.cold, times.hot
  v.speed.rival = times.rival
  if times.differ then
    v.verdict, v.cheat = "rejected", "kept results"
    v.reason = "the outputs of a later launch on the GPU differ"
  end
end

-- Runs a candidate on a device, for the inputs of the first seed of a case.
-- Returns a sentence if it fails or has wrong outputs.
local function on_device(task, candidate, case, opts)
  local request = request_of(task, candidate, case, opts)
  local inputs = task:inputs(case, case.seeds[1])
  add_call(request, inputs, 1)
  request.graph = {device = opts.device}
  local o = ask(request, opts.seconds)
  local why = o.failed or o.record.verdict == "error" and failure(o.record)
  if why then return why end
  if o.record.evidence.times.differ then
    return "two launches with the same inputs differ"
  end
  local got = {}
  for name, text in pairs(o.record.evidence.outputs[1]) do
    got[name] = hex.decode(text)
  end
  local w = compare(task, case, got, task:expected(case, inputs))
  return w and wrong_text(w)
end

-- Adds the speed of an accepted candidate, and its score, to the verdict.
local function score(v, task, candidate, opts)
  v.score = 0
  if v.verdict ~= "accepted" or not task.speed then return end
  local card = cards.card(opts.card)
  if opts.device == "gpu" then measured(v, task, candidate, opts)
  else estimated(v, task, candidate, opts) end
  local s = v.speed
  s.card, s.target = card.name, task.target or 1
  if not s.seconds then return end
  s.limit = card.launch + task:limit(task.speed, card)
  s.share = s.limit / s.seconds
  v.score = math.min(100, math.floor(100 * s.share / s.target + 0.5))
end

---------------------------------------------------------------------------
-- The verdict
---------------------------------------------------------------------------

--- Judges a candidate. Returns {task =, candidate =, verdict = "accepted" or
-- "rejected", cheat =, reason =, cases =, findings =, not_checked =, speed =,
-- score =, secret =}.
---@param task table of cutelua.task.folder
---@param candidate table {name =, text =, launch = text?}
---@param opts table {secret: integer, seconds: number, memory: integer, card:
-- string, held: integer, device: string?, rival: string?}. held = 0: runs only
-- the public cases, without a score. device: also runs the last case on this
-- device and, if it is "gpu", measures the speed there
---@return table
function referee.judge(task, candidate, opts)
  local v = {task = task.name, candidate = candidate.name, cases = {},
             findings = {}, not_checked = {}}
  local cases, ok = {}, true
  local function run(list)
    for i, case in ipairs(list) do
      case.check = i == 1 and not case.held and opts.seconds / 4 or nil
      cases[#cases + 1] = run_case(task, candidate, case, opts)
      local c = cases[#cases]
      ok = ok and c.ok
      if c.failed or c.verdict == "error" then return end
    end
  end
  run(task:public())
  if opts.held > 0 and ok then
    run(task:held_back(opts.secret, opts.held))
  end
  decide(v, cases)
  if opts.device and v.verdict == "accepted" then
    local last = cases[#cases].case
    local why = on_device(task, candidate, last, opts)
    if why then
      v.verdict, v.reason = "rejected", ("on %s, %s: %s"):format(opts.device,
        last.name, why)
    end
  end
  if opts.held > 0 then
    v.secret = ("%016x"):format(opts.secret)
    score(v, task, candidate, opts)
  end
  return v
end

return referee
-- SPDX-License-Identifier: MIT
