-- A block computes 16 x 16 elements. Tiles of A and B with 16 steps of K pass
-- through shared memory.
local cute = require "cute"
local arch = cute.arch

local gemm = cute.kernel("gemm", function(A, B, C, m, n, k)
  local rows = cute.make_smem_tensor(cute.f32, cute.make_layout({16, 16}))
  local columns = cute.make_smem_tensor(cute.f32,
    cute.make_layout({16, 16}, {1, 17}))
  local tx, ty = arch.thread_idx()
  local bx, by = arch.block_idx()
  local i, j = by * 16 + ty, bx * 16 + tx
  local sum = 0.0
  for k0 in cute.range(0, k, 16) do
    local a, b, at, col = 0.0, 0.0, k0 + tx, bx * 16 + ty
    cute.when(i:lt(m) & at:lt(k), function() a = A[{i, at}]:to(cute.f32) end)
    cute.when(col:lt(n) & at:lt(k), function()
      b = B[{col, at}]:to(cute.f32)
    end)
    rows[{tx, ty}], columns[{tx, ty}] = a, b
    arch.sync_threads()
    for s = 0, 15 do
      -- wrong: for s = 0, 14 do
      local product = rows[{s, ty}] * columns[{s, tx}]
      sum = sum + product
      -- wrong: sum = sum + product:to(cute.f16):to(cute.f32)
    end
    arch.sync_threads()
    -- wrong: arch.sync_warp()
  end
  cute.when(i:lt(m) & j:lt(n), function() C[{i, j}] = sum end)
end)

return function(a)
  gemm(a.A, a.B, a.C, a.M, a.N, a.K):launch {block = {16, 16},
    grid = {(a.N + 15) // 16, (a.M + 15) // 16}}
end
-- SPDX-License-Identifier: MIT
