-- Fault: the stores of operands are not fenced before the MMA, in either block.
-- expect: cutelua: simulator: kernel gemm: 1 fault [kernel-fault]
-- expect: spec/faults/tensor-memory/pair_no_proxy_fence.lua:82 in main chunk
-- expect: pair_no_proxy_fence.lua:58: read by tcgen05.mma after a thread's
--   write, with no fence_proxy("async") in between: element 0 of shared tensor
--   'sA' [race]
-- expect: coordinate ((0,0),0,0,0) of Sw<2,3,3> o 0 o
--   ((128,16),1,2,1):((32,1),0,16,0)
-- expect: first access: pair_no_proxy_fence.lua:42, thread 0
-- expect: call fence_view_async_shared() in the threads that wrote, then
--   synchronize at a barrier
local cute = require "cute"
local arch, tcgen05, _ = cute.arch, cute.nvgpu.tcgen05, cute._
local sm100, PAIR = cute.utils.blackwell_helpers, tcgen05.CtaGroup.TWO

local tile = {256, 64, 32}
local mma = cute.make_tiled_mma(
  tcgen05.MmaF16BF16Op(cute.bf16, cute.f32, {256, 64, 16}, PAIR))
local sA_layout = sm100.make_smem_layout_a(mma, tile, cute.bf16, 1)
local sB_layout = sm100.make_smem_layout_b(mma, tile, cute.bf16, 1)
local t2r = cute.make_copy_atom(tcgen05.Ld32x32bOp(32), cute.f32)

-- C (256,64) = A (256,32) B (64,32)^T by a pair of blocks of four warps.
local gemm = cute.kernel("gemm", function(A, B, C)
  local tid, warp = arch.thread_idx(), arch.warp_idx()
  local rank = arch.block_idx_in_cluster()
  local sA = cute.make_smem_tensor(cute.bf16, sA_layout, 1024)
  local sB = cute.make_smem_tensor(cute.bf16, sB_layout, 1024)
  local bar = arch.alloc_smem(cute.i64, 1)
  local address = arch.alloc_smem(cute.i32, 1)
  cute.when(warp:eq(0), function()
    arch.alloc_tmem(64, address, true)
    arch.relinquish_tmem_alloc_permit(true)
    cute.when(tid:eq(0), function()
      arch.mbarrier_init(bar, 1)
      arch.mbarrier_init_fence()
    end)
  end)
  local thr = mma:get_slice(rank)
  local gA, gB = thr:partition_A(A), thr:partition_B(B)
  for k = 0, 31 do
    sA[k * 128 + tid] = gA[k * 128 + tid]
    cute.when(cute.lt(k, 8), function()
      sB[k * 128 + tid] = gB[k * 128 + tid]
    end)
  end
  -- mend: arch.fence_view_async_shared()
  arch.tcgen05_before_thread_sync()
  arch.cluster_arrive()
  arch.cluster_wait()
  arch.tcgen05_after_thread_sync()
  local tCrA, tCrB = mma:make_fragment_A(sA), mma:make_fragment_B(sB)
  local tCgC = thr:partition_C(C)
  local ptr = arch.retrieve_tmem_ptr(cute.f32, 16, address)
  local sums = cute.make_tensor(ptr, mma:make_fragment_C(tCgC).layout)
  cute.when(rank:eq(0) & tid:eq(0), function()
    mma:set(tcgen05.Field.ACCUMULATE, false)
    cute.gemm(mma, sums, tCrA(_, _, _, 0), tCrB(_, _, _, 0), sums)
    tcgen05.commit(bar, 3, PAIR)
  end)
  arch.mbarrier_wait(bar, 0)
  arch.tcgen05_after_thread_sync()
  local tC, gC = sums({_, _}, 0, 0), tCgC({_, _}, 0, 0)
  local load = tcgen05.make_tmem_copy(t2r, tC)
  local of = load:get_slice(tid)
  local from, to = of:partition_S(tC), of:partition_D(gC)
  local r = cute.make_rmem_tensor(to.shape, cute.f32)
  cute.copy(load, from, r)
  arch.fence_view_async_tmem_load()
  cute.basic_copy(r, to)
  arch.tcgen05_before_thread_sync()
  arch.cluster_arrive()
  arch.cluster_wait()
  arch.tcgen05_after_thread_sync()
  cute.when(warp:eq(0), function()
    arch.dealloc_tmem(ptr, 64, true)
  end)
end)

local A, B = cute.rand({256, 32}, cute.bf16), cute.rand({64, 32}, cute.bf16)
local C = cute.zeros({256, 64}, cute.f32)
gemm(A, B, C):launch {grid = 2, block = 128, cluster = 2,
                      device = "sim:sm_100a", seed = 1}
-- SPDX-License-Identifier: MIT
