-- Volta: tensor cores before cp.async and ldmatrix, in f16.
--
-- The atom is 8x8x4 and belongs to eight threads of a warp, a quad pair. A warp
-- executes four atoms at once. Data passes through registers. A tile is loaded
-- from global memory before the previous tile is multiplied, and stored to
-- shared memory after it, so the memory latency is hidden. Fragments are loaded
-- by 8-byte loads, because a thread of the atom holds 4 adjacent elements of K.
--   cutelua scripts/gemm_sm70.lua --device sim --arch sm_70
local cute = require "cute"
local lesson = require "cutelua.bench.lesson"
local tiles = require "cute.tiles"
local _ = cute._

local BM, BN, BK = 128, 128, 32
-- Four quad pairs, 2x2, form a warp; four warps, 2x2, form a block. Lanes 0 to
-- 15 load rows 0 to 3 of two quad pairs at a time. In the layout `rows`, rows 0
-- to 3 of the second quad pair are rows 4 to 7 of the tile. The 8 rows that
-- these lanes load are thus in different banks.
local rows = cute.make_layout({4, 2, 2, 2}, {1, 8, 4, 16})
local mma = cute.make_tiled_mma("SM70_8x8x4_F32F16F16F32_TN",
  cute.make_layout({{2, 2}, {2, 2}, 1}, {{1, 4}, {2, 8}, 0}),
  {rows, rows, 4})
local fetch = cute.make_copy_atom("UniversalCopy", cute.f16, 64)

local gemm = cute.kernel("gemm_sm70", function(mA, mB, mC, alpha, beta)
  local m_tiles = tiles.count(cute.size(mC, 0), BM)
  local block = cute.arch.block_idx()
  local bm, bn = block % m_tiles, block // m_tiles
  local A = tiles.operand(mA, {of = mma, which = "A", tile = {BM, BK},
    at = bm, stages = 1, arch = 70, atom = fetch})
  local B = tiles.operand(mB, {of = mma, which = "B", tile = {BN, BK},
    at = bn, stages = 1, arch = 70, atom = fetch})
  local C = tiles.result(mC, mma, {BM, BN}, {bm, bn})
  C.acc:fill(0)

  A.load(0, 0)
  B.load(0, 0)
  cute.arch.sync_threads()
  for k_tile in cute.range(A.k_tiles) do
    local more = cute.lt(k_tile + 1, A.k_tiles)
    cute.when(more, function()
      A.take(k_tile + 1)
      B.take(k_tile + 1)
    end)
    for kb = 0, A.k_blocks - 1 do
      A.fetch(0, kb)
      B.fetch(0, kb)
      cute.gemm(mma, C.acc, A.block(kb), B.block(kb), C.acc)
    end
    cute.arch.sync_threads()  -- all threads have read the tile
    cute.when(more, function()
      A.put(0)
      B.put(0)
    end)
    cute.arch.sync_threads()  -- the next tile has arrived
  end

  C.store(alpha, beta)
end)

lesson.gemm(arg, {
  kernel = gemm, tile = {BM, BN, BK}, block = mma:size(),
  types = {"f16", "f16", "f16"}, archs = {"sm_70", "sm_90a"},
  about = "C = A B^T in f16 with Volta's 8x8x4 tensor cores (sm_70).",
})
-- SPDX-License-Identifier: MIT
