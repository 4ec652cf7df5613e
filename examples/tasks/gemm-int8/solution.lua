local cute = require "cute"
local arch = cute.arch

local gemm = cute.kernel("gemm", function(A, B, S, C, n, k)
  local m, part = arch.block_idx()
  local j = part * 32 + arch.thread_idx()
  cute.when(j:lt(n), function()
    local sum = 0.0
    for i in cute.range(k) do
      sum = sum + A[{m, i}]:to(cute.f32) * B[{j, i}]:to(cute.f32)
      -- wrong: sum = sum + (A[{m, i}] * B[{j, i}]:to(cute.f16)):to(cute.f32)
    end
    C[{m, j}] = sum * S[j]
    -- wrong: C[{m, j}] = sum * S[0]
    -- wrong: C[{m, j}] = sum / S[j]
  end)
end)

return function(a)
  gemm(a.A, a.B, a.S, a.C, a.N, a.K):launch {grid = {a.M, (a.N + 31) // 32},
                                             block = 32}
end
-- SPDX-License-Identifier: MIT
