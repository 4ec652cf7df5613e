-- Tensor cores with one stage: C = A B^T in bf16, without overlap.
--
-- A block computes a 128x128 tile of C. It loads a tile of A and of B into
-- shared memory, waits for both, and multiplies them. Only then does it load
-- the next tiles. The tensor cores are idle during the copies unless another
-- block on the same SM multiplies.
--
-- The names of tensors show where the data is: gA is A in global memory, sA in
-- shared memory, rA in registers. The prefix tA or tB denotes a thread's part
-- for the copies, tX for loads of fragments, and tC for the multiplication.
--   cutelua scripts/gemm_base.lua --help
local cute = require "cute"
local gemm_sm80 = require "kernels.gemm_sm80"
local lesson = require "cutelua.bench.lesson"
local _, X = cute._, cute.X

local BM, BN, BK = 128, 128, 64

-- 8 rows of 64 elements, swizzled. Both the 8 chunks of 16 bytes in a column,
-- which ldmatrix reads, and those in a row are in different banks.
local atom = cute.composition(cute.make_swizzle(3, 3, 3),
                              cute.make_layout({8, 64}, {64, 1}))
local sA_layout = cute.tile_to_shape(atom, {BM, BK})            -- (BM,BK)
local sB_layout = cute.tile_to_shape(atom, {BN, BK})            -- (BN,BK)

-- Copies from global to shared memory without registers: 8 threads per row, 16
-- bytes each.
local g2s = cute.make_tiled_copy(
  cute.make_copy_atom("SM80_CP_ASYNC_CACHEGLOBAL", cute.bf16, 128),
  cute.make_layout({16, 8}, {8, 1}), cute.make_layout {1, 8})
-- Four warps, 2x2, compute 32x32x16 per step.
local mma = cute.make_tiled_mma("SM80_16x8x16_F32BF16BF16F32_TN",
  {2, 2, 1}, {32, 32, 16})
-- Copies from shared memory to registers, in the MMA's layout of A and B.
local ldsm = cute.make_copy_atom("SM75_U32x4_LDSM_N", cute.bf16)
local s2r_A = cute.make_tiled_copy_A(ldsm, mma)
local s2r_B = cute.make_tiled_copy_B(ldsm, mma)

local gemm = cute.kernel("gemm_base", function(mA, mB, mC, alpha, beta)
  local tid = cute.arch.thread_idx()
  local block, m_tiles = cute.arch.block_idx(), cute.size(mC, 0) // BM
  local tiler, at = {BM, BN, BK}, {block % m_tiles, block // m_tiles, _}
  local gA = cute.local_tile(mA, tiler, at, {1, X, 1})          -- (BM,BK,k)
  local gB = cute.local_tile(mB, tiler, at, {X, 1, 1})          -- (BN,BK,k)
  local gC = cute.local_tile(mC, tiler, at, {1, 1, X})          -- (BM,BN)
  local sA = cute.make_smem_tensor(cute.bf16, sA_layout, 128)   -- (BM,BK)
  local sB = cute.make_smem_tensor(cute.bf16, sB_layout, 128)   -- (BN,BK)

  local thr = g2s:get_slice(tid)
  local tAgA, tBgB = thr:partition_S(gA), thr:partition_S(gB)   -- (CPY,M,K,k)
  local tAsA, tBsB = thr:partition_D(sA), thr:partition_D(sB)   -- (CPY,M,K)

  local thr_mma = mma:get_slice(tid)
  local tCgC = thr_mma:partition_C(gC)                          -- (MMA,M,N)
  local tCrA = thr_mma:make_fragment_A(thr_mma:partition_A(sA)) -- (MMA,M,K)
  local tCrB = thr_mma:make_fragment_B(thr_mma:partition_B(sB)) -- (MMA,N,K)
  local tCrC = thr_mma:make_fragment_C(tCgC)                    -- (MMA,M,N)

  -- The registers of tCrA and tCrB in the order in which ldmatrix fills them.
  local thr_A, thr_B = s2r_A:get_slice(tid), s2r_B:get_slice(tid)
  local tXsA, tXrA = thr_A:partition_S(sA), thr_A:retile(tCrA)  -- (CPY,M,K)
  local tXsB, tXrB = thr_B:partition_S(sB), thr_B:retile(tCrB)  -- (CPY,N,K)

  tCrC:fill(0)
  for k_tile in cute.range(cute.size(tAgA, 3)) do
    cute.copy(g2s, tAgA(_, _, _, k_tile), tAsA)
    cute.copy(g2s, tBgB(_, _, _, k_tile), tBsB)
    cute.arch.cp_async_commit_group()
    cute.arch.cp_async_wait_group(0)
    cute.arch.sync_threads()  -- the tile is visible to all threads
    for kb = 0, cute.size(tCrA, 2) - 1 do
      cute.copy(s2r_A, tXsA(_, _, kb), tXrA(_, _, kb))
      cute.copy(s2r_B, tXsB(_, _, kb), tXrB(_, _, kb))
      cute.gemm(mma, tCrC, tCrA(_, _, kb), tCrB(_, _, kb), tCrC)
    end
    -- All threads have read the tile, so it may be overwritten.
    cute.arch.sync_threads()
  end

  -- C = alpha A B^T + beta C
  cute.axpby(alpha or 1, tCrC, beta or 0, tCgC)
end)

lesson.gemm(arg, {
  kernel = gemm, tile = {BM, BN, BK}, block = mma:size(),
  general = gemm_sm80 {tile = {BM, BN, BK}, stages = 2},
  about = "C = A B^T in bf16 on tensor cores, one tile at a time (sm_80).",
})
-- SPDX-License-Identifier: MIT
