-- Fault: a commit releases the operands, but none signals the accumulators.
-- expect: cutelua: simulator: kernel gemm: 1 fault [kernel-fault]
-- expect: spec/faults/tensor-memory/commit_elsewhere.lua:78 in main chunk
-- expect: commit_elsewhere.lua:58: no warp can go on: 4 warps wait (warp 0, 1,
--   2, 3) at mbarrier 'bar'[0] for the end of phase 0 (parity 0), which lacks 1
--   of 1 arrival [deadlock]
-- expect: coordinate 0 of 1:0
-- expect: made: commit_elsewhere.lua:32
-- expect: no instruction arrives there: if it signals the end of MMAs, let the
--   thread that issued them call tcgen05.commit(mbarrier)
local cute = require "cute"
local arch, tcgen05, _ = cute.arch, cute.nvgpu.tcgen05, cute._

local atom = tcgen05.make_smem_layout_atom("K_SW64", cute.bf16)
local tile = cute.tile_to_shape(atom, {128, 32})
local rows = cute.tile_to_shape(atom, {64, 32})
local mma = cute.make_tiled_mma(
  tcgen05.MmaF16BF16Op(cute.bf16, cute.f32, {128, 64, 16}))
local t2r = cute.make_copy_atom(tcgen05.Ld32x32bOp(32), cute.f32)

-- C (128,64) = A (128,32) B (64,32)^T by four warps.
local gemm = cute.kernel("gemm", function(A, B, C)
  local tid, warp = arch.thread_idx(), arch.warp_idx()
  local sA = cute.make_smem_tensor(cute.bf16, tile, 1024)
  local sB = cute.make_smem_tensor(cute.bf16, rows, 1024)
  local bar, free = arch.alloc_smem(cute.i64, 1), arch.alloc_smem(cute.i64, 1)
  local address = arch.alloc_smem(cute.i32, 1)
  cute.when(warp:eq(0), function()
    arch.alloc_tmem(64, address)
    arch.relinquish_tmem_alloc_permit()
    cute.when(tid:eq(0), function()
      arch.mbarrier_init(bar, 1)
      arch.mbarrier_init(free, 1)
      arch.mbarrier_init_fence()
    end)
  end)
  for k = 0, 31 do
    sA[{tid, k}] = A[{tid, k}]
    cute.when(tid:lt(64), function() sB[{tid, k}] = B[{tid, k}] end)
  end
  arch.fence_view_async_shared()
  arch.tcgen05_before_thread_sync()
  arch.sync_threads()
  arch.tcgen05_after_thread_sync()
  local thr = mma:get_slice(0)
  local tCrA = mma:make_fragment_A(thr:partition_A(sA))
  local tCrB = mma:make_fragment_B(thr:partition_B(sB))
  local tCgC = thr:partition_C(C)
  local ptr = arch.retrieve_tmem_ptr(cute.f32, 16, address)
  local sums = cute.make_tensor(ptr, mma:make_fragment_C(tCgC).layout)
  cute.when(tid:eq(0), function()
    mma:set(tcgen05.Field.ACCUMULATE, false)
    cute.gemm(mma, sums, tCrA, tCrB, sums)
    tcgen05.commit(free)
    -- mend: tcgen05.commit(bar)
  end)
  arch.mbarrier_wait(free, 0)
  arch.mbarrier_wait(bar, 0)
  arch.tcgen05_after_thread_sync()
  local tC = sums({_, _}, 0, 0)
  local load = tcgen05.make_tmem_copy(t2r, tC)
  local of = load:get_slice(tid)
  local from, to = of:partition_S(tC), of:partition_D(C)
  local r = cute.make_rmem_tensor(to.shape, cute.f32)
  cute.copy(load, from, r)
  arch.fence_view_async_tmem_load()
  cute.autovec_copy(r, to)
  arch.tcgen05_before_thread_sync()
  arch.sync_threads()
  arch.tcgen05_after_thread_sync()
  cute.when(warp:eq(0), function()
    arch.dealloc_tmem(ptr, 64)
  end)
end)

local A, B = cute.rand({128, 32}, cute.bf16), cute.rand({64, 32}, cute.bf16)
local C = cute.zeros({128, 64}, cute.f32)
gemm(A, B, C):launch {grid = 1, block = 128, device = "sim:sm_100a", seed = 1}
-- SPDX-License-Identifier: MIT
