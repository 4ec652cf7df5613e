local cute = require "cute"
local arch = cute.arch

local attention = cute.kernel("attention", function(Q, K, V, mask, O, n)
  local row, lane = arch.block_idx(), arch.thread_idx()
  local q = Q[{row, lane}]:to(cute.f32) / math.sqrt(32)
  local most, sum, out = -math.huge, 0.0, 0.0
  for t in cute.range(n) do
    -- wrong: for t in cute.range(row + 1) do
    cute.when(mask[{row, t}]:eq(1), function()
      -- wrong: cute.when(t:le(row), function()
      -- wrong: cute.when(mask[{t, row}]:eq(1), function()
      local score = arch.warp_reduction_sum(q * K[{t, lane}]:to(cute.f32))
      local top = cute.max(most, score)
      local old, p = cute.exp(most - top), cute.exp(score - top)
      sum = sum * old + p
      out = out * old + p * V[{t, lane}]:to(cute.f32)
      most = top
    end)
  end
  O[{row, lane}] = out / sum
end)

return function(a)
  attention(a.Q, a.K, a.V, a.mask, a.O, a.S):launch {grid = a.S, block = 32}
end
-- SPDX-License-Identifier: MIT
