-- Each warp sums one row.
local cute = require "cute"
local arch = cute.arch

local sums = cute.kernel("sums", function(X, Y, n)
  local row, lane = arch.block_idx(), arch.thread_idx()
  local sum = 0.0
  for j in cute.range(lane, n, 32) do sum = sum + X[{row, j}] end
  -- wrong: for j in cute.range(lane, n - 1, 32) do sum = sum + X[{row, j}] end
  sum = arch.warp_reduction_sum(sum)
  -- wrong: sum = arch.warp_reduction_sum(sum, 16)
  -- wrong: sum = arch.warp_reduction_max(sum)
  cute.when(lane:eq(0), function() Y[row] = sum end)
end)

return function(a)
  sums(a.X, a.Y, a.N):launch {grid = a.M, block = 32}
end
-- SPDX-License-Identifier: MIT
