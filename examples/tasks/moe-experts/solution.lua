local cute = require "cute"
local arch = cute.arch

local experts = cute.kernel("experts", function(A, W, E, Y, n, k)
  local t, part = arch.block_idx()
  local j = part * 32 + arch.thread_idx()
  cute.when(j:lt(n), function()
    local e = E[t]
    -- wrong: local e = E[0]
    local sum = 0.0
    for i in cute.range(k) do
      sum = sum + A[{t, i}]:to(cute.f32) * W[{e, j, i}]:to(cute.f32)
      -- wrong: sum = sum + A[{t, i}]:to(cute.f32) * W[{e, 0, i}]:to(cute.f32)
      -- wrong: sum = (sum + (A[{t, i}] * W[{e, j, i}]):to(cute.f32))
    end
    Y[{t, j}] = sum
  end)
end)

return function(a)
  experts(a.A, a.W, a.E, a.Y, a.N, a.K):launch {
    grid = {a.T, (a.N + 31) // 32}, block = 32}
end
-- SPDX-License-Identifier: MIT
