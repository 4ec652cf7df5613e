--- The measuring part of cute.gpu: times launches on a GPU.
local core = require "cute.core"
local report = require "cute.lang.report"
local sign = require "cute.lang.signature"

local gpu = {}

local function must(value, message)
  if value == nil then report.raise(message) end
  return value
end

-- Raises an error unless entry i of the objects to time can be launched.
local function check_launchable(what, i, x)
  local ok = type(x) == "function"
    or (type(x) == "table" or type(x) == "userdata") and x.launch ~= nil
  if not ok then
    core.fail("bad-argument", ("%s: entry %d is %s; a function or an object "
      .. "with a launch method is needed"):format(what, i, core.show(x)))
  end
end

-- Returns a function that launches a contestant (an entry of gpu.bench's list)
-- n times. c.launch is an object with the method launch (and perhaps launch_n),
-- or a function called once per launch.
local function runner(c)
  local x = c.launch
  if type(x) ~= "function" and x.launch_n then
    return function(n) x:launch_n(n) end
  end
  return function(n)
    for _ = 1, n do
      local ok, message
      if type(x) == "function" then ok, message = x()
      else ok, message = x:launch() end
      if ok == nil and message then report.raise(message) end
    end
  end
end

---@class cute.Timer
local Timer = {}
Timer.__index = Timer

local function new_timer(dev)
  return setmetatable({dev = dev, from = must(dev:event()),
                       to = must(dev:event())}, Timer)
end

-- Returns the milliseconds on the GPU's clock for n launches back to back.
function Timer:time(run, n)
  self.from:record()
  run(n)
  self.to:record()
  self.to:sync()
  return self.from:elapsed(self.to)
end

-- Launches for at least `ms` milliseconds. Returns the time of one launch,
-- averaged over the last batch.
function Timer:warm(run, ms)
  local total, n, each = 0, 1
  repeat
    local t = self:time(run, n)
    total = total + t
    each = math.max(t / n, 1e-4)
    n = math.max(1, math.ceil(math.min(ms - total, ms / 4) / each))
  until total >= ms
  return each
end

-- Times one launch after L2 was overwritten.
function Timer:cold(run, flush)
  flush:memset(0)
  return self:time(run, 1)
end

local function quantile(sorted, q)
  local at = 1 + (#sorted - 1) * q
  local lo = math.floor(at)
  local hi = math.min(lo + 1, #sorted)
  return sorted[lo] + (sorted[hi] - sorted[lo]) * (at - lo)
end

--- Returns statistics of a list of numbers: the median and the spread.
---@param list number[]
---@return table {median =, min =, max =, q1 =, q3 =, n =}
function gpu.stats(list)
  for i = 1, math.max(#list, 1) do
    if type(list[i]) ~= "number" then
      core.fail("bad-argument", ("stats: a list of numbers is needed, but "
        .. "entry %d is %s"):format(i, core.show(list[i])))
    end
  end
  local s = table.move(list, 1, #list, 1, {})
  table.sort(s)
  return {median = quantile(s, 0.5), q1 = quantile(s, 0.25),
          q3 = quantile(s, 0.75), min = s[1], max = s[#s], n = #s}
end

--- Returns the order in which a round measures n contestants. An even round
-- reverses the order of the round before it. Each pair of rounds rotates the
-- order by one, so that no contestant always follows the same neighbour.
---@param n integer number of contestants, at most 4096
---@param round integer from 1 on
---@return integer[]
local function order(n, round)
  if n < 0 or n > 4096 then
    core.fail("limit", ("%d entries; at most 4096 are possible"):format(n))
  end
  local list, turn = {}, (round - 1) // 2
  for i = 1, n do list[i] = (i - 1 + turn) % n + 1 end
  if round % 2 == 0 then
    for i = 1, n // 2 do list[i], list[n + 1 - i] = list[n + 1 - i], list[i] end
  end
  return list
end
gpu.bench_order = order

local function progress(opts)
  if opts.progress == false or not core.isatty(2) then
    return function() end
  end
  return function(text)
    io.stderr:write("\r\27[K", text or "")
    io.stderr:flush()
  end
end

local function bench(dev, list, opts)
  local timer = new_timer(dev)
  local flush
  if opts.cold ~= false then
    flush = must(timer.dev:buffer("u8", opts.flush_bytes or 256 << 20))
  end
  local rounds, show = opts.rounds or 9, progress(opts)
  local runs, hot, cold = {}, {}, {}
  for i, c in ipairs(list) do runs[i], hot[i], cold[i] = runner(c), {}, {} end
  if opts.settle_ms and runs[1] then timer:warm(runs[1], opts.settle_ms) end
  for round = 1, rounds do
    for _, i in ipairs(order(#list, round)) do
      show(("bench %d/%d %s"):format(round, rounds, list[i].name))
      local each = timer:warm(runs[i], opts.warm_ms or 60)
      local n = math.max(1, math.ceil((opts.hot_ms or 50) / each))
      table.insert(hot[i], timer:time(runs[i], n) / n)
      local samples = {}
      for s = 1, flush and (opts.cold_launches or 3) or 0 do
        samples[s] = timer:cold(runs[i], flush)
      end
      if flush then table.insert(cold[i], gpu.stats(samples).median) end
    end
  end
  show()
  local results = {}
  for i, c in ipairs(list) do
    local r = {name = c.name, hot = gpu.stats(hot[i]),
               cold = flush and gpu.stats(cold[i]) or nil}
    local flops = c.flops or opts.flops
    if flops then
      r.hot.tflops = flops / r.hot.median * 1e-9
      if r.cold then r.cold.tflops = flops / r.cold.median * 1e-9 end
    end
    results[i] = r
    if c.name then results[c.name] = r end
  end
  if flush then flush:close() end
  return results
end

--- Times several contestants (launchable objects) against each other in one
-- process.
--
-- Each contestant is warmed up just before it is measured. Otherwise the GPU,
-- limited in power, still runs at the clock of the previous contestant. The
-- measurements of all contestants are interleaved, and their order reverses and
-- rotates over the rounds. hot: launches back to back; cold: one launch after
-- L2 was overwritten. Only ratios of times within one call are meaningful.
---@param list table[] {name =, launch = object or function, flops = operations
-- of one launch or nil}
---@param opts table|nil rounds = 9, warm_ms = 60, hot_ms = 50, cold = true,
--   settle_ms = 0 (before the first round: an idle GPU is fast until it reaches
--   its power limit, which would favour the first contestant in few rounds),
--   cold_launches = 3 (the round takes their median), flush_bytes = 256 MiB,
--   flops (gives .tflops), progress = false
---@return table|nil results in the list's order, also by name: name, hot and
--   cold with median, min, max, q1, q3 in milliseconds; nil without a GPU
---@return string|nil message
function gpu.bench(list, opts)
  core.outside()
  opts = opts or {}
  for i, c in ipairs(list) do
    check_launchable("gpu.bench", i, type(c) == "table" and c.launch or c)
  end
  local dev, message = core.gpu_open(opts.ordinal)
  if not dev then return nil, message end
  return bench(dev, list, opts)
end

local function best(dev, list, opts)
  local timer = new_timer(dev)
  local at, least
  for i, object in ipairs(list) do
    local run = runner {launch = object}
    local each = timer:warm(run, opts.warm_ms or 20)
    local n = math.max(1, math.ceil((opts.hot_ms or 20) / each))
    local t = timer:time(run, n) / n
    if not least or t < least then at, least = i, t end
  end
  return list[at], at, least
end

--- Returns the fastest of several launchable objects, each of which is warmed
-- up before it is timed.
---@param list table[] with :launch_n, such as the results of gpu.cublaslt
---@param opts table|nil warm_ms = 20, hot_ms = 20
---@return table|nil object nil without a GPU
---@return integer|string index or message
---@return number|nil milliseconds
function gpu.best(list, opts)
  core.outside()
  opts = opts or {}
  if #list == 0 then
    core.fail("bad-argument", "gpu.best: nothing to choose from: the list is "
      .. "empty")
  end
  for i, object in ipairs(list) do
    check_launchable("gpu.best", i, object)
  end
  local dev, message = core.gpu_open(opts.ordinal)
  if not dev then return nil, message end
  return best(dev, list, opts)
end

return sign.public("gpu.", gpu, [[
  stats(list: table)
  bench(list: table, opts?: {cold cold_launches flops flush_bytes hot_ms ordinal
    progress rounds settle_ms warm_ms})
  best(list: table, opts?: {hot_ms ordinal warm_ms})
  bench_order(n: integer, round: integer)
]])
-- SPDX-License-Identifier: MIT
