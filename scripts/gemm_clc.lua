-- A persistent GEMM by cluster launch control: C = A B^T in bf16 on Blackwell,
-- with specialised warps.
--
-- In gemm_tcgen05.lua a block has one tile, so the loads of the next tile wait
-- for the epilogue. Here a block computes several tiles. The launch still has
-- one block per tile. A running block cancels a block that has not started, and
-- computes that block's tile. So no counter in memory is needed, and the number
-- of blocks that fit on the GPU does not matter. The roles of the warps are:
--   warp 0      loads tiles by TMA
--   warp 1      multiplies, into two parts of tensor memory alternately
--   warp 2      requests the next tile, and allocates tensor memory
--   warps 4-7   load sums from the other part and store them
-- All warps read the response, 16 bytes in shared memory. It contains the
-- position of the next tile, or states that there is none.
--   cutelua scripts/gemm_clc.lua --help
local cute = require "cute"
local gemm_sm80 = require "kernels.gemm_sm80"
local lesson = require "cutelua.bench.lesson"
local tiles = require "cute.tiles"
local cpasync, tcgen05 = cute.nvgpu.cpasync, cute.nvgpu.tcgen05
local pipeline, arch, _ = cute.pipeline, cute.arch, cute._
local Group, Agent = pipeline.CooperativeGroup, pipeline.Agent

local BM, BN, BK, STAGES, PARTS = 128, 128, 64, 4, 2

local atom = tcgen05.make_smem_layout_atom("K_SW128", cute.bf16)
local sA_layout = cute.tile_to_shape(atom, {BM, BK, STAGES})  -- (BM,BK,PIPE)
local sB_layout = cute.tile_to_shape(atom, {BN, BK, STAGES})  -- (BN,BK,PIPE)
local mma = cute.make_tiled_mma(
  tcgen05.MmaF16BF16Op(cute.bf16, cute.f32, {BM, BN, 16}))
local t2r = cute.make_copy_atom(tcgen05.Ld32x32bOp(32), cute.f32)

local function partition(tma, s, g)  -- returns (TMA,PIPE) and (TMA,k)
  return cpasync.tma_partition(tma, 0, cute.make_layout(1),
    cute.group_modes(s, 0, 2), cute.group_modes(g, 0, 2))
end

local gemm = cute.kernel("gemm_clc", function(tma_a, cA, tma_b, cB, mC, alpha,
                                              beta)
  local warp, tid = arch.warp_idx(), arch.thread_idx()
  local sA = cute.make_smem_tensor(cute.bf16, sA_layout, 1024)
  local sB = cute.make_smem_tensor(cute.bf16, sB_layout, 1024)
  local pipe = pipeline.PipelineTmaUmma {
    num_stages = STAGES, tx_count = tma_a.tx_bytes + tma_b.tx_bytes,
    producer_group = Group(Agent.Thread), consumer_group = Group(Agent.Thread),
    defer_sync = true}
  local sums = pipeline.PipelineUmmaAsync {num_stages = PARTS,
    producer_group = Group(Agent.Thread), consumer_group = Group(Agent.Warp, 4),
    defer_sync = true}
  local answers = pipeline.PipelineClcFetchAsync {num_stages = 1,
    producer_group = Group(Agent.Thread), consumer_group = Group(Agent.Warp, 7),
    defer_sync = true}
  local blocks = cute.utils.ClcDynamicPersistentTileScheduler(
    cute.utils.ClcDynamicPersistentTileSchedulerParams {
      tiles.count(mC.shape[1], BM), tiles.count(mC.shape[2], BN)}, nil, nil,
    arch.alloc_smem(cute.i32, 4, 16))
  local address = arch.alloc_smem(cute.i32, 1)
  cute.when(warp:eq(2), function()
    arch.alloc_tmem(PARTS * BN, address)
    arch.relinquish_tmem_alloc_permit()
  end)
  arch.tcgen05_before_thread_sync()
  pipeline.agent_sync()
  arch.tcgen05_after_thread_sync()

  -- Calls f(bm, bn) for each tile of this block, in all lanes of a warp.
  local function each_tile(f)
    local read = answers:make_consumer_state()
    local work = blocks:initial_work_tile_info()
    local bm, bn, valid = work.tile_idx[1], work.tile_idx[2], warp:ge(0)
    cute.loop(function() return valid end, function()
      f(bm, bn)
      answers:consumer_wait(read)
      local next_work = blocks:get_current_work()
      bm, bn = next_work.tile_idx[1], next_work.tile_idx[2]
      valid = next_work.is_valid_tile
      arch.sync_warp()
      answers:consumer_release(read)
      read:advance()
    end)
  end

  local ptr = arch.retrieve_tmem_ptr(cute.f32, 16, address)
  local tCtC = cute.make_tensor(ptr, mma:make_fragment_C(      -- (MMA,M,N,PART)
    cute.append(mma:partition_shape_C {BM, BN}, PARTS)).layout)
  local one = arch.elect_one()

  cute.when(warp:eq(0), function()
    local write = pipe:make_producer_state()
    each_tile(function(bm, bn)
      local gA = cute.local_tile(cA, {BM, BK}, {bm, _})         -- (BM,BK,k)
      local gB = cute.local_tile(cB, {BN, BK}, {bn, _})         -- (BN,BK,k)
      local tAsA, tAgA = partition(tma_a, sA, gA)
      local tBsB, tBgB = partition(tma_b, sB, gB)
      for k_tile in cute.range(cute.size(gA, 2)) do
        cute.when(one, function()
          pipe:producer_acquire(write)
          local full = {tma_bar_ptr = pipe:producer_get_barrier(write)}
          cute.copy(tma_a, tAgA(_, k_tile), tAsA(_, write.index), full)
          cute.copy(tma_b, tBgB(_, k_tile), tBsB(_, write.index), full)
        end)
        write:advance()
      end
    end)
  end)

  cute.when(warp:eq(1), function()
    local thr = mma:get_slice(0)
    local tCrA = mma:make_fragment_A(thr:partition_A(sA))       -- (1,M,K,PIPE)
    local tCrB = mma:make_fragment_B(thr:partition_B(sB))
    local k_tiles = tiles.count(cA.shape[2], BK)
    local read, part = pipe:make_consumer_state(), sums:make_producer_state()
    each_tile(function()
      cute.when(one, function()
        sums:producer_acquire(part)
        arch.tcgen05_after_thread_sync()
      end)
      for k_tile in cute.range(k_tiles) do
        cute.when(one, function()
          pipe:consumer_wait(read)
          mma:set(tcgen05.Field.ACCUMULATE, cute.gt(k_tile, 0))
          local acc = tCtC(_, _, _, part.index)
          cute.gemm(mma, acc, tCrA(_, _, _, read.index),
                    tCrB(_, _, _, read.index), acc)
          pipe:consumer_release(read)
        end)
        read:advance()
      end
      cute.when(one, function() sums:producer_commit(part) end)
      part:advance()
    end)
  end)

  cute.when(warp:eq(2), function()
    local write = answers:make_producer_state()
    each_tile(function()
      cute.when(one, function()
        answers:producer_acquire(write)
        blocks:advance_to_next_work(answers:producer_get_barrier(write))
      end)
      write:advance()
    end)
  end)

  cute.when(warp:ge(4), function()
    local part = sums:make_consumer_state()
    each_tile(function(bm, bn)
      sums:consumer_wait(part)
      arch.tcgen05_after_thread_sync()
      local tC = tCtC({_, _}, 0, 0, part.index)                 -- (BM,BN)
      local load = tcgen05.make_tmem_copy(t2r, tC)
      local C = tiles.result(mC, load, {BM, BN}, {bm, bn}, tid - 128)
      cute.copy(load, load:get_slice(tid - 128):partition_S(tC), C.acc)
      arch.fence_view_async_tmem_load()
      arch.tcgen05_before_thread_sync()
      arch.sync_warp()
      sums:consumer_release(part)
      C.store(alpha or 1, beta or 0)
      part:advance()
    end)
  end)

  arch.sync_threads()
  arch.tcgen05_after_thread_sync()
  cute.when(warp:eq(2), function() arch.dealloc_tmem(ptr, PARTS * BN) end)
end)

-- Creates the TMA atom and the coordinates of A or B.
local function load(X, layout, rows)
  return cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileG2SOp(), X,
                                     layout(_, _, 0), {rows, BK})
end

lesson.gemm(arg, {
  kernel = gemm, tile = {BM, BN, BK}, block = 256,
  grid = function(m, n) return {tiles.count(m, BM), tiles.count(n, BN), 1} end,
  arguments = function(A, B, C, alpha, beta)
    local a, cA = load(A, sA_layout, BM)
    local b, cB = load(B, sB_layout, BN)
    return a, cA, b, cB, C, alpha, beta
  end,
  takes = lesson.rows_of_16, needs = "tcgen05", arch = "sm_100a",
  general = gemm_sm80 {tile = {BM, BN, BK}, stages = 2}, archs = {"sm_100a"},
  about = "C = A B^T in bf16 by tcgen05, persistent by cluster launch control "
    .. "(sm_100a).",
})
-- SPDX-License-Identifier: MIT
