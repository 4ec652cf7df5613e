-- Fault: a kernel that is launched in a coroutine uses a name that cute lacks.
-- expect: cutelua: cute has no 'sqtr' [unknown-name]
-- expect: spec/faults/unknown-name/in_coroutine.lua:8 in kernel k
-- expect: nearest: sqrt
local cute = require "cute"
local Y = cute.zeros({32}, cute.f32)
local k = cute.kernel("k", function(y)
  y[0] = cute.sqtr(y[1])  -- wrong
  -- mend: y[0] = cute.sqrt(y[1])
end)
local run = coroutine.wrap(function()
  k(Y):launch {grid = 1, block = 1, device = "sim"}
end)
run()
