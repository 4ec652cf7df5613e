local cute = require "cute"
local arch = cute.arch

local rmsnorm = cute.kernel("rmsnorm", function(X, W, Y, n)
  local row, lane = arch.block_idx(), arch.thread_idx()
  local sum = 0.0
  for j in cute.range(lane, n, 32) do
    local x = X[{row, j}]:to(cute.f32)
    sum = sum + x * x
    -- wrong: sum = sum + x
  end
  sum = arch.warp_reduction_sum(sum)
  local scale = cute.rsqrt(sum / n:to(cute.f32) + 1e-5)
  -- wrong: local scale = cute.rsqrt(sum + 1e-5)
  for j in cute.range(lane, n, 32) do
    local x, w = X[{row, j}]:to(cute.f32), W[j]:to(cute.f32)
    Y[{row, j}] = (x * scale * w):to(cute.bf16)
    -- wrong: Y[{row, j}] = (x * scale):to(cute.bf16)
  end
end)

return function(a)
  rmsnorm(a.X, a.W, a.Y, a.N):launch {grid = a.M, block = 32}
end
-- SPDX-License-Identifier: MIT
