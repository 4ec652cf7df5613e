-- A warpgroup's MMA: C = A B^T in bf16 on Hopper's tensor cores, without TMA.
--
-- mma.sync takes its operands from registers. So ldmatrix must load all of the
-- operands, and warps that multiply have no time to load tiles. wgmma
-- reads A and B directly from shared memory, by descriptors. A warpgroup has
-- four warps. One instruction starts a 64x128x16 product and is asynchronous.
-- While the tensor cores multiply tile k, the same threads load tile k + STAGES
-- - 1. Half of the registers are accumulators, and none holds an operand.
--
-- wgmma requires its own layouts: 8 rows of 128 bytes, swizzled by address.
-- cp.async can write any layout. cp.async writes through the generic proxy, and
-- wgmma reads through the async proxy. fence_view_async_shared orders these
-- accesses.
--   cutelua scripts/gemm_wgmma.lua --help
local cute = require "cute"
local gemm_sm80 = require "kernels.gemm_sm80"
local lesson = require "cutelua.bench.lesson"
local tiles = require "cute.tiles"
local warpgroup = cute.nvgpu.warpgroup
local _, X = cute._, cute.X

local BM, BN, BK, STAGES = 128, 128, 64, 3

-- 64 elements of K are the 128 bytes of a swizzled row.
local atom = warpgroup.make_smem_layout_atom(
  warpgroup.SmemLayoutAtomKind.K_SW128, cute.bf16)
local sA_layout = cute.tile_to_shape(atom, {BM, BK, STAGES})  -- (BM,BK,PIPE)
local sB_layout = cute.tile_to_shape(atom, {BN, BK, STAGES})  -- (BN,BK,PIPE)
local g2s = cute.make_tiled_copy(
  cute.make_copy_atom("SM80_CP_ASYNC_CACHEGLOBAL", cute.bf16, 128),
  cute.make_layout({16, 8}, {8, 1}), cute.make_layout {1, 8})
-- One warpgroup computes 64x128x16 per instruction. A and B are in shared
-- memory.
local mma = cute.make_tiled_mma(warpgroup.MmaF16BF16Op(cute.bf16, cute.f32,
  {64, BN, 16}, warpgroup.OperandSource.SMEM))

local gemm = cute.kernel("gemm_wgmma", function(mA, mB, mC, alpha, beta)
  local tid = cute.arch.thread_idx()
  local bm, bn = tiles.raster(cute.arch.block_idx(), cute.size(mC, 0) // BM,
                              cute.size(mC, 1) // BN, 8)
  local tiler, at = {BM, BN, BK}, {bm, bn, _}
  local gA = cute.local_tile(mA, tiler, at, {1, X, 1})          -- (BM,BK,k)
  local gB = cute.local_tile(mB, tiler, at, {X, 1, 1})          -- (BN,BK,k)
  local gC = cute.local_tile(mC, tiler, at, {1, 1, X})          -- (BM,BN)
  local sA = cute.make_smem_tensor(cute.bf16, sA_layout, 1024)
  local sB = cute.make_smem_tensor(cute.bf16, sB_layout, 1024)

  local thr = g2s:get_slice(tid)
  local tAgA, tBgB = thr:partition_S(gA), thr:partition_S(gB)   -- (CPY,M,K,k)
  local tAsA, tBsB = thr:partition_D(sA), thr:partition_D(sB)   -- (..,PIPE)

  local thr_mma = mma:get_slice(tid)
  local tCrA = mma:make_fragment_A(thr_mma:partition_A(sA))     -- descriptors:
  local tCrB = mma:make_fragment_B(thr_mma:partition_B(sB))     -- (1,M,K,PIPE)
  local tCgC = thr_mma:partition_C(gC)                          -- (MMA,M,N)
  local acc = mma:make_fragment_C(tCgC)

  local k_tiles = cute.size(tAgA, 3)
  local function load(k_tile, stage)
    cute.when(cute.lt(k_tile, k_tiles), function()
      cute.copy(g2s, tAgA(_, _, _, k_tile), tAsA(_, _, _, stage))
      cute.copy(g2s, tBgB(_, _, _, k_tile), tBsB(_, _, _, stage))
    end)
    cute.arch.cp_async_commit_group()
  end

  for stage = 0, STAGES - 2 do load(stage, stage) end
  local read, write = 0, STAGES - 1
  for k_tile in cute.range(k_tiles) do
    cute.arch.cp_async_wait_group(STAGES - 2)
    cute.arch.fence_view_async_shared()
    cute.arch.sync_threads()  -- tile k has arrived, and wgmma may read it
    warpgroup.fence()
    mma:set(warpgroup.Field.ACCUMULATE, cute.gt(k_tile, 0))
    cute.gemm(mma, acc, tCrA(_, _, _, read), tCrB(_, _, _, read), acc)
    warpgroup.commit_group()
    warpgroup.wait_group(1)   -- this warp's wgmma has read tile k - 1
    -- The wgmma of all warps have read tile k - 1, so its stage is free.
    cute.arch.sync_threads()
    load(k_tile + STAGES - 1, write)
    read, write = (read + 1) % STAGES, read
  end
  warpgroup.wait_group(0)

  -- C = alpha A B^T + beta C
  cute.axpby(alpha or 1, acc, beta or 0, tCgC)
end)

lesson.gemm(arg, {
  kernel = gemm, tile = {BM, BN, BK}, block = mma:size(),
  general = gemm_sm80 {tile = {BM, BN, BK}, stages = 2}, archs = {"sm_90a"},
  needs = "wgmma",
  about = "C = A B^T in bf16 by one warpgroup's wgmma, no TMA (sm_90a).",
})
-- SPDX-License-Identifier: MIT
