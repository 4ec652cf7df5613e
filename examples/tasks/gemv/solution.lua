local cute = require "cute"
local arch = cute.arch

local gemv = cute.kernel("gemv", function(A, X, Y, k)
  local row, lane = arch.block_idx(), arch.thread_idx()
  local sum = 0.0
  for j in cute.range(lane, k, 32) do
    sum = sum + A[{row, j}]:to(cute.f32) * X[j]:to(cute.f32)
    -- wrong: sum = sum + (A[{row, j}] * X[j]):to(cute.f32)
    -- wrong: sum = sum + A[{row, j}]:to(cute.f32)
  end
  sum = arch.warp_reduction_sum(sum)
  cute.when(lane:eq(0), function() Y[row] = sum end)
  -- wrong: cute.when(lane:eq(1), function() Y[lane] = sum end)
end)

return function(a)
  gemv(a.A, a.X, a.Y, a.K):launch {grid = a.M, block = 32}
end
-- SPDX-License-Identifier: MIT
