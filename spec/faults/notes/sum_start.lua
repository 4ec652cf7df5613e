-- Sums of squares start at 1.
-- run: notes
-- expect: note: sum_start.lua:11: this sum of elements starts at 1; start it
--   at 0. If 1 is a part of the result, add it after the sum
local cute = require "cute"

cute.kernel("norms", function(x, y)
  local t = cute.arch.thread_idx()
  local sum = 1.0  -- wrong
  -- mend: local sum = 0.0
  for k in cute.range(16) do sum = sum + x[{t, k}] * x[{t, k}] end
  y[t] = cute.sqrt(sum)
end)(cute.rand({32, 16}, cute.f32), cute.zeros({32}, cute.f32))
  :launch {grid = 1, block = 32, device = "sim"}
