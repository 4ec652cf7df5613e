local cute = require "cute"
local arch = cute.arch

local softmax = cute.kernel("softmax", function(X, Y, n)
  local row, lane = arch.block_idx(), arch.thread_idx()
  local most = -math.huge
  for j in cute.range(lane, n, 32) do most = cute.max(most, X[{row, j}]) end
  most = arch.warp_reduction_max(most)
  -- wrong: most = 0.0 * arch.warp_reduction_max(most)
  local sum = 0.0
  for j in cute.range(lane, n, 32) do
    sum = sum + cute.exp(X[{row, j}] - most)
  end
  sum = arch.warp_reduction_sum(sum)
  -- wrong: sum = arch.warp_reduction_sum(sum, 16)
  for j in cute.range(lane, n, 32) do
    Y[{row, j}] = cute.exp(X[{row, j}] - most) / sum
    -- wrong: Y[{row, j}] = cute.exp(X[{row, j}]) / sum
  end
end)

return function(a)
  softmax(a.X, a.Y, a.N):launch {grid = a.M, block = 32}
end
-- SPDX-License-Identifier: MIT
