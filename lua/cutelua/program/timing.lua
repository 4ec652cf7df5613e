--- `%time CODE` at the prompt: runs code repeatedly and prints the median time,
-- the quartiles, and the time of the first run, which also traces and compiles.
-- Launches on the simulator are timed one by one. On a GPU, the time between
-- two events around the code is measured.
local core = require "cute.core"
local history = require "cute.lang.history"
local show = require "cutelua.program.show"

local timing = {}

-- Seconds that all samples together take.
local SECONDS = 0.5
-- The least and the largest number of samples.
local LEAST, MOST = 5, 1000
-- Least duration of a sample in seconds. Faster code runs several times in one
-- sample.
local SHORTEST = 1e-4
-- Least duration in seconds of a sample that synchronises a GPU.
local ON_GPU = 1e-3
-- After this many seconds, measuring stops even with fewer than LEAST samples.
local LONGEST = 10

-- ---- runs ----

local function wait_for_gpus(gpus)
  for _, gpu in ipairs(gpus) do gpu:sync() end
end

-- Returns the GPUs that this process uses.
local function opened()
  local list = {}
  for _, gpu in pairs(debug.getregistry()["cute.gpus"] or {}) do
    if gpu:alive() then list[#list + 1] = gpu end
  end
  return list
end

-- Returns a list, and a function for history.watcher. The function adds the
-- seconds of each launch to the list, which has one row for each kernel and
-- device.
local function collector()
  local list, by_name = {}, {}
  return list, function(p, last)
    local name = ("kernel %s on %s"):format(p.program.info.name,
                                            tostring(p.device))
    local row = by_name[name]
    if not row then
      row = {name = name, samples = {}}
      by_name[name], list[#list + 1] = row, row
    end
    local seconds = not last.first and last.seconds
    if seconds and #row.samples < MOST then
      row.samples[#row.samples + 1] = seconds
    end
  end
end

-- Takes a sample: runs f n times. Returns the seconds of one run, measured on
-- the host, and a list of the seconds measured on each GPU.
local function sample(f, n, gpus)
  local from, to = {}, {}
  for i, gpu in ipairs(gpus) do
    from[i], to[i] = gpu:event(), gpu:event()
    from[i]:record()
  end
  local start = core.clock()
  for _ = 1, n do f() end
  for i in ipairs(gpus) do to[i]:record() end
  wait_for_gpus(gpus)
  local seconds, on_gpus = (core.clock() - start) / n, {}
  for i in ipairs(gpus) do
    on_gpus[i] = from[i]:elapsed(to[i]) * 1e-3 / n
    from[i]:close()
    to[i]:close()
  end
  return seconds, on_gpus
end

--- Runs f until there are enough samples.
---@param f function
---@return table {first =, each = runs per sample, rows = {{name =, samples =}}}
function timing.measure(f)
  local launches, collect = collector()
  local before = history.watcher
  history.watcher = function(...)
    collect(...)
    if before then before(...) end
  end
  local start = core.clock()
  f()
  local gpus = opened()
  wait_for_gpus(gpus)
  local m = {first = core.clock() - start, each = 1,
             rows = {{name = "host", samples = {}}}}
  for i, gpu in ipairs(gpus) do
    m.rows[i + 1] = {name = gpu:info().name, samples = {}}
  end
  -- On a GPU, no watcher runs: it would run between launches and be measured,
  -- too.
  if gpus[1] then history.watcher = nil end
  for _, row in ipairs(launches) do row.samples = {} end
  if not launches[1] or gpus[1] then
    start = core.clock()
    f()
    local n = (gpus[1] and ON_GPU or SHORTEST) / (core.clock() - start)
    m.each = math.ceil(math.max(1, math.min(10000, n)))
    wait_for_gpus(gpus)
  end
  start = core.clock()
  repeat
    local seconds, on_gpus = sample(f, m.each, gpus)
    table.insert(m.rows[1].samples, seconds)
    for i, s in ipairs(on_gpus) do table.insert(m.rows[i + 1].samples, s) end
    local n, passed = #m.rows[1].samples, core.clock() - start
  until n == MOST or passed > (n < LEAST and LONGEST or SECONDS)
  for _, row in ipairs(launches) do
    if row.samples[1] then m.rows[#m.rows + 1] = row end
  end
  return m
end

-- ---- messages ----

-- Returns a quantile of sorted samples; part is 0.5 for the median.
local function quantile(sorted, part)
  local at = 1 + part * (#sorted - 1)
  local low = math.floor(at)
  local high = math.min(low + 1, #sorted)
  return sorted[low] + (sorted[high] - sorted[low]) * (at - low)
end

--- Returns a measurement as lines of text.
---@param m table of timing.measure
---@return string
function timing.text(m)
  local out, width, host = {}, 0, m.rows[1].samples
  for _, row in ipairs(m.rows) do width = math.max(width, #row.name) end
  for i, row in ipairs(m.rows) do
    local s = row.samples
    table.sort(s)
    out[i] = ("%-" .. width .. "s  median %s, middle half %s to %s"):format(
      row.name, show.seconds(quantile(s, 0.5)), show.seconds(quantile(s, 0.25)),
      show.seconds(quantile(s, 0.75)))
  end
  out[#out + 1] = ("%d times%s; the first took %s"):format(#host, m.each > 1
    and (" %d runs"):format(m.each) or "", show.seconds(m.first))
  return core.visible(table.concat(out, "\n"), true)
end

return timing
-- SPDX-License-Identifier: MIT
