-- Measures the size of the program and its start time.
local measure = require "spec.measure"

local function starts(words, n)
  local command = "'" .. measure.program .. "' " .. words
  local times = {}
  for i = 1, n do
    local start = measure.clock()
    assert(os.execute(command))
    times[i] = (measure.clock() - start) * 1e3
  end
  return times
end

local t = measure.table "The program (a shell that starts it included)"
local f <close> = assert(io.open(measure.program, "rb"))
t:add("size", f:seek "end" / (1 << 20), "MiB", 5.5)
t:add("cutelua -e ''", starts("-e ''", 31), "ms", 10)
t:add("cutelua -e 'require\"cute\"'", starts("-e 'require\"cute\"'", 31), "ms",
      10)
local p <close> = io.popen "lua5.4 -v 2>&1"
if (p:read "a"):find "^Lua 5.4" then
  local program = measure.program
  measure.program = "lua5.4"
  t:add("lua5.4 -e '', for comparison", starts("-e ''", 31), "ms")
  measure.program = program
end
t:print()
-- SPDX-License-Identifier: MIT
