-- Sums an array in a kernel that was loaded as compiled Lua code. Fault: the
-- code has no debug information, so the names of its locals are unknown.
-- expect: cutelua: call:launch: a function without debug information contains a
--   traced loop or branch: its locals cannot be carried [bad-argument]
-- expect: spec/faults/bad-argument/stripped.lua:23 in main chunk
-- expect: load it from its source, or compile it without strip
--   (string.dump(f), luac without -s)
local cute = require "cute"
local text = [[
local cute = require "cute"
return function(x, y)
  local sum = 0.0
  for i in cute.range(4) do
    sum = sum + x[i]
  end
  y[0] = sum
end
]]
local strip = true  -- wrong
-- mend: local strip = false
local add = load(string.dump(load(text), strip))()
local X, Y = cute.ones({4}, cute.f32), cute.zeros({1}, cute.f32)
cute.kernel("add", add)(X, Y):launch {grid = 1, block = 1, device = "sim"}
assert(Y(0) == 4)
