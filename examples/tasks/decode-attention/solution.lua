local cute = require "cute"
local arch = cute.arch

local decode = cute.kernel("decode", function(Q, K, V, L, O)
  local b, lane = arch.block_idx(), arch.thread_idx()
  local q = Q[{b, lane}]:to(cute.f32) / math.sqrt(32)
  local most, sum, out = -math.huge, 0.0, 0.0
  for t in cute.range(L[b]) do
    -- wrong: for t in cute.range(L[0]) do
    -- wrong: for t in cute.range(L[b] - 1) do
    local score = arch.warp_reduction_sum(q * K[{b, t, lane}]:to(cute.f32))
    local top = cute.max(most, score)
    local old, p = cute.exp(most - top), cute.exp(score - top)
    sum = sum * old + p
    out = out * old + p * V[{b, t, lane}]:to(cute.f32)
    -- wrong: out = out * old + p * V[{0, t, lane}]:to(cute.f32)
    most = top
  end
  O[{b, lane}] = out / sum
end)

return function(a)
  decode(a.Q, a.K, a.V, a.L, a.O):launch {grid = a.B, block = 32}
end
-- SPDX-License-Identifier: MIT
