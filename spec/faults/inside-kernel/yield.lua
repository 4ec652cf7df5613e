-- Launches a kernel in a coroutine. Fault: the kernel yields to its caller.
-- expect: cutelua: coroutine.yield outside of a coroutine of the kernel: a
--   kernel is traced at once, and cannot be suspended [inside-kernel]
-- expect: spec/faults/inside-kernel/yield.lua:10 in kernel k
-- expect: hint: do it before the kernel and use the result inside
local cute = require "cute"
local Y = cute.zeros({32}, cute.f32)
local k = cute.kernel("k", function(y)
  for i = 0, 3 do
    coroutine.yield(i)  -- wrong
    y[i] = 1.0
  end
end)
local run = coroutine.wrap(function()
  k(Y):launch {grid = 1, block = 1, device = "sim"}
end)
run()
