-- Runs a lesson. Then prints all texts and numbers of every report of its
-- launches on the simulator, and a checksum of the bits that the launches
-- wrote. Usage: told.lua SCRIPT ARGUMENT...
local core = require "cute.core"
local lib = require "cutelua.bench.lessonlib"

local told, report = {}, lib.report

-- Fields that differ between equal launches: time, and the kernel's object.
local OTHER = {seconds = true, program = true}

local function ordered(a, b)
  if math.type(a) ~= math.type(b) then return math.type(a) ~= nil end
  return a < b
end

-- Adds a line for each number, text and boolean in a table and its subtables,
-- sorted by name.
local function write(v, name, seen)
  local t = type(v)
  if t == "number" or t == "string" or t == "boolean" then
    local text = math.type(v) == "float" and ("%a"):format(v) or tostring(v)
    told[#told + 1] = ("%s = %s"):format(name, text)
  elseif t == "table" and not seen[v] then
    seen[v] = true
    local keys = {}
    for k in next, v do
      if type(k) == "string" or math.type(k) == "integer" then
        keys[#keys + 1] = k
      end
    end
    table.sort(keys, ordered)
    for _, k in ipairs(keys) do
      if not OTHER[k] then write(v[k], name .. "." .. k, seen) end
    end
  end
end

local function sum_of(bytes)
  local sum, at = #bytes, 1
  bytes = bytes .. ("\0"):rep(-#bytes % 8)
  while at <= #bytes do
    local word
    word, at = ("<i8"):unpack(bytes, at)
    sum = (sum ~ word) * 0x100000001b3
  end
  return sum
end

local function write_results(run)
  for i, v in ipairs(run.values or {}) do
    if run.program.info.args[i].written
      and core.typename(v[1]) == "buffer" then
      write(sum_of(v[1]:bytes()), ("written.%d"):format(i), {})
    end
  end
end

function lib.report(run)
  local r = report(run)
  write(r, "report", {})
  write(tostring(r), "text", {})
  write_results(run)
  return r
end

arg = table.move(arg, 1, #arg, 0, {})  -- luacheck: ignore 121
local ok, why = pcall(dofile, arg[0])
lib.report = report
print(table.concat(told, "\n"))
if not ok then error(why, 0) end
-- SPDX-License-Identifier: MIT
