local cute = require "cute"
local arch = cute.arch

local layernorm = cute.kernel("layernorm", function(X, G, B, Y, n)
  local row, lane = arch.block_idx(), arch.thread_idx()
  local count = n:to(cute.f32)
  local sum, squares = 0.0, 0.0
  for j in cute.range(lane, n, 32) do sum = sum + X[{row, j}] end
  local mean = arch.warp_reduction_sum(sum) / count
  -- wrong: local mean = 0.0 * sum
  for j in cute.range(lane, n, 32) do
    local d = X[{row, j}] - mean
    squares = squares + d * d
  end
  local variance = arch.warp_reduction_sum(squares) / count
  -- wrong: local variance = arch.warp_reduction_sum(squares) / (count - 1)
  local scale = cute.rsqrt(variance + 1e-5)
  for j in cute.range(lane, n, 32) do
    Y[{row, j}] = (X[{row, j}] - mean) * scale * G[j] + B[j]
    -- wrong: Y[{row, j}] = (X[{row, j}] - mean) * scale * G[j] + B[row]
  end
end)

return function(a)
  layernorm(a.X, a.G, a.B, a.Y, a.N):launch {grid = a.M, block = 32}
end
-- SPDX-License-Identifier: MIT
