-- The order of the blocks: concurrent tiles share data in L2.
--
-- The kernel is that of gemm2stage.lua; only the mapping of blocks to tiles of
-- C differs. In column order, the 132 blocks that an H200 runs at a time form a
-- strip of C. They read few tiles of B but nearly all of A, and each strip
-- reads A from memory again. In groups of 8 tiles along M, the concurrent
-- blocks form nearly a square, which minimizes the reads of A and B.
--   cutelua scripts/gemm_l2swizzle.lua --help
local cute = require "cute"
local lesson = require "cutelua.bench.lesson"
local tiles = require "cute.tiles"
local _ = cute._

local BM, BN, BK, STAGES, GROUP = 128, 128, 64, 2, 8
local mma = cute.make_tiled_mma("SM80_16x8x16_F32BF16BF16F32_TN",
  {2, 2, 1}, {32, 32, 16})

-- Maps a block to a tile. Consecutive blocks go down 8 tiles of M, then
-- continue at the next tile of N.
local function tile_of(block, m_tiles, n_tiles)
  local first = block // (GROUP * n_tiles) * GROUP
  local rest = block % (GROUP * n_tiles)
  -- The height of this group. The last group can be smaller.
  local height = cute.min(GROUP, m_tiles - first)
  return first + rest % height, rest // height
end

local gemm = cute.kernel("gemm_l2swizzle", function(mA, mB, mC, alpha, beta)
  local bm, bn = tile_of(cute.arch.block_idx(),
    tiles.count(cute.size(mC, 0), BM), tiles.count(cute.size(mC, 1), BN))
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
    cute.arch.sync_threads()
    A.fetch(stage, 0)
    B.fetch(stage, 0)
    for kb = 0, A.k_blocks - 1 do
      if kb + 1 < A.k_blocks then
        A.fetch(stage, kb + 1)
        B.fetch(stage, kb + 1)
      end
      if kb == 0 then
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
  about = "C = A B^T in bf16, blocks in an order that suits L2 (sm_80).",
})
-- SPDX-License-Identifier: MIT
