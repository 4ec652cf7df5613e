-- A GEMM with a three-stage pipeline on Ampere's tensor cores: C = A B^T in
-- bf16.
--
-- While the tensor cores multiply one tile of A and B, cp.async loads the next
-- two tiles into shared memory. Within a tile, ldmatrix loads the fragments of
-- one block of 16 along K while the previous block is multiplied.
--   cutelua scripts/gemm3stage.lua --help
local cute = require "cute"
local gemm_sm80 = require "kernels.gemm_sm80"
local lesson = require "cutelua.bench.lesson"
local tiles = require "cute.tiles"
local _, X = cute._, cute.X

local BM, BN, BK, STAGES, GROUP = 128, 128, 64, 3, 8

local mma = cute.make_tiled_mma("SM80_16x8x16_F32BF16BF16F32_TN",
  {2, 2, 1}, {32, 32, 16})
local ldsm = cute.make_copy_atom("SM75_U32x4_LDSM_N", cute.bf16)
local s2r_A = cute.make_tiled_copy_A(ldsm, mma)
local s2r_B = cute.make_tiled_copy_B(ldsm, mma)

-- Returns the kernel. rows: the layout of 8 rows in shared memory, which is
-- then swizzled in chunks of 16 bytes. The chunks that ldmatrix reads or
-- cp.async writes in one pass are then in different banks. cp_async: the copy
-- operation that matches `rows`.
local function gemm3stage(rows, cp_async)
  local atom = cute.composition(cute.make_swizzle(3, 3, 3), rows)
  local sA_layout = cute.tile_to_shape(atom, {BM, BK, STAGES})  -- (BM,BK,PIPE)
  local sB_layout = cute.tile_to_shape(atom, {BN, BK, STAGES})  -- (BN,BK,PIPE)
  local g2s = cute.make_tiled_copy(
    cute.make_copy_atom(cp_async, cute.bf16, 128),
    cute.make_layout({16, 8}, {8, 1}), cute.make_layout {1, 8})

  return cute.kernel("gemm3stage", function(mA, mB, mC, alpha, beta)
    local tid = cute.arch.thread_idx()
    -- Consecutive blocks go down 8 tiles, then to the right, as in
    -- gemm_l2swizzle.lua.
    local bm, bn = tiles.raster(cute.arch.block_idx(),
      cute.size(mC, 0) // BM, cute.size(mC, 1) // BN, GROUP)
    local tiler, at = {BM, BN, BK}, {bm, bn, _}
    local gA = cute.local_tile(mA, tiler, at, {1, X, 1})        -- (BM,BK,k)
    local gB = cute.local_tile(mB, tiler, at, {X, 1, 1})        -- (BN,BK,k)
    local gC = cute.local_tile(mC, tiler, at, {1, 1, X})        -- (BM,BN)
    local sA = cute.make_smem_tensor(cute.bf16, sA_layout, 128) -- (BM,BK,PIPE)
    local sB = cute.make_smem_tensor(cute.bf16, sB_layout, 128) -- (BN,BK,PIPE)

    local thr = g2s:get_slice(tid)
    local tAgA, tBgB = thr:partition_S(gA), thr:partition_S(gB) -- (CPY,M,K,k)
    local tAsA, tBsB = thr:partition_D(sA), thr:partition_D(sB)
                                                             -- (CPY,M,K,PIPE)
    local thr_mma = mma:get_slice(tid)
    local tCgC = thr_mma:partition_C(gC)                        -- (MMA,M,N)
    local tCrA = thr_mma:partition_fragment_A(sA(_, _, 0))      -- (MMA,M,K)
    local tCrB = thr_mma:partition_fragment_B(sB(_, _, 0))      -- (MMA,N,K)
    local tCrC = thr_mma:make_fragment_C(tCgC)                  -- (MMA,M,N)
    tCrC:fill(0)

    local thr_A, thr_B = s2r_A:get_slice(tid), s2r_B:get_slice(tid)
    local tXsA, tXsB = thr_A:partition_S(sA), thr_B:partition_S(sB)
                                                             -- (CPY,M,K,PIPE)
    local tXrA, tXrB = thr_A:retile(tCrA), thr_B:retile(tCrB)   -- (CPY,M,K)

    -- Prologue: issue the loads of all stages but one.
    local k_tiles, K_BLOCKS = cute.size(tAgA, 3), cute.size(tCrA, 2)
    for stage = 0, STAGES - 2 do
      cute.when(cute.lt(stage, k_tiles), function()
        cute.copy(g2s, tAgA(_, _, _, stage), tAsA(_, _, _, stage))
        cute.copy(g2s, tBgB(_, _, _, stage), tBsB(_, _, _, stage))
      end)
      cute.arch.cp_async_commit_group()
    end
    local k_tile_next, smem_read, smem_write = STAGES - 1, 0, STAGES - 1
    local tXsA_p, tXsB_p = tXsA(_, _, _, 0), tXsB(_, _, _, 0)   -- (CPY,M,K)
    cute.arch.cp_async_wait_group(STAGES - 2)
    cute.arch.sync_threads()
    cute.copy(s2r_A, tXsA_p(_, _, 0), tXrA(_, _, 0))
    cute.copy(s2r_B, tXsB_p(_, _, 0), tXrB(_, _, 0))

    for k_tile in cute.range(k_tiles) do
      for kb = 0, K_BLOCKS - 1 do
        -- Switch to the stage of the next tile. After the last tile, keep the
        -- current stage.
        if kb == K_BLOCKS - 1 then
          local stage = cute.where(cute.lt(k_tile + 1, k_tiles), smem_read,
                                   smem_write)
          tXsA_p, tXsB_p = tXsA(_, _, _, stage), tXsB(_, _, _, stage)
          cute.arch.cp_async_wait_group(STAGES - 2)
          cute.arch.sync_threads()
        end
        if kb == 0 then  -- refill the stage that was read before this one
          cute.when(cute.lt(k_tile_next, k_tiles), function()
            cute.copy(g2s, tAgA(_, _, _, k_tile_next),
                      tAsA(_, _, _, smem_write))
            cute.copy(g2s, tBgB(_, _, _, k_tile_next),
                      tBsB(_, _, _, smem_write))
          end)
          cute.arch.cp_async_commit_group()
          k_tile_next = k_tile_next + 1
          smem_write, smem_read = smem_read, (smem_read + 1) % STAGES
        end
        local kb_next = (kb + 1) % K_BLOCKS
        cute.copy(s2r_A, tXsA_p(_, _, kb_next), tXrA(_, _, kb_next))
        cute.copy(s2r_B, tXsB_p(_, _, kb_next), tXrB(_, _, kb_next))
        cute.gemm(mma, tCrC, tCrA(_, _, kb), tCrB(_, _, kb), tCrC)
      end
    end

    cute.axpby(alpha or 1, tCrC, beta or 0, tCgC)
  end)
end

lesson.gemm(arg, {
  kernel = gemm3stage(cute.make_layout({8, {8, 8}}, {8, {1, 64}}),
                      "SM80_CP_ASYNC_CACHEALWAYS"),
  variants = {{"--rows", help = "contiguous rows in shared memory, cp.async "
    .. "past L1", kernel = gemm3stage(cute.make_layout({8, 64}, {64, 1}),
                                      "SM80_CP_ASYNC_CACHEGLOBAL")}},
  general = gemm_sm80 {tile = {BM, BN, BK}, stages = STAGES, group = GROUP},
  tile = {BM, BN, BK}, block = mma:size(),
  about = "C = A B^T in bf16 with a 3-stage cp.async pipeline (sm_80).",
})
-- SPDX-License-Identifier: MIT
