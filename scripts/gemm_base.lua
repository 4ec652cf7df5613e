-- Tensor cores, one stage: C = A B^T in bf16.
--
-- A block computes a 128x128 tile of C. It brings a tile of A and of B into
-- shared memory, waits for it, multiplies it, and only then asks for the
-- next: the tensor cores are idle while the copies are under way, and other
-- blocks of the same multiprocessor are all that fills the gap.
--   cutelua scripts/gemm_base.lua --help
local cute = require "cute"
local lesson = require "cute.bench.lesson"
local tiles = require "cute.tiles"
local _ = cute._

local BM, BN, BK = 128, 128, 64
local mma = cute.make_tiled_mma("SM80_16x8x16_F32BF16BF16F32_TN",
  {2, 2, 1}, {32, 32, 16})

local gemm = cute.kernel("gemm_base", function(mA, mB, mC, alpha, beta)
  local m_tiles = tiles.count(cute.size(mC, 0), BM)
  local block = cute.arch.block_idx()
  local bm, bn = block % m_tiles, block // m_tiles
  local A = tiles.operand(mA, {of = mma, which = "A", tile = {BM, BK},
                               at = bm, stages = 1})
  local B = tiles.operand(mB, {of = mma, which = "B", tile = {BN, BK},
                               at = bn, stages = 1})
  local C = tiles.result(mC, mma, {BM, BN}, {bm, bn})
  C.acc:fill(0)

  for k_tile in cute.range(A.k_tiles) do
    A.load(k_tile, 0)
    B.load(k_tile, 0)
    cute.arch.cp_async_commit_group()
    cute.arch.cp_async_wait_group(0)
    cute.arch.sync_threads()  -- the tile is there, for all threads
    for kb = 0, A.k_blocks - 1 do
      A.fetch(0, kb)
      B.fetch(0, kb)
      cute.gemm(mma, C.acc, A.frag(_, _, kb), B.frag(_, _, kb), C.acc)
    end
    cute.arch.sync_threads()  -- all have read it: the next may come
  end

  C.store(alpha, beta)
end)

lesson.gemm(arg, {
  kernel = gemm, tile = {BM, BN, BK}, block = mma:size(),
  about = "C = A B^T in bf16 on tensor cores, one tile at a time (sm_80).",
})
