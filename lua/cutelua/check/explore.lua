--- Explores every schedule of a launch by running the simulator with prescribed
-- sequences of turns. A turn is one scheduling step of a warp or of an agent,
-- such as the TMA unit (core/explore/interleave.h).
--
-- A run reports pairs of turns that could have been swapped. For each pair it
-- gives the prefix of a schedule that swaps them. All schedules reached this
-- way are run until no new order of turns appears. Two schedules that differ
-- only in commuting turns have the same hash and count as one order. This is
-- dynamic partial-order reduction, with hashes of known orders instead of sleep
-- sets.
local core = require "cute.core"

local explore = {}

--- Returns the first fault in the report of a run; only this fault is reported.
local function first_fault(found) return found.reports[1] end

local function same_fault(a, b)
  return a.kind == b.kind and a.line == b.line and a.line2 == b.line2
    and a.file == b.file
end

local function at(x) return {file = x.file, line = x.line} end

-- Adds to the result the cases that one run could not cover, such as other
-- values of the clock. `order` is what the run reported about its schedule.
local function note_open(result, order, file, line)
  local function leave(why, place) result:leave(why, place) end
  if order.many then leave "many" end
  if order.full then leave "full" end
  if order.apart then leave "apart" end
  if order.clock then leave("clock", at(order)) end
  if order.lanes then leave("lanes", at(order)) end
  if order.missed then leave("missed", {file = file, line = line}) end
  if order.sums then result.sums = result.sums or at(order) end
end

-- Records in the result that a run was stopped, and the line where it stopped.
local function leave_stopped(result, found)
  result:leave("stopped", {file = found.cut_file, line = found.cut})
end

local function lines_of(s)
  return {file = s.file, line = s.line, file2 = s.file2, line2 = s.line2}
end

local function fail(result, found, cluster, turns)
  result.verdict, result.report = "bug", found
  result.fault = first_fault(found)
  result.cluster, result.turns = cluster, turns
  return result
end

-- Reports whether a run used the result of a try_wait for anything except to
-- decide whether a wait follows. Then both results of each try_wait must be
-- explored, too (core/decode/try_wait.h).
local function strays(found)
  for _, o in ipairs(found.orders or {}) do
    if o.tries then return true end
  end
  return false
end

-- Runs one cluster with a prescribed schedule. `left` is the number of output
-- elements that another schedule of the cluster left unwritten. If this run
-- leaves more, runs the schedule again, together with all other clusters.
local function run_one(run, turns, order, left)
  local o = {turns = turns, unit = order.cluster}
  local found = run(o)
  o.all = not first_fault(found) and left and found.left > left
  return o.all and run(o) or found, o.all
end

-- Explores all schedules of one cluster, or of all clusters together if they
-- communicate.
local function explore_cluster(result, run, order)
  local queue, head, tail = {}, 1, 0
  local known, asked = {[order.hash] = true}, {}
  local results, seen = 1, {}
  local alone = run {turns = "", unit = order.cluster}
  if alone.stopped then return leave_stopped(result, alone) end
  seen[alone.memory] = true
  local function add(o)
    for _, s in ipairs(o.swaps) do
      if not asked[s.turns] then
        asked[s.turns], tail = true, tail + 1
        queue[tail] = s
      end
    end
  end
  add(order)
  while queue[head] do
    local swap = queue[head]
    if result:is_spent() then
      local left = lines_of(swap)
      left.count = tail - head + 1
      return result:leave("bound", left)
    end
    queue[head] = nil
    head = head + 1
    result.runs = result.runs + 1
    local found, all = run_one(run, swap.turns, order, alone.left)
    if strays(found) then return result:stray() end
    if first_fault(found) then
      result.all = all
      return fail(result, found, order.cluster, swap.turns)
    end
    if found.stopped then return leave_stopped(result, found) end
    local o = found.orders[1]
    note_open(result, o, swap.file, swap.line)
    if o.idle then
      -- In this run, a warp polled without success (o.idle). The run does not
      -- count as an order, but schedules that swap two of its turns are
      -- explored.
      add(o)
    elseif not known[o.hash] then
      known[o.hash] = true
      result.orders = result.orders + 1
      if not seen[found.memory] then
        seen[found.memory], results = true, results + 1
        result.results = math.max(result.results, results)
        result.differs = result.differs or lines_of(swap)
      end
      add(o)
    end
  end
end

local Result = {}
Result.__index = Result

-- Records why a part of the schedules was not covered, and the Lua line
-- concerned. Each pair of reason and line is recorded once.
function Result:leave(why, place)
  place = place or {}
  local key = ("%s %s:%s"):format(why, place.file, place.line)
  if self.seen[key] then return end
  self.seen[key], place.why = true, why
  self.open[#self.open + 1] = place
end

function Result:stray()
  self.strays = true
  return self
end

function Result:is_late()
  return self.limit and core.clock() > self.limit
end

function Result:is_spent()
  return self.runs >= self.most or os.clock() - self.began > self.seconds
    or self:is_late()
end

-- Explores all schedules of a launch. With tries = true, the result of each
-- try_wait counts as a separate scheduling step.
local function explore_all(run, opts, tries)
  local result = setmetatable({
    runs = 1, orders = 1, results = 1, open = {}, seen = {}, most = opts.orders,
    seconds = opts.seconds, limit = opts.limit, began = os.clock(),
    tries = tries}, Result)
  local found = run {}
  result.turns_run, result.blocks, result.found = found.turns, found.ctas, found
  if strays(found) then return result:stray() end
  if first_fault(found) then return fail(result, found, nil, "") end
  if found.stopped then leave_stopped(result, found) end
  for _, order in ipairs(found.orders or {}) do
    note_open(result, order)
    if #order.swaps > 0 and explore_cluster(result, run, order) then break end
  end
  result.verdict = result.verdict or (#result.open > 0 and "incomplete" or "ok")
  return result
end

local function with_tries(run)
  return function(o)
    o.tries = true
    return run(o)
  end
end

--- Explores all schedules of a launch. Returns a table with these fields:
--   verdict    "ok", "bug" or "incomplete"
--   orders     number of different orders of turns
--   runs       number of runs of the simulator
--   results    number of different results of one cluster, or of all clusters
--              if they communicate
--   turns_run  number of turns that were run
--   blocks     number of blocks
--   found      the report of the first run
--   open       the parts that were not covered
-- For a bug it also has report and fault, and cluster, turns, tries and all:
-- the options with which `run` reproduces the bug.
---@param run fun(o: table): table runs the launch and restores memory
---@param opts {orders: integer, seconds: number, limit: number?} limit: a time
-- of core.clock at which the exploration stops
function explore.all(run, opts)
  local result = explore_all(run, opts)
  if not result.strays then return result end
  return explore_all(with_tries(run), opts, true)
end

--- Runs a launch in which one cluster has the schedule `turns`. The other
-- clusters run, too. If `cluster` is nil, `turns` is a schedule of all
-- clusters.
---@param run fun(o: table): table
---@param turns string
---@param cluster? integer
function explore.one(run, turns, cluster)
  local function again(f)
    return f {turns = turns, unit = cluster, all = cluster and true}
  end
  local found = again(run)
  return strays(found) and again(with_tries(run)) or found
end

---------------------------------------------------------------------------
-- Minimising a schedule
---------------------------------------------------------------------------

-- Number of bytes that encode a turn (a scheduling step) in a schedule.
local WORD = 8

-- Splits a schedule (the text `turns`) wherever the warp or agent changes.
local function pieces_of(turns)
  local list, last = {}, nil
  for i = 1, #turns, WORD do
    local who = turns:sub(i, i + WORD - 1)
    if who == last then list[#list] = list[#list] .. who
    else list[#list + 1] = who end
    last = who
  end
  return list
end

--- Shortens the schedule of a bug so that it switches less often between warps,
-- and updates the report. First it cuts off as much of the schedule's end as
-- possible, then it tries to remove each piece.
---@param run fun(o: table): table
---@param result table of explore.all, a bug
function explore.shrink(run, result)
  local best, budget = result.turns, 200
  local function shows(turns)
    if budget == 0 or result:is_late() then return false end
    budget = budget - 1
    local found = run {turns = turns, unit = result.cluster, all = result.all,
                       tries = result.tries}
    local fault = first_fault(found)
    if not fault or not same_fault(fault, result.fault) then return false end
    result.report, result.fault, best = found, fault, turns
    return true
  end
  if best == "" then return result end
  -- Searches for the shortest beginning of the schedule that shows the bug.
  local low, high = 0, #best // WORD
  while low < high do
    local mid = (low + high) // 2
    if shows(best:sub(1, mid * WORD)) then high = mid else low = mid + 1 end
  end
  local again = true
  while again do
    again = false
    local list = pieces_of(best)
    for i = #list, 1, -1 do
      local piece = table.remove(list, i)
      if shows(table.concat(list)) then again = true
      else table.insert(list, i, piece) end
    end
  end
  result.turns = best
  return result
end

--- Converts a schedule to a list of turns, {{warp, agent?}, ...}; explore.turns
-- converts it back.
function explore.words(turns)
  local list = {}
  for i = 1, #turns, WORD do
    local u = string.unpack("<i8", turns, i)
    list[#list + 1] = {u & 0xffffffff, u >> 32}
  end
  return list
end

function explore.turns(words)
  local list = {}
  for i, w in ipairs(words) do
    list[i] = string.pack("<i8", w[1] | (w[2] or 0) << 32)
  end
  return table.concat(list)
end

return explore
-- SPDX-License-Identifier: MIT
