local cute = require "cute"
local arch = cute.arch

local loss = cute.kernel("loss", function(X, T, L, n)
  local row, lane = arch.block_idx(), arch.thread_idx()
  local most = -math.huge
  for j in cute.range(lane, n, 32) do most = cute.max(most, X[{row, j}]) end
  most = arch.warp_reduction_max(most)
  local sum = 0.0
  for j in cute.range(lane, n, 32) do
    sum = sum + cute.exp(X[{row, j}] - most)
  end
  sum = arch.warp_reduction_sum(sum)
  cute.when(lane:eq(0), function()
    local target = T[row]
    -- wrong: local target = row
    L[row] = cute.log(sum) + most - X[{row, target}]
    -- wrong: L[row] = cute.log(sum) - X[{row, target}]
    -- wrong: L[row] = cute.log(sum) / 0.6931472 + most - X[{row, target}]
  end)
end)

return function(a)
  loss(a.X, a.T, a.L, a.N):launch {grid = a.M, block = 32}
end
-- SPDX-License-Identifier: MIT
