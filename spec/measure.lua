--- What the benches share: medians with their spread, bars, child processes,
-- an aligned table, progress on a terminal.
local core = require "cute.core"
local cute = require "cute"
local gpu = require "cute.gpu"
local lesson = require "cutelua.bench.lessonlib"

local measure = {clock = core.clock, stats = gpu.stats}

--- The program under test.
measure.program = (os.getenv "CUTELUA" or arg and arg[-1]) or "build/cutelua"

--- One line on standard error while something long runs; nothing when that
-- is no terminal. Without a text the line goes.
function measure.progress(text)
  if not core.isatty(2) then return end
  io.stderr:write("\r\27[K", text or "")
  io.stderr:flush()
end

--- The GPU, or nil, which is printed; sm: the only kind that is wanted.
---@param sm? integer
function measure.gpu_device(sm)
  local device, why = cute.device "gpu"
  if device and (not sm or device.sm == sm) then return device end
  print("GPU benches not run: " .. (why or ("%s is no sm_%d"):format(
    device.name, sm)))
end

--- Microseconds of the host's time a call, in batches that the GPU's queue
-- takes without making the host wait; f does a batch of n.
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

--- Standard output of `cutelua words...`, run with more environment.
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

--- A fresh folder for `f`, removed behind it.
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

--- A table of rows {what, list of numbers, unit, bar, what the bar is}.
---@param title string
function measure.table(title)
  return setmetatable({title = title, rows = {
    {"what", "median", "min", "max", "n", "unit", "bar", "ratio", ""}}}, Table)
end

--- A row: numbers and the most that they may be (least with {least = x}).
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
