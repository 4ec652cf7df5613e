-- Fault: the second product overwrites accumulators that are still loaded.
-- expect: cutelua: simulator: kernel gemm: 2 faults [kernel-fault]
-- expect: spec/faults/tensor-memory/pair_no_acquire.lua:126 in main chunk
-- expect: pair_no_acquire.lua:89: write after the read of column 0 of tensor
--   memory by a load, with no barrier in between [tensor-memory]
-- expect: first access: pair_no_acquire.lua:108
-- expect: no thread waits at the mbarrier of the readers: wait there before the
--   MMAs of a stage, as pipe:producer_acquire(state) does
-- expect: pair_no_acquire.lua:94: mbarrier 'acc_full'[0] counts 1 arrival a
--   phase; nothing orders this arrival after the end of phase 0: that phase may
--   count it instead of another arrival [mbarrier]
-- expect: coordinate 0 of 1:0
-- expect: the other: pair_no_acquire.lua:42
-- expect: initialize the mbarrier with the number of all arrivals in a phase
--   (in a pipeline, producer_group or consumer_group); a thread must wait for
--   the end of the phase before it arrives again (for a stage, until it is
--   empty)
local cute = require "cute"
local arch, pipeline, _ = cute.arch, cute.pipeline, cute._
local cpasync, tcgen05 = cute.nvgpu.cpasync, cute.nvgpu.tcgen05
local sm100, PAIR = cute.utils.blackwell_helpers, tcgen05.CtaGroup.TWO

local tile, TILES = {256, 64, 32}, 4
local mma = cute.make_tiled_mma(
  tcgen05.MmaF16BF16Op(cute.bf16, cute.f32, {256, 64, 16}, PAIR))
local sA_layout = sm100.make_smem_layout_a(mma, tile, cute.bf16, 2)
local sB_layout = sm100.make_smem_layout_b(mma, tile, cute.bf16, 2)
local cluster = cute.tiled_divide(cute.make_layout {2, 1, 1}, {mma.thr_id})
local t2r = cute.make_copy_atom(tcgen05.Ld32x32bOp(32), cute.f32)

-- C (256,64) = A (256,128) B (64,128)^T by a pair of blocks: warps 0 to 2
-- load, multiply and allocate, warps 4 to 7 store.
local gemm = cute.kernel("gemm", function(tma_a, cA, tma_b, cB, C)
  local tid, warp = arch.thread_idx(), arch.warp_idx()
  local rank = arch.block_idx_in_cluster()
  local sA = cute.make_smem_tensor(cute.bf16, sA_layout, 1024)
  local sB = cute.make_smem_tensor(cute.bf16, sB_layout, 1024)
  local One = pipeline.CooperativeGroup(pipeline.Agent.Thread)
  local pipe = pipeline.PipelineTmaUmma {num_stages = 2,
    tx_count = 2 * (tma_a.tx_bytes + tma_b.tx_bytes), cta_layout_vmnk = cluster,
    producer_group = One, consumer_group = One, defer_sync = true}
  local acc = pipeline.PipelineUmmaAsync {num_stages = 1,
    producer_group = One, cta_layout_vmnk = cluster,
    consumer_group = pipeline.CooperativeGroup(pipeline.Agent.Warp, 8),
    defer_sync = true}
  local address = arch.alloc_smem(cute.i32, 1)
  cute.when(warp:eq(2), function()
    arch.alloc_tmem(64, address, true)
    arch.relinquish_tmem_alloc_permit(true)
  end)
  local function sync_pair()
    arch.tcgen05_before_thread_sync()
    pipeline.agent_sync(cluster)
    arch.tcgen05_after_thread_sync()
  end
  sync_pair()
  local thr = mma:get_slice(rank)
  local gA = thr:partition_A(cute.local_tile(cA, {256, 32}, {0, _}))
  local gB = thr:partition_B(cute.local_tile(cB, {64, 32}, {0, _}))
  local tCgC = thr:partition_C(C)
  local tCrA, tCrB = mma:make_fragment_A(sA), mma:make_fragment_B(sB)
  local ptr = arch.retrieve_tmem_ptr(cute.f32, 16, address)
  local sums = cute.make_tensor(ptr, mma:make_fragment_C(tCgC).layout)
  local function partition(tma, s, g)
    return cpasync.tma_partition(tma, 0, cute.make_layout(1),
      cute.group_modes(s, 0, 3), cute.group_modes(g, 0, 3))
  end
  cute.when(warp:eq(0) & arch.elect_one(), function()
    local tAsA, tAgA = partition(tma_a, sA, gA)
    local tBsB, tBgB = partition(tma_b, sB, gB)
    local write = pipe:make_producer_state()
    for k in cute.range(2 * TILES) do  -- the product is computed twice
      pipe:producer_acquire(write)
      local full = {tma_bar_ptr = pipe:producer_get_barrier(write)}
      cute.copy(tma_a, tAgA(_, k % TILES), tAsA(_, write.index), full)
      cute.copy(tma_b, tBgB(_, k % TILES), tBsB(_, write.index), full)
      write:advance()
    end
    pipe:producer_tail(write)
  end)
  cute.when(pipe.is_leader_cta & warp:eq(1) & arch.elect_one(), function()
    local read, part = pipe:make_consumer_state(), acc:make_producer_state()
    for _k in cute.range(2) do
      -- mend: acc:producer_acquire(part)
      arch.tcgen05_after_thread_sync()
      for k in cute.range(TILES) do
        pipe:consumer_wait(read)
        mma:set(tcgen05.Field.ACCUMULATE, cute.gt(k, 0))
        cute.gemm(mma, sums, tCrA(_, _, _, read.index),
                  tCrB(_, _, _, read.index), sums)
        pipe:consumer_release(read)
        read:advance()
      end
      acc:producer_commit(part)
      part:advance()
    end
  end)
  cute.when(warp:ge(4), function()
    local tC, gC = sums({_, _}, 0, 0), tCgC({_, _}, 0, 0)
    local load = tcgen05.make_tmem_copy(t2r, tC)
    local of = load:get_slice(tid - 128)
    local from, to = of:partition_S(tC), of:partition_D(gC)
    local part = acc:make_consumer_state()
    for _k in cute.range(2) do
      local r = cute.make_rmem_tensor(to.shape, cute.f32)
      acc:consumer_wait(part)
      arch.tcgen05_after_thread_sync()
      cute.copy(load, from, r)
      arch.fence_view_async_tmem_load()
      arch.tcgen05_before_thread_sync()
      arch.sync_warp()
      acc:consumer_release(part)
      part:advance()
      cute.basic_copy(r, to)
    end
  end)
  sync_pair()
  cute.when(warp:eq(2), function() arch.dealloc_tmem(ptr, 64, true) end)
end)

local A, B = cute.rand({256, 128}, cute.bf16), cute.rand({64, 128}, cute.bf16)
local C = cute.zeros({256, 64}, cute.f32)
local op = cpasync.CopyBulkTensorTileG2SOp(PAIR)
local a, cA = cute.nvgpu.make_tiled_tma_atom_A(op, A, sA_layout, tile, mma)
local b, cB = cute.nvgpu.make_tiled_tma_atom_B(op, B, sB_layout, tile, mma)
gemm(a, cA, b, cB, C):launch {grid = 2, block = 256, cluster = 2,
                              device = "sim:sm_100a", seed = 1}
-- SPDX-License-Identifier: MIT
