--- Checks every schedule of a launch: `k(A, B):check {grid = , block = }`, and
-- `cutelua check SCRIPT` for all launches of a script.
--
-- A verdict is a table:
-- verdict: "ok": all schedules for these inputs were covered and have no fault.
--   "bug": see report, fault and schedule. "incomplete": `open` lists the parts
--   that were not covered.
-- kernel, blocks, turns (of one run), runs, seconds.
-- orders: number of distinct orders of turns.
-- results: number of distinct results; more than one is not a fault.
-- differs: two lines whose order changes the results.
-- compared: comparisons of the results with those of a GPU and of a reference
--   (cutelua.check.compare); empty if there is neither. A difference is a bug,
--   too. gpu: the GPU's name; not_compared: why no GPU was used.
-- sizes: {size =, verdict = a word, why =, of = the verdict table}, ... for
--   other sizes. If the kernel rejects a size, verdict is "refused" and `why`
--   the reason.
-- notes: sentences about behaviour on which the runs rely although PTX does not
--   guarantee it, and about faults in compiled code (cutelua.check.compiled).
-- needs: after an ok with surgeon = true: which synchronisation is needed.
-- mend: after a bug with surgeon = true: a changed or new line that fixes the
--   bug (cutelua.check.repair). tried: if there is none, what was tried.
-- sums: a line whose float sums are added in no fixed order.
-- found: the report of a run, if all schedules have the results of that run;
--   found.redo puts these results into memory.
--
-- docs/simulator.md explains why the verdict "ok" is reliable, and on which
-- assumptions.
local compare = require "cutelua.check.compare"
local compiled = require "cutelua.check.compiled"
local core = require "cute.core"
local explore = require "cutelua.check.explore"
local json = require "cutelua.text.json"
local kernel = require "cute.lang.kernel"
local memory = require "cutelua.program.memory"
local plural = require "cute.lang.report".plural
local warp_schedule = require "cutelua.check.warp_schedule"
local sizes = require "cutelua.check.sizes"
local plain = require "cutelua.analyses.report".plain
local faults = require "cutelua.text.faults"
local simreport = require "cute.lang.simreport"
local source = require "cute.lang.source"

-- Only a bug needs a repair, so the modules for repairs are loaded when a bug
-- is found.
local function repair() return require "cutelua.check.repair" end

local check = {}

local ORDERS, SECONDS, LEAST = 2000, 60, 1e-3
-- The longest search, in seconds, for a repair that the user did not request.
local MENDING = 20

local Verdict = {__closed = true}  -- traces do not record its fields
Verdict.__index = Verdict

local function place(file, line)
  return line and ("%s:%d"):format(source.short(file or "?"), line) or "?"
end

local function both(o)
  local a, b = place(o.file, o.line), place(o.file2, o.line2)
  return a == b and a or a .. " and " .. b
end

--- Functions that describe a part that was not covered. Their keys are the
-- reasons of cutelua.check.explore.
local WHY = {
  many = function()
    return "there are more warps and mbarriers than the check can track (4096)"
  end,
  full = function() return "the schedule has more steps than the check can "
    .. "store" end,
  apart = function()
    return "lanes of a warp wait for each other: only some of their "
      .. "interleavings were tried"
  end,
  clock = function(o)
    return ("the kernel depends on the clock or on its SM (%s): only one value "
      .. "was tried"):format(place(o.file, o.line))
  end,
  lanes = function(o)
    return ("lanes of one warp access one address with operations that do not "
      .. "commute (%s): only the order by lane number was "
      .. "tried"):format(place(o.file, o.line))
  end,
  missed = function(o)
    return ("one schedule of %s could not be "
      .. "reproduced"):format(place(o.file, o.line))
  end,
  bound = function(o, v)
    return ("%d schedules were left after %d runs, %.0f s, the next at %s: the "
      .. "limits are orders = %d, seconds = %.0f"):format(o.count, v.runs,
      v.seconds, both(o), v.most, v.limit)
  end,
  stopped = function(o, v)
    return ("a run was stopped%s: the limit is seconds = %g"):format(
      o.line and " at " .. place(o.file, o.line) or "", v.limit)
  end,
}

-- Adds the comparisons of the results to the text, or the reason why there was
-- no comparison with a GPU.
function Verdict:tell_compared(add)
  for _, c in ipairs(self.compared or {}) do
    for _, line in ipairs(compare.told(c)) do add(line) end
  end
  if self.failed then
    add(("the GPU run failed: %s"):format(self.failed))
  elseif self.inexact and self.gpu then
    add(("the GPU need not give the same bits: %s"):format(self.inexact))
  elseif self.not_compared and self.compared[1] then
    add(("the GPU was not compared: %s"):format(self.not_compared))
  end
end

function Verdict:__tostring()
  local text = {("check: kernel %s: %s"):format(self.kernel, self.verdict)}
  local function add(line) text[#text + 1] = "  " .. line end
  if self.fault then
    for line in faults.text(self.fault):gmatch "[^\n]+" do add(line) end
    for _, line in ipairs(warp_schedule.told(self.schedule)) do add(line) end
  else
    add(("%s of %s in %s; %s"):format(plural(self.orders, "schedule"),
      plural(self.turns, "step"), plural(self.blocks, "block"),
      plural(self.runs, "run")))
  end
  for _, note in ipairs(self.notes) do add("note: " .. note) end
  for _, o in ipairs(self.open) do add("not covered: " .. o.text) end
  self:tell_compared(add)
  if self.differs then
    add(("%s: they depend on the order of %s"):format(plural(self.results,
      "different result"), both(self.differs)))
  end
  for _, line in ipairs(self.sizes and sizes.told(self.sizes) or {}) do
    add(line)
  end
  for _, s in ipairs(self.sizes or {}) do
    if s.verdict == "bug" then
      for line in tostring(s.of):gmatch "[^\n]+" do add(line) end
      break
    end
  end
  for _, line in ipairs(self.needs and repair().told(self.needs) or {}) do
    add(line)
  end
  if self.mend then add(repair().advice(self.mend))
  elseif self.tried then add(repair().failure(self.tried)) end
  if self.sums then
    add(("the last bits depend on the order of additions: %s")
      :format(place(self.sums.file, self.sums.line)))
  end
  return core.visible(table.concat(text, "\n"), true)
end

-- Returns the turns (scheduling steps) of a schedule as "warp" or "warp:agent"
-- texts, and the source line of each turn.
local function plain_schedule(s)
  local out = {turns = {}, lines = {}, cluster = s.cluster}
  for i, turn in ipairs(s.turns) do
    out.turns[i] = turn[2] > 0 and turn[1] .. ":" .. turn[2] or "" .. turn[1]
    local at = s.path[i] or {}
    out.lines[i] = place(at.file, at.line)
  end
  return out
end

local function plain_lines(o)
  return o and {file = o.file and source.short(o.file), line = o.line,
                file2 = o.file2 and source.short(o.file2), line2 = o.line2,
                why = o.why, text = o.text}
end

--- Returns the verdict as JSON: docs/errors.md describes its form.
---@return string
function Verdict:json()
  local out = {form = 1, kind = "check", differs = plain_lines(self.differs),
               sums = plain_lines(self.sums), open = {},
               schedule = self.schedule and plain_schedule(self.schedule),
               fault = self.fault and plain(self.fault),
               notes = self.notes[1] and self.notes}
  for _, k in ipairs {"kernel", "verdict", "launch", "blocks", "turns",
                      "orders", "runs", "results", "seconds", "gpu",
                      "not_compared", "inexact", "failed"} do
    out[k] = self[k]
  end
  for i, o in ipairs(self.open) do out.open[i] = plain_lines(o) end
  for i, c in ipairs(self.compared or {}) do
    out.compared = out.compared or {}
    out.compared[i] = compare.plain(c)
  end
  for i, s in ipairs(self.sizes or {}) do
    out.sizes = out.sizes or {}
    out.sizes[i] = {size = s.size, verdict = s.verdict, why = s.why,
                    fault = s.of and s.of.fault
                      and plain(s.of.fault)}
  end
  out.needs = self.needs and repair().plain(self.needs)
  if self.needs and self.needs.together then
    out.together = repair().plain(self.needs.together)
    out.gain = self.needs.gain
  end
  out.mend = self.mend and {words = self.mend.words,
                            together = self.mend.together,
                            open = self.mend.open,
                            places = repair().plain(self.mend.places)}
  out.tried = self.tried
  for i, m in ipairs(self.mend and self.mend.others or {}) do
    out.mend.others = out.mend.others or {}
    out.mend.others[i] = {words = m.words, places = repair().plain(m.places)}
  end
  return json.encode(out)
end

local OWN = {orders = "integer", seconds = "integer float",
             surgeon = "boolean", reference = "function",
             tolerance = "integer float", gpu = "boolean",
             sizes = "function", tile = "table", size = "table"}
check.OPTIONS = OWN

--- Splits the options of a check into two tables: options of the launch and
-- options of the check itself.
function check.options(opts)
  if opts ~= nil and type(opts) ~= "table" then kernel.check_options(opts) end
  local launch, own = {device = "sim"}, {}
  for k, v in pairs(opts or {}) do
    if OWN[k] then own[k] = v else launch[k] = v end
  end
  kernel.check_options(own, OWN)
  return launch, own
end

local function positive(name, v, default)
  if v == nil then return default end
  if v <= 0 or v ~= v then
    core.fail("bad-argument", ("check: %s = %s; a number above 0 is needed")
      :format(name, tostring(v)))
  end
  return v
end

--- Returns a copy of a launch whose runs on the simulator stop when core.clock
-- reaches `limit`. The report of a stopped run has the field `stopped`.
---@param launch table as core.sim_run takes it
---@param limit number
---@return table
function check.until_time(launch, limit)
  local progress, words = launch.progress, {}
  for k, v in pairs(launch) do words[k] = v end
  function words.progress(done, doing)
    if core.clock() > limit then return false end
    return progress and progress(done, doing)
  end
  return words
end

--- Returns a function that runs a launch and then restores memory. run {turns
-- =, unit =, edits =, budget =, ...} returns a report, whose `memory` is a
-- checksum of memory after the run. If the first run has no options, its report
-- has `redo`: a function that puts the contents after that run into memory.
---@param program table
---@param launch table as core.sim_run takes it
---@return fun(o: table): table
function check.runner(program, launch)
  local restore = memory.keep(program, launch.args)
  local blocks = kernel.cluster(program.cluster, launch.grid)
  local is_first = true
  return function(o)
    local keeps = is_first and next(o) == nil
    is_first = false
    local function simulate(words)
      local found = core.sim_run(program.fn, words)
      found.redo = keeps and memory.keep(program, launch.args) or nil
      return found
    end
    local words = {decided = true, turns = o.turns, unit = o.unit,
                   all = o.all, tries = o.tries, edits = o.edits,
                   strict = o.strict}
    for k, v in pairs(launch) do words[k] = v end
    words.budget = words.budget or o.budget
    local sum, found = memory.untouched(restore, simulate, words)
    found.memory = sum
    found.threads = launch.block[1] * launch.block[2] * launch.block[3]
    found.cluster = blocks[1] * blocks[2] * blocks[3]
    return simreport.attach(found, program, launch.args)
  end
end

-- Wraps the function `run`. If a run without faults relies on behaviour that
-- PTX does not guarantee, the wrapper appends a sentence about it to `notes`,
-- once for each pair of lines.
local function watched(run, notes)
  local known = {}
  return function(o)
    local found = run(o)
    for _, r in ipairs(found.ok and found.relies or {}) do
      local key = ("%s %s:%s %s:%s"):format(r.kind, r.file, r.line, r.file2,
                                            r.line2)
      if not known[key] then
        known[key], notes[#notes + 1] = true, faults.reliance(r)
      end
    end
    return found
  end
end

-- Wraps the function `run` so that relying on behaviour that PTX does not
-- guarantee counts as a fault.
local function strictly(run)
  return function(o)
    o.strict = true
    return run(o)
  end
end

-- Returns the result of explore.all as a verdict.
local function verdict_of(result, name, opts, notes)
  local v = setmetatable({
    kernel = name, verdict = result.verdict, blocks = result.blocks,
    turns = result.turns_run, orders = result.orders, runs = result.runs,
    results = result.results, notes = notes or {},
    open = result.open, differs = result.differs, sums = result.sums,
    report = result.report, fault = result.fault, most = result.most,
    limit = opts.seconds, seconds = os.clock() - result.began,
    began = opts.began}, Verdict)
  for _, o in ipairs(v.open) do o.text = WHY[o.why](o, v) end
  if v.verdict == "ok" and v.results == 1 then v.found = result.found end
  if v.verdict == "bug" then v.schedule = warp_schedule.of(result, name) end
  return v
end

-- If v.compared has a difference from a reference, returns a fault at the line
-- that wrote the first wrong element; else nil.
local function wrong_place(v)
  for _, c in ipairs(v.compared) do
    if c.count > 0 and c.with == "reference" then
      return {kind = "wrong-results", file = c.first.file, line = c.first.line}
    end
  end
end

--- Checks every schedule of a launch. program and launch are the arguments of
-- core.sim_run.
---@param program table
---@param launch table
---@param opts? table {orders: integer, seconds: number, surgeon: boolean, mend:
-- boolean, reference: function, tolerance: number, gpu: boolean, limit: number,
-- early: function, trial: boolean}. mend: proposes a repair of a bug, as
-- surgeon does, within a part of the time. early(v): called with a bug's
-- verdict before the search for a repair. trial: does not shorten the schedule
-- of a bug. limit: a time of core.clock at which the check ends even if
-- `seconds` are not over
---@param arguments? table arguments of the reference
---@return table verdict
function check.launch(program, launch, opts, arguments)
  opts = opts or {}
  local bounds = {orders = positive("orders", opts.orders, ORDERS),
                  seconds = positive("seconds", opts.seconds, SECONDS),
                  began = core.clock()}
  bounds.limit = math.min(opts.limit or math.huge,
                          core.clock() + bounds.seconds)
  launch = check.until_time(launch, bounds.limit)
  local run = check.runner(program, launch)
  local notes = {}
  local result = explore.all(watched(run, notes), bounds)
  if result.verdict == "bug" and not opts.trial then
    explore.shrink(run, result)
  end
  local v = verdict_of(result, program.info.name, bounds, notes)
  if not v.fault then
    compare.launch(v, program, launch, {reference = opts.reference,
      tolerance = opts.tolerance, gpu = opts.gpu, arguments = arguments})
  end
  if opts.surgeon and v.verdict == "ok" and not kernel.empty(launch.grid) then
    -- A synchronisation is needed if the launch without it has a fault or
    -- relies on behaviour that PTX does not guarantee.
    v.needs = repair().needs(notes[1] and run or strictly(run), program.fn,
                             bounds.limit)
    repair().gains(v.needs, run, program, launch, opts.gpu, bounds.limit)
  elseif (opts.surgeon or opts.mend) and v.verdict == "bug" then
    if opts.early then opts.early(v) end
    local judge = opts.reference and compare.judge(program, launch,
      {reference = opts.reference, tolerance = opts.tolerance,
       arguments = arguments})
    local fault, now = v.fault or wrong_place(v), core.clock()
    local seconds = opts.surgeon and bounds.seconds
      or math.min(MENDING, bounds.seconds)
    -- The search may use half of the remaining time. cutelua.check.main needs
    -- the other half to try edits of the script.
    local limit = (opts.surgeon or not opts.limit) and bounds.limit
      or now + (bounds.limit - now) / 2
    local tried = {edits = 0}
    if fault and (v.fault or judge) then
      v.mend, tried = repair().mend(run, program.fn, fault, {seconds = seconds,
        runs = result.runs, judge = judge, limit = limit,
        progress = launch.progress})
    end
    v.tried = opts.surgeon and not v.mend and tried or nil
  end
  if not opts.trial then
    for _, note in ipairs(compiled.notes(program)) do
      notes[#notes + 1] = note
    end
  end
  return v
end

--- Runs a launch with a saved schedule (cutelua.check.warp_schedule) instead of
-- exploring schedules.
---@return table verdict
function check.replay(program, launch, kept)
  local run = check.runner(program, launch)
  local result = {open = {}, runs = 1, orders = 1, results = 1,
                  began = os.clock(), cluster = kept.cluster,
                  turns = explore.turns(kept.turns)}
  local found = explore.one(run, result.turns, kept.cluster)
  result.report, result.fault = found, found.reports[1]
  result.verdict = result.fault and "bug" or "ok"
  result.turns_run, result.blocks = found.turns, found.ctas
  return verdict_of(result, program.info.name, {})
end

local WORST = {ok = 0, refused = 0, incomplete = 1, bug = 2}

-- Returns the call of kernel k for one size, and its options. Raises an error
-- if the user's function `sizes` does not return both.
local function call_at(k, size, opts)
  local list = opts.sizes(table.unpack(size))
  if type(list) ~= "table" then
    core.fail("bad-argument", ("check: sizes(%s) returned %s; a table with the "
      .. "arguments and the launch options is needed"):format(
      table.concat(size, ", "), core.show(list)))
  end
  local own, n = {}, 0
  for name, v in pairs(opts) do own[name] = v end
  own.sizes, own.tile, own.size = nil, nil, nil
  for name, v in pairs(list) do
    if math.type(name) == "integer" then n = math.max(n, name)
    else own[name] = v end
  end
  return k(table.unpack(list, 1, n)), own
end

--- Checks a kernel at other sizes. Sets v.sizes to the verdicts, and v.verdict
-- to the worst verdict of all sizes.
---@param v table
---@param k table the kernel
---@param opts table options of Call:check. sizes(...) returns arguments and
-- options of a launch; tile: step of the extents; size: base of the odd sizes
-- (default: 2 tiles)
function check.sizes(v, k, opts)
  local n = debug.getinfo(opts.sizes, "u").nparams
  local tile, base = {}, {}
  local limit = v.began + positive("seconds", opts.seconds, SECONDS)
  for i = 1, n do
    tile[i] = positive("tile", opts.tile and opts.tile[i], 16)
    base[i] = positive("size", opts.size and opts.size[i], 2 * tile[i])
  end
  v.sizes = {}
  for _, size in ipairs(sizes.around(base, tile)) do
    local one = {size = size}
    local ok, why = pcall(function()
      local call, own = call_at(k, size, opts)
      own.seconds = math.max(limit - core.clock(), LEAST)
      one.of = call:check(own)
    end)
    one.verdict = ok and one.of.verdict or "refused"
    if not ok then one.why = sizes.refusal(why) end
    if WORST[one.verdict] > WORST[v.verdict] then v.verdict = one.verdict end
    v.sizes[#v.sizes + 1] = one
  end
end

--- Checks every schedule of a prepared launch.
---@param p table
---@param opts table
---@param arguments? table arguments for a reference
function check.prepared(p, opts, arguments)
  kernel.check_options(opts, OWN)
  if opts.reference and not arguments then
    core.fail("bad-argument", "a reference needs the arguments of a call: "
      .. "write k(A, B):check {reference = f}")
  end
  if p.device.kind ~= "sim" then
    core.fail("bad-launch", ("kernel %s was compiled for %s, but check runs on "
      .. "the simulator"):format(p.program.info.name, tostring(p.device)))
  elseif not p.values or not p.grid then
    core.fail("bad-launch", ("kernel %s was compiled without arguments, or a "
      .. "grid: there is nothing to check"):format(p.program.info.name))
  end
  kernel.cluster(p.program.cluster, p.grid)
  return check.launch(p.program, kernel.sim_launch(p, {}, p.values, p.grid),
                      opts, arguments)
end

return check
-- SPDX-License-Identifier: MIT
