-- Each lane divides its elements by its own sum in place of the row's.
-- run: notes
-- expect: note: partial_sum.lua:11: this sum has only the elements of one
--   lane, and each lane uses its own sum for the elements that it
--   stores; is a reduction missing, such as warp_reduction_sum?
local cute = require "cute"

cute.kernel("normalise", function(x, y)
  local lane, row = cute.arch.thread_idx(), cute.arch.block_idx()
  local sum = 0.0
  for k in cute.range(lane, 256, 32) do sum = sum + x[{row, k}] end
  -- mend: sum = cute.arch.warp_reduction_sum(sum)
  for k in cute.range(lane, 256, 32) do y[{row, k}] = x[{row, k}] / sum end
end)(cute.rand({4, 256}, cute.f32), cute.zeros({4, 256}, cute.f32))
  :launch {grid = 4, block = 32, device = "sim"}
