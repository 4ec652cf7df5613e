-- TMA loads the tiles: C = A B^T in bf16. One thread issues the loads, and a
-- warpgroup multiplies.
--
-- With cp.async, 128 threads execute 16 instructions each per tile, and compute
-- addresses for them. With TMA, a tensor map describes a whole matrix. One
-- thread passes the coordinates of a tile. The hardware writes the tile to
-- shared memory, swizzled for wgmma, with zeros beyond the edges. So any M, N
-- and K work if rows begin at multiples of 16 bytes.
--
-- mbarriers count the bytes that arrive. The pipeline has STAGES stages, each
-- with a full and an empty barrier (PipelineTmaAsync). The thread that issues
-- the loads also multiplies. It loads tile k + STAGES - 1 when tile k - 1 has
-- been read. Three stages use 96 KiB, so two blocks fit on an SM, and one
-- multiplies while the other stores its result.
--   cutelua scripts/gemm_tma.lua --help
local cute = require "cute"
local gemm_sm80 = require "kernels.gemm_sm80"
local lesson = require "cutelua.bench.lesson"
local tiles = require "cute.tiles"
local cpasync, warpgroup = cute.nvgpu.cpasync, cute.nvgpu.warpgroup
local pipeline = cute.pipeline
local _ = cute._

local BM, BN, BK, STAGES = 128, 128, 64, 3

local atom = warpgroup.make_smem_layout_atom("K_SW128", cute.bf16)
local sA_layout = cute.tile_to_shape(atom, {BM, BK, STAGES})  -- (BM,BK,PIPE)
local sB_layout = cute.tile_to_shape(atom, {BN, BK, STAGES})  -- (BN,BK,PIPE)
local mma = cute.make_tiled_mma(warpgroup.MmaF16BF16Op(cute.bf16, cute.f32,
  {64, BN, 16}, "SMEM"))

local gemm = cute.kernel("gemm_tma", function(tma_a, cA, tma_b, cB, mC, alpha,
                                              beta)
  local tid = cute.arch.thread_idx()
  local bm, bn = tiles.raster(cute.arch.block_idx(),
    tiles.count(mC.shape[1], BM), tiles.count(mC.shape[2], BN), 8)
  local sA = cute.make_smem_tensor(cute.bf16, sA_layout, 1024)
  local sB = cute.make_smem_tensor(cute.bf16, sB_layout, 1024)
  local Group = pipeline.CooperativeGroup
  local pipe = pipeline.PipelineTmaAsync {
    num_stages = STAGES, tx_count = tma_a.tx_bytes + tma_b.tx_bytes,
    producer_group = Group(pipeline.Agent.Thread),
    consumer_group = Group(pipeline.Agent.Warp, 4)}

  -- Partitions tiles for the TMA atom: (TMA,PIPE) of shared memory and (TMA,k)
  -- of coordinates.
  local function partition(tma, s, g)
    return cpasync.tma_partition(tma, 0, cute.make_layout(1),
      cute.group_modes(s, 0, 2), cute.group_modes(g, 0, 2))
  end
  local gA = cute.local_tile(cA, {BM, BK}, {bm, _})             -- (BM,BK,k)
  local gB = cute.local_tile(cB, {BN, BK}, {bn, _})             -- (BN,BK,k)
  local tAsA, tAgA = partition(tma_a, sA, gA)
  local tBsB, tBgB = partition(tma_b, sB, gB)
  local k_tiles = cute.size(gA, 2)

  local write, read = pipe:make_producer_state(), pipe:make_consumer_state()
  local function ask(k_tile)
    cute.when(tid:eq(0) & cute.lt(k_tile, k_tiles), function()
      pipe:producer_acquire(write)
      local full = {tma_bar_ptr = pipe:producer_get_barrier(write)}
      cute.copy(tma_a, tAgA(_, k_tile), tAsA(_, write.index), full)
      cute.copy(tma_b, tBgB(_, k_tile), tBsB(_, write.index), full)
    end)
    write:advance()
  end

  local thr = mma:get_slice(tid)
  local tCrA = mma:make_fragment_A(thr:partition_A(sA))         -- (1,M,K,PIPE)
  local tCrB = mma:make_fragment_B(thr:partition_B(sB))
  local C = tiles.result(mC, mma, {BM, BN}, {bm, bn})

  for k_tile = 0, STAGES - 2 do ask(k_tile) end
  local before = read:clone()
  for k_tile in cute.range(k_tiles) do
    pipe:consumer_wait(read)
    warpgroup.fence()
    mma:set(warpgroup.Field.ACCUMULATE, cute.gt(k_tile, 0))
    cute.gemm(mma, C.acc, tCrA(_, _, _, read.index), tCrB(_, _, _, read.index),
              C.acc)
    warpgroup.commit_group()
    warpgroup.wait_group(1)   -- wgmma has read tile k - 1: its stage is free
    cute.when(cute.gt(k_tile, 0), function() pipe:consumer_release(before) end)
    before.index = read.index
    read:advance()
    ask(k_tile + STAGES - 1)
  end
  warpgroup.wait_group(0)
  C.store(alpha or 1, beta or 0)
end)

-- Creates the TMA atom and the coordinates of A or B.
local function load(X, layout, rows)
  return cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileG2SOp(), X,
                                     layout(_, _, 0), {rows, BK})
end

lesson.gemm(arg, {
  kernel = gemm, tile = {BM, BN, BK}, block = mma:size(),
  arguments = function(A, B, C, alpha, beta)
    local a, cA = load(A, sA_layout, BM)
    local b, cB = load(B, sB_layout, BN)
    return a, cA, b, cB, C, alpha, beta
  end,
  takes = lesson.rows_of_16, needs = "wgmma",
  general = gemm_sm80 {tile = {BM, BN, BK}, stages = 2}, archs = {"sm_90a"},
  about = "C = A B^T in bf16 by TMA and one warpgroup's wgmma (sm_90a).",
})
-- SPDX-License-Identifier: MIT
