-- Tensor memory: C = A B^T in bf16 on Blackwell's tensor cores (tcgen05), with
-- TMA loads.
--
-- wgmma keeps its sums in the registers of 128 threads. tcgen05.mma keeps them
-- in tensor memory, which has 128 lanes and 512 columns and belongs to the
-- block. So one thread issues the MMAs of the whole block, and the sums use no
-- registers until the epilogue. A block of four warps has three roles:
--   warp 0   one thread loads tiles by TMA
--   warp 1   one thread issues MMAs of 128x128x16
--   warp 2   allocates and frees tensor memory
-- A commit arrives on an mbarrier when the MMAs before it have completed. It
-- frees a stage for TMA. After the last tile it allows all warps to load the
-- sums, each from its own 32 lanes.
--   cutelua scripts/gemm_tcgen05.lua --help
local cute = require "cute"
local gemm_sm80 = require "kernels.gemm_sm80"
local lesson = require "cutelua.bench.lesson"
local tiles = require "cute.tiles"
local cpasync, tcgen05 = cute.nvgpu.cpasync, cute.nvgpu.tcgen05
local pipeline, arch, _ = cute.pipeline, cute.arch, cute._

local BM, BN, BK, STAGES = 128, 128, 64, 4

local atom = tcgen05.make_smem_layout_atom("K_SW128", cute.bf16)
local sA_layout = cute.tile_to_shape(atom, {BM, BK, STAGES})  -- (BM,BK,PIPE)
local sB_layout = cute.tile_to_shape(atom, {BN, BK, STAGES})  -- (BN,BK,PIPE)
local mma = cute.make_tiled_mma(
  tcgen05.MmaF16BF16Op(cute.bf16, cute.f32, {BM, BN, 16}))
local t2r = cute.make_copy_atom(tcgen05.Ld32x32bOp(32), cute.f32)

local gemm = cute.kernel("gemm_tcgen05", function(tma_a, cA, tma_b, cB, mC,
                                                  alpha, beta)
  local warp = arch.warp_idx()
  local bm, bn = tiles.raster(arch.block_idx(),
    tiles.count(mC.shape[1], BM), tiles.count(mC.shape[2], BN), 8)
  local sA = cute.make_smem_tensor(cute.bf16, sA_layout, 1024)
  local sB = cute.make_smem_tensor(cute.bf16, sB_layout, 1024)
  local One = pipeline.CooperativeGroup(pipeline.Agent.Thread)
  local pipe = pipeline.PipelineTmaUmma {
    num_stages = STAGES, tx_count = tma_a.tx_bytes + tma_b.tx_bytes,
    producer_group = One, consumer_group = One, defer_sync = true}
  local sums = pipeline.PipelineUmmaAsync {num_stages = 1,
    producer_group = One, consumer_group = One, defer_sync = true}
  local address = arch.alloc_smem(cute.i32, 1)
  cute.when(warp:eq(2), function()
    arch.alloc_tmem(BN, address)
    arch.relinquish_tmem_alloc_permit()
  end)
  arch.tcgen05_before_thread_sync()
  pipeline.agent_sync()
  arch.tcgen05_after_thread_sync()

  local function partition(tma, s, g)  -- returns (TMA,PIPE) and (TMA,k)
    return cpasync.tma_partition(tma, 0, cute.make_layout(1),
      cute.group_modes(s, 0, 2), cute.group_modes(g, 0, 2))
  end
  local gA = cute.local_tile(cA, {BM, BK}, {bm, _})             -- (BM,BK,k)
  local gB = cute.local_tile(cB, {BN, BK}, {bn, _})             -- (BN,BK,k)
  local k_tiles = cute.size(gA, 2)
  local thr = mma:get_slice(0)
  local tCrA = mma:make_fragment_A(thr:partition_A(sA))         -- (1,M,K,PIPE)
  local tCrB = mma:make_fragment_B(thr:partition_B(sB))
  local ptr = arch.retrieve_tmem_ptr(cute.f32, 16, address)
  local tCtC = cute.make_tensor(ptr,                            -- (MMA,M,N)
    mma:make_fragment_C(mma:partition_shape_C {BM, BN}).layout)

  cute.when(warp:eq(0) & arch.elect_one(), function()
    local tAsA, tAgA = partition(tma_a, sA, gA)
    local tBsB, tBgB = partition(tma_b, sB, gB)
    local write = pipe:make_producer_state()
    for k_tile in cute.range(k_tiles) do
      pipe:producer_acquire(write)
      local full = {tma_bar_ptr = pipe:producer_get_barrier(write)}
      cute.copy(tma_a, tAgA(_, k_tile), tAsA(_, write.index), full)
      cute.copy(tma_b, tBgB(_, k_tile), tBsB(_, write.index), full)
      write:advance()
    end
  end)
  cute.when(warp:eq(1) & arch.elect_one(), function()
    local read = pipe:make_consumer_state()
    for k_tile in cute.range(k_tiles) do
      pipe:consumer_wait(read)
      mma:set(tcgen05.Field.ACCUMULATE, cute.gt(k_tile, 0))
      cute.gemm(mma, tCtC, tCrA(_, _, _, read.index),
                tCrB(_, _, _, read.index), tCtC)
      pipe:consumer_release(read)
      read:advance()
    end
    sums:producer_commit(sums:make_producer_state())
  end)
  arch.sync_warp()

  sums:consumer_wait(sums:make_consumer_state())
  arch.tcgen05_after_thread_sync()
  local tC = tCtC({_, _}, 0, 0)                                 -- (BM,BN)
  local load = tcgen05.make_tmem_copy(t2r, tC)
  local tid = arch.thread_idx()
  local C = tiles.result(mC, load, {BM, BN}, {bm, bn}, tid)
  cute.copy(load, load:get_slice(tid):partition_S(tC), C.acc)
  arch.fence_view_async_tmem_load()
  C.store(alpha or 1, beta or 0)
  arch.tcgen05_before_thread_sync()
  arch.sync_threads()
  arch.tcgen05_after_thread_sync()
  cute.when(warp:eq(2), function() arch.dealloc_tmem(ptr, BN) end)
end)

-- Creates the TMA atom and the coordinates of A or B.
local function load(X, layout, rows)
  return cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileG2SOp(), X,
                                     layout(_, _, 0), {rows, BK})
end

lesson.gemm(arg, {
  kernel = gemm, tile = {BM, BN, BK}, block = 128,
  arguments = function(A, B, C, alpha, beta)
    local a, cA = load(A, sA_layout, BM)
    local b, cB = load(B, sB_layout, BN)
    return a, cA, b, cB, C, alpha, beta
  end,
  takes = lesson.rows_of_16, needs = "tcgen05", arch = "sm_100a",
  general = gemm_sm80 {tile = {BM, BN, BK}, stages = 2}, archs = {"sm_100a"},
  about = "C = A B^T in bf16 by TMA and tcgen05 (sm_100a).",
})
-- SPDX-License-Identifier: MIT
