-- Each tile of C takes the scale factors of A's first 128 rows.
-- run: notes
-- expect: note: wrong_scale.lua:71: one scale factor, at byte 0 of tma_fa,
--   scales the elements at byte 0 of tma_a and at byte 32768 of tma_a; does
--   each tile take the factors of its own rows and part of K?
-- expect: note: wrong_scale.lua:86: coordinate 1 of mode 2 of the tensor map of
--   'tma_fa' was never read … cute.partial_ok
--   says that this is intended
local cute = require "cute"
local gemm_block_scaled = require "kernels.gemm_block_scaled"
local scale_factors = require "kernels.gemm_sm100.scale_factors"
local arch, cpasync, tcgen05, _ = cute.arch, cute.nvgpu.cpasync,
  cute.nvgpu.tcgen05, cute._

local M, N, K = 256, 128, 512
local tile, sf = {128, 128, 256}, cute.e4m3
local op = tcgen05.MmaMXF4NVF4Op(sf, {128, 128, 64})
local mma = cute.make_tiled_mma(op)
local of_a, of_b = scale_factors.layouts(mma, tile, 1, sf)
local rows = cute.tile_to_shape(
  tcgen05.make_smem_layout_atom("K_SW128", cute.e2m1), {128, 256, 1})
local t2r = cute.make_copy_atom(tcgen05.Ld32x32bOp(128), cute.f32)

-- C (256,128) = A (256,512) B (128,512)^T of NVFP4. One thread of each block
-- loads and multiplies.
local product = cute.kernel("product", function(tma_a, cA, tma_fa, cFA, tma_b,
                                                cB, tma_fb, cFB, C)
  local tid, at = arch.thread_idx(), arch.block_idx()
  local sA = cute.make_smem_tensor(cute.e2m1, rows, 1024)
  local sB = cute.make_smem_tensor(cute.e2m1, rows, 1024)
  local sFA = cute.make_smem_tensor(sf, of_a.smem, 128)
  local sFB = cute.make_smem_tensor(sf, of_b.smem, 128)
  local full, done = arch.alloc_smem(cute.i64, 1), arch.alloc_smem(cute.i64, 1)
  local address = arch.alloc_smem(cute.i32, 1)
  cute.when(arch.warp_idx():eq(0), function()
    arch.alloc_tmem(256, address)
    cute.when(tid:eq(0), function()
      arch.mbarrier_init(full, 1)
      arch.mbarrier_init(done, 1)
      arch.mbarrier_init_fence()
    end)
  end)
  arch.tcgen05_before_thread_sync()
  arch.sync_threads()
  arch.tcgen05_after_thread_sync()
  local thr, ptr = mma:get_slice(0), arch.retrieve_tmem_ptr(cute.f32, 16,
                                                            address)
  local acc = cute.make_tensor(ptr,
    mma:make_fragment_C(mma:partition_shape_C {128, 128}).layout)
  local a = mma:make_fragment_A(thr:partition_A(sA))
  local b = mma:make_fragment_B(thr:partition_B(sB))
  local ptr_sf = cute.recast_ptr(ptr + 128, nil, sf)
  local tFA = cute.make_tensor(ptr_sf, of_a.tmem)
  local tFB = cute.make_tensor(ptr_sf + 4 * of_a.columns, of_b.tmem)
  local copy_a = scale_factors.copier(sFA, tFA)
  local copy_b = scale_factors.copier(sFB, tFB)
  -- Returns the partition of a tile's bytes in shared memory, and of the tiles
  -- along K.
  local function operand(tma, s, c, row)
    return cpasync.tma_partition(tma, 0, cute.make_layout(1),
      cute.group_modes(cute.recast_tensor(s, cute.u8), 0, 2),
      cute.group_modes(cute.local_tile(c, {128, 128}, {row, _}), 0, 2))
  end
  local function factors(tma, s, c, row)
    return cpasync.tma_partition(tma, 0, cute.make_layout(1),
      cute.group_modes(s, 0, 3), cute.group_modes(thr:partition_A(
        cute.local_tile(c, {128, 256}, {row, _})), 0, 3))
  end
  local function multiply(k)
    mma:set(tcgen05.Field.ACCUMULATE, cute.gt(k, 0))
    cute.gemm(mma, acc, {a(_, _, _, 0), tFA(_, _, _, 0)},
              {b(_, _, _, 0), tFB(_, _, _, 0)}, acc)
    tcgen05.commit(done)
  end
  cute.when(tid:eq(0), function()
    local loads = {
      {tma_a, operand(tma_a, sA, cA, at)}, {tma_b, operand(tma_b, sB, cB, 0)},
      -- mend: {tma_fa, factors(tma_fa, sFA, cFA, at)},
      {tma_fa, factors(tma_fa, sFA, cFA, 0)},  -- wrong
      {tma_fb, factors(tma_fb, sFB, cFB, 0)}}
    for k in cute.range(2) do
      arch.mbarrier_arrive_and_expect_tx(full, tma_a.tx_bytes + tma_b.tx_bytes
        + tma_fa.tx_bytes + tma_fb.tx_bytes)
      for i = 1, #loads do
        local tma, to, from = table.unpack(loads[i])
        cute.copy(tma, from(_, k), to(_, 0), {tma_bar_ptr = full})
      end
      arch.mbarrier_wait(full, k % 2)
      arch.tcgen05_after_thread_sync()
      copy_a(0)
      copy_b(0)
      multiply(k)
      arch.mbarrier_wait(done, k % 2)
    end
  end)
  arch.sync_threads()
  arch.tcgen05_after_thread_sync()
  local tC = acc({_, _}, 0, 0)
  local load = tcgen05.make_tmem_copy(t2r, tC):get_slice(tid)
  local to = load:partition_D(cute.local_tile(C, {128, 128}, {at, 0}))
  local r = cute.make_rmem_tensor(to.shape, cute.f32)
  cute.copy(t2r, load:partition_S(tC), r)
  arch.fence_view_async_tmem_load()
  cute.autovec_copy(r, to)
  arch.tcgen05_before_thread_sync()
  arch.sync_threads()
  arch.tcgen05_after_thread_sync()
  cute.when(arch.warp_idx():eq(0), function() arch.dealloc_tmem(ptr, 256) end)
end)

local function factors(n) return cute.rand({n * K // 16}, sf) end
local gemm = gemm_block_scaled {op = op, dtype = cute.e2m1, sf = sf, bk = 256}
product(table.unpack(gemm.arguments(M, N, K, cute.rand({M, K}, cute.e2m1),
  factors(M), cute.rand({N, K}, cute.e2m1), factors(N),
  cute.zeros({M, N}, cute.f32))))
  :launch {grid = 2, block = 128, device = "sim:sm_100a"}
-- SPDX-License-Identifier: MIT
