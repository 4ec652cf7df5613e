-- Warp roles: C = A B^T in bf16, one warp loads and eight multiply.
--
-- In gemm_tma.lua the thread that loads also multiplies, so its loads interrupt
-- the multiplication. Here a ninth warp only issues loads, as far ahead as the
-- stages allow. The multiplying warps only wait for full stages. They are two
-- warpgroups that share a tile of 128 x 256. Such a tile needs 3/4 of the bytes
-- per product of a 128 x 128 tile.
--
-- mbarriers signal full and empty stages (PipelineTmaAsync). The bytes of TMA
-- fill a stage. One lane of each warp that has read a stage releases it.
--   cutelua scripts/gemm_ws.lua --help
local cute = require "cute"
local gemm_sm80 = require "kernels.gemm_sm80"
local lesson = require "cutelua.bench.lesson"
local tiles = require "cute.tiles"
local cpasync, warpgroup = cute.nvgpu.cpasync, cute.nvgpu.warpgroup
local pipeline = cute.pipeline
local Agent, Group = pipeline.Agent, pipeline.CooperativeGroup
local _ = cute._

local BM, BN, BK, STAGES, WARPGROUPS = 128, 256, 64, 4, 2

local atom = warpgroup.make_smem_layout_atom("K_SW128", cute.bf16)
local sA_layout = cute.tile_to_shape(atom, {BM, BK, STAGES})  -- (BM,BK,PIPE)
local sB_layout = cute.tile_to_shape(atom, {BN, BK, STAGES})  -- (BN,BK,PIPE)
-- Two warpgroups multiply 64 rows each.
local mma = cute.make_tiled_mma(warpgroup.MmaF16BF16Op(cute.bf16, cute.f32,
  {64, BN, 16}, "SMEM"), cute.make_layout {WARPGROUPS, 1, 1})

-- Returns a tile's partitions: (TMA,PIPE) of smem, (TMA,k) of coordinates.
local function copies(tma, s, coords, rows, at)
  local g = cute.local_tile(coords, {rows, BK}, {at, _})        -- (rows,BK,k)
  local into, from = cpasync.tma_partition(tma, 0, cute.make_layout(1),
    cute.group_modes(s, 0, 2), cute.group_modes(g, 0, 2))
  return {tma = tma, from = from, into = into}
end

local function load(pipe, A, B, k_tiles)
  local write = pipe:make_producer_state()
  for k_tile in cute.range(k_tiles) do
    pipe:producer_acquire(write)
    local full = {tma_bar_ptr = pipe:producer_get_barrier(write)}
    cute.copy(A.tma, A.from(_, k_tile), A.into(_, write.index), full)
    cute.copy(B.tma, B.from(_, k_tile), B.into(_, write.index), full)
    write:advance()
  end
  pipe:producer_tail(write)
end

local function multiply(pipe, sA, sB, acc, k_tiles)
  local thr = mma:get_slice((cute.arch.thread_idx()))
  local tCrA = mma:make_fragment_A(thr:partition_A(sA))         -- (1,M,K,PIPE)
  local tCrB = mma:make_fragment_B(thr:partition_B(sB))
  local read = pipe:make_consumer_state()
  local before = read:clone()
  for k_tile in cute.range(k_tiles) do
    pipe:consumer_wait(read)
    warpgroup.fence()
    mma:set(warpgroup.Field.ACCUMULATE, cute.gt(k_tile, 0))
    cute.gemm(mma, acc, tCrA(_, _, _, read.index), tCrB(_, _, _, read.index),
              acc)
    warpgroup.commit_group()
    warpgroup.wait_group(1)   -- wgmma has read tile k - 1: its stage is free
    cute.when(cute.gt(k_tile, 0), function() pipe:consumer_release(before) end)
    before.index = read.index
    read:advance()
  end
  warpgroup.wait_group(0)
  pipe:consumer_release(before)
end

local gemm = cute.kernel("gemm_ws", function(tma_a, cA, tma_b, cB, mC, alpha,
                                             beta)
  local tid = cute.arch.thread_idx()
  local warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
  local bm, bn = tiles.raster(cute.arch.block_idx(),
    tiles.count(mC.shape[1], BM), tiles.count(mC.shape[2], BN), 8)
  local sA = cute.make_smem_tensor(cute.bf16, sA_layout, 1024)
  local sB = cute.make_smem_tensor(cute.bf16, sB_layout, 1024)
  local pipe = pipeline.PipelineTmaAsync {
    num_stages = STAGES, tx_count = tma_a.tx_bytes + tma_b.tx_bytes,
    producer_group = Group(Agent.Thread),
    consumer_group = Group(Agent.Warp, 4 * WARPGROUPS)}
  local k_tiles = tiles.count(cute.size(cA, 1), BK)

  cute.when(warp:ge(4 * WARPGROUPS), function()
    cute.when(tid:eq(mma:size()), function()
      load(pipe, copies(tma_a, sA, cA, BM, bm), copies(tma_b, sB, cB, BN, bn),
           k_tiles)
    end)
  end, function()
    local C = tiles.result(mC, mma, {BM, BN}, {bm, bn})
    multiply(pipe, sA, sB, C.acc, k_tiles)
    C.store(alpha or 1, beta or 0)
  end)
end)

-- Creates the TMA atom and the coordinates of A or B.
local function map(X, layout, rows)
  return cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileG2SOp(), X,
                                     layout(_, _, 0), {rows, BK})
end

lesson.gemm(arg, {
  kernel = gemm, tile = {BM, BN, BK}, block = mma:size() + 32,
  arguments = function(A, B, C, alpha, beta)
    local a, cA = map(A, sA_layout, BM)
    local b, cB = map(B, sB_layout, BN)
    return a, cA, b, cB, C, alpha, beta
  end,
  takes = lesson.rows_of_16, needs = "wgmma",
  general = gemm_sm80 {tile = {128, 128, 64}, stages = 2}, archs = {"sm_90a"},
  about = "C = A B^T in bf16 by a warp that loads and two warpgroups that "
    .. "multiply (sm_90a).",
})
-- SPDX-License-Identifier: MIT
