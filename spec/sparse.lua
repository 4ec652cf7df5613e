--- Computes products of sparse matrices by wgmma, and compares them with dense
-- products.
local cute = require "cute"
local kernels = require "spec.kernels"
local sparse, warpgroup = cute.nvgpu.sparse, cute.nvgpu.warpgroup

local products = {}

--- Returns a function that draws numbers from 0 to n - 1.
function products.random(seed)
  return function(n)
    seed = (seed * 6364136223846793005 + 1442695040888963407) & math.maxinteger
    return (seed >> 33) % n
  end
end

--- Returns a matrix of small integers. In each group of 4 elements (or of 2, if
-- they have 32 bits), at most half are nonzero.
function products.matrix(rows, depth, dtype, chance)
  local A = cute.zeros({rows, depth}, dtype)
  local group = A.element_type.bits == 32 and 2 or 4
  for m = 0, rows - 1 do
    for k = 0, depth - 1, group do
      -- The number may be smaller: a position can be drawn twice, and a value
      -- can be 0.
      for _ = 1, group // 2 do
        A[{m, k + chance(group)}] = chance(7) - (dtype == "u8" and 0 or 3)
      end
    end
  end
  return A
end

--- Returns a kernel that computes D (M,N) = A (M,K) B (N,K)^T. Two warpgroups
-- compute a tile of 128 x n, in steps of `step` elements of K. registers:
-- whether the operation reads A from registers.
function products.gemm(op, n, step, registers)
  local mma = cute.make_tiled_mma(op, cute.make_layout {2, 1, 1})
  local function smem(t, rows, k)
    local kind, bits = "K_INTER", k * t.element_type.bits
    for _, span in ipairs {32, 64, 128} do
      if bits % (8 * span) == 0 then kind = "K_SW" .. span end
    end
    return cute.make_smem_tensor(t.element_type, cute.tile_to_shape(
      warpgroup.make_smem_layout_atom(kind, t.element_type), {rows, k}), 1024)
  end
  return cute.kernel("sparse_gemm", function(mV, mE, mB, mD, tiles)
    local tid, bx, by = cute.arch.thread_idx(), cute.arch.block_idx()
    local thr = mma:get_slice(tid)
    local words = mE.shape[2] * step // mB.shape[2]
    local gV = cute.local_tile(mV, {128, step // 2}, {bx, cute._})
    local gE = cute.local_tile(mE, {128, words}, {bx, cute._})
    local gB = cute.local_tile(mB, {n, step}, {by, cute._})
    local tCgD = thr:partition_C(cute.local_tile(mD, {128, n}, {bx, by}))
    local sV, sB = smem(mV, 128, step // 2), smem(mB, n, step)
    local tCgV = thr:partition_A(gV)
    local tCrA = mma:make_fragment_A(registers
      and tCgV(cute._, cute._, cute._, 0) or thr:partition_A(sV))
    local tCrB = mma:make_fragment_B(thr:partition_B(sB))
    local tCgE = thr:partition_E(gE)
    local tCrE = mma:make_fragment_E(tCgE(cute._, cute._, cute._, 0))
    local acc = mma:make_fragment_C(tCgD)
    mma:set(warpgroup.Field.ACCUMULATE, false)
    for k in cute.range(tiles) do
      local function fill(from, to, rows, depth)
        for e in cute.range(tid, rows * depth, 256) do
          to[{e // depth, e % depth}] = from(e // depth, e % depth, k)
        end
      end
      if registers then
        cute.autovec_copy(tCgV(cute._, cute._, cute._, k), tCrA)
      else
        fill(gV, sV, 128, step // 2)
      end
      fill(gB, sB, n, step)
      cute.autovec_copy(tCgE(cute._, cute._, cute._, k), tCrE)
      cute.arch.fence_view_async_shared()
      cute.arch.sync_threads()
      warpgroup.fence()
      cute.gemm(mma, acc, {tCrA, tCrE}, tCrB, acc)
      mma:set(warpgroup.Field.ACCUMULATE, true)
      warpgroup.commit_group()
      warpgroup.wait_group(0)
      cute.arch.sync_threads()
    end
    cute.autovec_copy(acc, tCgD)
  end)
end

-- Each case is {type of A, function that returns the operation, elements of K
-- in a step, whether A is in registers}.
products.CASES = {
  {"bf16", function() return warpgroup.MmaF16BF16SparseOp("bf16", "f32",
    {64, 32, 32}, "SMEM") end, 64},
  {"f16", function() return warpgroup.MmaF16BF16SparseOp("f16", "f32",
    {64, 32, 32}, "SMEM", nil, nil, 1) end, 32},
  {"f32", function() return warpgroup.MmaTF32SparseOp({64, 32, 16}, "SMEM") end,
   32},
  {"e4m3", function() return warpgroup.MmaF8SparseOp("e4m3", "e4m3", "f32",
    {64, 32, 64}, "SMEM") end, 128},
  {"i8", function() return warpgroup.MmaI8SparseOp("i8", "i8", "i32",
    {64, 32, 64}, "SMEM") end, 64},
  {"bf16", function() return warpgroup.MmaF16BF16SparseOp("bf16", "f32",
    {64, 32, 32}, "RMEM", "K", "K", 1) end, 64, true},
  {"u8", function() return warpgroup.MmaI8SparseOp("u8", "i8", "i32",
    {64, 32, 64}, "RMEM") end, 64, true},
}

--- Returns how many elements of a random product differ from the dense one.
function products.wrong(case, device, seed, M, N, K)
  local chance = products.random(seed)
  local dtype, op, step, registers = table.unpack(case)
  local A = products.matrix(M, K, dtype, chance)
  local B = kernels.tensor({N, K}, dtype == "u8" and "i8" or dtype,
                           function() return chance(7) - 3 end)
  local D = cute.zeros({M, N}, dtype:find "[iu]8" and "i32" or "f32")
  local V, E = sparse.compress(A)
  products.gemm(op(), 32, step, registers)(V, E, B, D, K // step):launch {
    grid = {M // 128, N // 32}, block = 256, device = device}
  local count = 0
  for m = 0, M - 1, 3 do
    local a = {}
    for k = 0, K - 1 do
      local x = A[{m, k}]
      if x ~= 0 then a[#a + 1] = {k, x} end
    end
    for n = 0, N - 1 do
      local sum = 0
      for _, e in ipairs(a) do sum = sum + e[2] * B[{n, e[1]}] end
      if sum ~= D[{m, n}] then count = count + 1 end
    end
  end
  return count
end

return products
-- SPDX-License-Identifier: MIT
