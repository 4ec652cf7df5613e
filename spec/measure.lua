--- Helpers for benchmarks: they compute medians and their spread, set time
-- limits, start child processes, print aligned tables, and show progress on a
-- terminal.
local core = require "cute.core"
local cute = require "cute"
local gpu = require "cute.gpu"
local lesson = require "cutelua.bench.lessonlib"

local measure = {clock = core.clock, stats = gpu.stats}

--- The path of the cutelua program under test.
measure.program = (os.getenv "CUTELUA" or arg and arg[-1]) or "build/cutelua"

--- Shows one line of progress on standard error if that is a terminal. Without
-- a text, the line is erased.
function measure.progress(text)
  if not core.isatty(2) then return end
  io.stderr:write("\r\27[K", text or "")
  io.stderr:flush()
end

--- Returns the GPU. If there is none, or its architecture is not `sm`, prints
-- the reason and returns nil.
---@param sm? integer
function measure.gpu_device(sm)
  local device, why = cute.device "gpu"
  if device and (not sm or device.sm == sm) then return device end
  print("GPU benches not run: " .. (why or ("%s is no sm_%d"):format(
    device.name, sm)))
end

--- Returns microseconds of host time per call. f runs a batch of n calls, which
-- fits in the GPU's queue, so that the host never waits.
function measure.host_us(device, f, n)
  local list = {}
  for i = 1, 41 do
    device.dev:sync()
    local start = core.clock()
    f(n)
    list[i] = (core.clock() - start) / n * 1e6
  end
  device.dev:sync()
  return list
end

local function quote(s) return "'" .. s:gsub("'", "'\\''") .. "'" end

--- Returns the standard output of `cutelua words...`, run with added
-- environment variables.
---@param words string[]
---@param env? table<string, string>
function measure.child(words, env)
  local line = {"env"}
  for name, value in pairs(env or {}) do
    line[#line + 1] = quote(name .. "=" .. value)
  end
  line[#line + 1] = quote(measure.program)
  for _, word in ipairs(words) do line[#line + 1] = quote(word) end
  local p <close> = assert(io.popen(table.concat(line, " ")))
  local out = p:read "a"
  local ok = p:close()
  assert(ok, "a child failed: " .. table.concat(line, " ") .. "\n" .. out)
  return out
end

--- Calls f with the path of a new folder, and removes the folder afterwards.
function measure.with_folder(f)
  local p <close> = io.popen "mktemp -d"
  local path = p:read "l"
  local ok, message = pcall(f, path)
  os.execute("rm -rf " .. quote(path))
  assert(ok, message)
end

local function number(x)
  if math.abs(x) >= 100 then return ("%.0f"):format(x) end
  if math.abs(x) >= 10 then return ("%.1f"):format(x) end
  return ("%.2f"):format(x)
end
measure.number = number

---@class Measured
---@field rows table[]
local Table = {}
Table.__index = Table

--- Makes a table of rows {what, list of numbers, unit, limit, the limit's
-- source}.
---@param title string
function measure.table(title)
  return setmetatable({title = title, rows = {
    {"what", "median", "min", "max", "n", "unit", "bar", "ratio", ""}}}, Table)
end

--- Adds a row: measured numbers, and their upper limit, or their lower limit as
-- {least = x}.
function Table:add(what, list, unit, bar, note)
  if type(list) == "number" then list = {list} end
  local s = gpu.stats(list)
  local row = {what, number(s.median), number(s.min), number(s.max), s.n,
               unit, "-", "-", ""}
  if bar then
    local least = type(bar) == "table"
    local limit = least and bar.least or bar
    local kept
    if least then kept = s.median >= limit else kept = s.median <= limit end
    row[7] = (least and "at least " or "at most ") .. number(limit)
    row[8] = ("%.2f"):format(s.median / limit)
    row[9] = kept and "ok" or "MISSED"
  end
  if note then row[9] = row[9] == "" and note or row[9] .. ", " .. note end
  self.rows[#self.rows + 1] = row
  return s.median
end

function Table:print()
  measure.progress()
  print(self.title)
  lesson.print_table(self.rows, "  ")
  print()
end

return measure
-- SPDX-License-Identifier: MIT
