-- A warp computes a row, and each lane holds one element of its vectors. A
-- score larger than the maximum so far rescales the sums of the softmax.
local cute = require "cute"
local arch = cute.arch

local attention = cute.kernel("attention", function(Q, K, V, O, n)
  local row, lane = arch.block_idx(), arch.thread_idx()
  local q = Q[{row, lane}]:to(cute.f32) / math.sqrt(32)
  -- wrong: local q = Q[{row, lane}]:to(cute.f32)
  local most, sum, out = -math.huge, 0.0, 0.0
  for t in cute.range(n) do
    -- wrong: for t in cute.range(cute.min(n, row + 1)) do
    local score = arch.warp_reduction_sum(q * K[{t, lane}]:to(cute.f32))
    local top = cute.max(most, score)
    local old, p = cute.exp(most - top), cute.exp(score - top)
    sum = sum * old + p
    -- wrong: sum = sum + p
    out = out * old + p * V[{t, lane}]:to(cute.f32)
    most = top
  end
  O[{row, lane}] = out / sum
end)

return function(a)
  attention(a.Q, a.K, a.V, a.O, a.T):launch {grid = a.S, block = 32}
end
-- SPDX-License-Identifier: MIT
