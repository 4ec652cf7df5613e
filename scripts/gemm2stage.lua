-- Two stages: the next tile is loaded while the current tile is multiplied.
--
-- Shared memory holds two tiles of A and of B. cp.async is asynchronous, so a
-- block issues the loads of tile k+1 before it multiplies tile k. It waits only
-- when it needs tile k+1. One barrier per tile is sufficient: after it, all
-- threads have read the tile that the next copies overwrite. The copies are
-- issued after the first fragments are loaded. An SM processes its memory
-- requests in order, so earlier copies would delay ldmatrix (0.53 instead of
-- 0.58 of cuBLAS at 2048).
--
-- From here on, cute.tiles replaces the code of gemm_base.lua. A and B are
-- operands: A.load copies a tile into a stage, A.fetch loads a block of
-- fragments, and A.frag holds the fragments. cute.tiles chooses atoms and
-- layouts for any size and order, and adds predicates. C is the result: C.acc
-- holds the accumulators, and C.store computes axpby and stores it.
--   cutelua scripts/gemm2stage.lua --help
local cute = require "cute"
local lesson = require "cutelua.bench.lesson"
local tiles = require "cute.tiles"
local _ = cute._

local BM, BN, BK, STAGES = 128, 128, 64, 2
local mma = cute.make_tiled_mma("SM80_16x8x16_F32BF16BF16F32_TN",
  {2, 2, 1}, {32, 32, 16})

local gemm = cute.kernel("gemm2stage", function(mA, mB, mC, alpha, beta)
  local m_tiles = tiles.count(cute.size(mC, 0), BM)
  local block = cute.arch.block_idx()
  local bm, bn = block % m_tiles, block // m_tiles
  local A = tiles.operand(mA, {of = mma, which = "A", tile = {BM, BK},
                               at = bm, stages = STAGES})
  local B = tiles.operand(mB, {of = mma, which = "B", tile = {BN, BK},
                               at = bn, stages = STAGES})
  local C = tiles.result(mC, mma, {BM, BN}, {bm, bn})
  C.acc:fill(0)

  A.load(0, 0)
  B.load(0, 0)
  cute.arch.cp_async_commit_group()
  local stage = 0
  for k_tile in cute.range(A.k_tiles) do
    cute.arch.cp_async_wait_group(0)
    -- Tile k has arrived, and all threads have read tile k-1.
    cute.arch.sync_threads()
    A.fetch(stage, 0)
    B.fetch(stage, 0)
    for kb = 0, A.k_blocks - 1 do
      -- Fetch the next fragments before this product.
      if kb + 1 < A.k_blocks then
        A.fetch(stage, kb + 1)
        B.fetch(stage, kb + 1)
      end
      if kb == 0 then  -- load the next tile after the first fragments
        cute.when(cute.lt(k_tile + 1, A.k_tiles), function()
          A.load(k_tile + 1, 1 - stage)
          B.load(k_tile + 1, 1 - stage)
        end)
        cute.arch.cp_async_commit_group()
      end
      cute.gemm(mma, C.acc, A.frag(_, _, kb), B.frag(_, _, kb), C.acc)
    end
    stage = 1 - stage
  end

  C.store(alpha, beta)
end)

lesson.gemm(arg, {
  kernel = gemm, tile = {BM, BN, BK}, block = mma:size(),
  about = "C = A B^T in bf16, copies overlap multiplication (sm_80).",
})
-- SPDX-License-Identifier: MIT
