-- Fault: the MMA needs scale factors of type ue8m0, but the tensors have e4m3.
-- expect: cutelua: cute.gemm:
--   SM100_MMA_MXF4_SS<…float_ue8m0_t,128,64,16,K,K> needs the scales
--   of A in tensor memory with elements of ue8m0, got ptr[e4m3,tmem]+256 o
--   ((((32,4),4),(16,4)),1,2):((((262144,4),8388608),(0,1)),0,16)
--   [type-mismatch]
-- expect: spec/faults/type-mismatch/sf_type.lua:81 in f
local cute = require "cute"
local arch, tcgen05, utils, _ = cute.arch, cute.nvgpu.tcgen05, cute.utils,
  cute._

local M, N, K = 128, 64, 128
local mma = cute.make_tiled_mma(
  tcgen05.MmaMXF4NVF4Op(cute.ue8m0, {M, N, 64}))  -- wrong
  -- mend: tcgen05.MmaMXF4NVF4Op(cute.e4m3, {M, N, 64}))
local rows = tcgen05.make_smem_layout_atom("K_SW64", cute.e2m1)
local sf_layout = utils.make_smem_layout_sfa(mma, {M, N, K}, 16, 1)(_, _, _, 0)
local tSF_layout = utils.make_tmem_layout_sfa(mma, {M, N, K}, 16,
                                              sf_layout)
local t2r = cute.make_copy_atom(tcgen05.Ld32x32bOp(32), cute.f32)
local cp = tcgen05.Cp4x32x128bOp(tcgen05.CtaGroup.ONE)

-- Makes the copy of scale factors from shared to tensor memory.
local function s2t(s, t)
  local from, to = cute.filter_zeros(s), cute.filter_zeros(t)
  local copy = tcgen05.make_s2t_copy(cute.make_copy_atom(cp, cute.e4m3), to)
  local thr = copy:get_slice(0)
  local source = tcgen05.get_s2t_smem_desc_tensor(copy,
    thr:partition_S(tcgen05.append_s2t_broadcast_mode(cp, from)))
  return function() cute.copy(copy, source, thr:partition_D(to)) end
end

-- C (128,64) = A (128,128) B (64,128)^T of NVFP4 by four warps.
local gemm = cute.kernel("gemm", function(A, FA, B, FB, C)
  local tid, warp = arch.thread_idx(), arch.warp_idx()
  local sA = cute.make_smem_tensor(cute.e2m1,
                                   cute.tile_to_shape(rows, {M, K}), 1024)
  local sB = cute.make_smem_tensor(cute.e2m1,
                                   cute.tile_to_shape(rows, {N, K}), 1024)
  local sFA = cute.make_smem_tensor(cute.e4m3, sf_layout, 128)
  local sFB = cute.make_smem_tensor(cute.e4m3, sf_layout, 128)
  local bar = arch.alloc_smem(cute.i64, 1)
  local address = arch.alloc_smem(cute.i32, 1)
  cute.when(warp:eq(0), function()
    arch.alloc_tmem(128, address)
    arch.relinquish_tmem_alloc_permit()
    cute.when(tid:eq(0), function()
      arch.mbarrier_init(bar, 1)
      arch.mbarrier_init_fence()
    end)
  end)
  local places = cute.make_layout(1024)
  local fa = cute.make_tensor(sFA.iterator, places)
  local fb = cute.make_tensor(sFB.iterator, places)
  for k = 0, K - 1 do
    sA[{tid, k}] = A[{tid, k}]
    cute.when(tid:lt(N), function() sB[{tid, k}] = B[{tid, k}] end)
  end
  for first = 0, 1023, 128 do
    fa[first + tid] = FA[first + tid]
    fb[first + tid] = FB[first + tid]
  end
  arch.fence_view_async_shared()
  arch.tcgen05_before_thread_sync()
  arch.sync_threads()
  arch.tcgen05_after_thread_sync()
  local thr = mma:get_slice(0)
  local tCrA = mma:make_fragment_A(thr:partition_A(sA))
  local tCrB = mma:make_fragment_B(thr:partition_B(sB))
  local ptr = arch.retrieve_tmem_ptr(cute.f32, 16, address)
  local sums = cute.make_tensor(ptr,
    mma:make_fragment_C(thr:partition_C(C)).layout)
  local factors = cute.recast_ptr(ptr + N, nil, cute.e4m3)
  local tFA = cute.make_tensor(factors, tSF_layout)
  local tFB = cute.make_tensor(factors + 32, tSF_layout)
  local copy_a, copy_b = s2t(sFA, tFA), s2t(sFB, tFB)
  cute.when(tid:eq(0), function()
    copy_a()
    copy_b()
    mma:set(tcgen05.Field.ACCUMULATE, false)
    cute.gemm(mma, sums, {tCrA, tFA}, {tCrB, tFB}, sums)
    tcgen05.commit(bar)
  end)
  arch.mbarrier_wait(bar, 0)
  arch.tcgen05_after_thread_sync()
  local tC = sums({_, _}, 0, 0)
  local load = tcgen05.make_tmem_copy(t2r, tC)
  local of = load:get_slice(tid)
  local to = of:partition_D(C)
  local r = cute.make_rmem_tensor(to.shape, cute.f32)
  cute.copy(load, of:partition_S(tC), r)
  arch.fence_view_async_tmem_load()
  cute.autovec_copy(r, to)
  arch.tcgen05_before_thread_sync()
  arch.sync_threads()
  arch.tcgen05_after_thread_sync()
  cute.when(warp:eq(0), function() arch.dealloc_tmem(ptr, 128) end)
end)

local A, B = cute.rand({M, K}, cute.e2m1), cute.rand({N, K}, cute.e2m1)
local FA, FB = cute.rand({1024}, cute.e4m3), cute.rand({1024}, cute.e4m3)
local C = cute.zeros({M, N}, cute.f32)
gemm(A, FA, B, FB, C):launch {grid = 1, block = 128, device = "sim:sm_100a",
                              seed = 1}
-- SPDX-License-Identifier: MIT
