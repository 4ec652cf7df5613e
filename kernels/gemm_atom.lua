--- A GEMM with the same code for Hopper and Blackwell: C = alpha A B^T + beta C
-- by any atom of wgmma or of tcgen05.mma.
--
--     local gemm = gemm_atom {atom = warpgroup.MmaF16BF16Op(cute.bf16,
--       cute.f32, {64, 128, 16}, "SMEM")}           -- for sm_90a
--     local gemm = gemm_atom {atom = tcgen05.MmaF16BF16Op(cute.bf16, cute.f32,
--       {128, 128, 16})}                            -- for sm_100a
--     gemm.kernel(gemm.arguments(A, B, C)):launch {grid = gemm.grid(m, n),
--                                                  block = gemm.block}
--
-- wgmma keeps its sums in registers of 128 threads, and all of these threads
-- issue it. tcgen05.mma keeps its sums in tensor memory, and one thread issues
-- it. The object `sums` hides this difference. Loads, the loop over K and the
-- epilogue do not depend on the atom.
--
-- A block of four warps computes a tile of C. One thread loads tiles of A and B
-- by TMA, and keeps up to `stages` of them in flight. Rows of A and B are
-- contiguous and start at multiples of 16 bytes. The kernel is short, not fast:
-- kernels/gemm_sm90 and kernels/gemm_sm100 have a warp for each role.
local cute = require "cute"
local rules = require "kernels.operand_rules"
local sign = require "cute.lang.signature"
local tiles = require "cute.tiles"

local _ = cute._
local arch, cpasync = cute.arch, cute.nvgpu.cpasync
local tcgen05, warpgroup = cute.nvgpu.tcgen05, cute.nvgpu.warpgroup

local THREADS = 128

---------------------------------------------------------------------------
-- Accumulators
---------------------------------------------------------------------------

-- in_registers and in_tmem each return a function. That function synchronizes
-- the block, and returns the object `sums` of one tile: C, as tiles.result
-- returns it; multiply(a, b, add), which returns when this warp's products have
-- read a and b; finish(), which moves the sums to C.acc and frees their memory.

local function in_registers(mma, mC, tile, at)
  return function()
    arch.sync_threads()
    local C = tiles.result(mC, mma, tile, at)
    local sums = {C = C, finish = function() end}
    function sums.multiply(a, b, add)
      warpgroup.fence()
      mma:set(warpgroup.Field.ACCUMULATE, add)
      cute.gemm(mma, C.acc, a, b, C.acc)
      warpgroup.commit_group()
      warpgroup.wait_group(0)
    end
    return sums
  end
end

local function sync_tensor_memory()
  arch.tcgen05_before_thread_sync()
  arch.sync_threads()
  arch.tcgen05_after_thread_sync()
end

local function in_tensor_memory(mma, mC, tile, at)
  local columns = 32
  while columns < tile[2] do columns = 2 * columns end
  local address = arch.alloc_smem(cute.i32, 1)
  local done = arch.alloc_smem(cute.i64, 1)
  local warp, tid = arch.warp_idx(), arch.thread_idx()
  cute.when(warp:eq(0), function()
    arch.alloc_tmem(columns, address)
    arch.relinquish_tmem_alloc_permit()
    cute.when(tid:eq(0), function()
      arch.mbarrier_init(done, 1)
      arch.mbarrier_init_fence()
    end)
  end)
  return function()
    sync_tensor_memory()
    local ptr = arch.retrieve_tmem_ptr(cute.f32, 16, address)
    local D = cute.make_tensor(ptr, mma:make_fragment_C(        -- (MMA,M,N)
      mma:partition_shape_C {tile[1], tile[2]}).layout)
    local from = D({_, _}, 0, 0)                                -- (BM,BN)
    local atom = cute.make_copy_atom(tcgen05.Ld32x32bOp(32), cute.f32)
    local load = tcgen05.make_tmem_copy(atom, from)
    local C = tiles.result(mC, load, tile, at)
    local sums, phase = {C = C}, 0
    function sums.multiply(a, b, add)
      cute.when(tid:eq(0), function()
        mma:set(tcgen05.Field.ACCUMULATE, add)
        cute.gemm(mma, D, a, b, D)
        tcgen05.commit(done)
      end)
      arch.mbarrier_wait(done, phase)
      phase = 1 - phase
    end
    function sums.finish()
      arch.tcgen05_after_thread_sync()
      cute.copy(load, load:get_slice(tid):partition_S(from), C.acc)
      arch.fence_view_async_tmem_load()
      sync_tensor_memory()
      cute.when(warp:eq(0), function() arch.dealloc_tmem(ptr, columns) end)
    end
    return sums
  end
end

---------------------------------------------------------------------------
-- The kernel
---------------------------------------------------------------------------

local function make_kernel(o, mma, sA_layout, sB_layout)
  local BM, BN, BK = table.unpack(o.tile)
  local sums_of = mma.name:find "^SM90_" and in_registers or in_tensor_memory
  return cute.kernel("gemm_atom", function(tma_a, cA, tma_b, cB, mC, alpha,
                                           beta)
    local tid = arch.thread_idx()
    local bm, bn = tiles.raster(arch.block_idx(),
      tiles.count(mC.shape[1], BM), tiles.count(mC.shape[2], BN), 8)
    local sA = cute.make_smem_tensor(o.dtype, sA_layout, 1024)  -- (BM,BK,PIPE)
    local sB = cute.make_smem_tensor(o.dtype, sB_layout, 1024)  -- (BN,BK,PIPE)
    local full = arch.alloc_smem(cute.i64, o.stages)
    cute.when(tid:eq(0), function()
      for stage = 0, o.stages - 1 do arch.mbarrier_init(full + stage, 1) end
      arch.mbarrier_init_fence()
    end)
    local start = sums_of(mma, mC, {BM, BN}, {bm, bn})

    local function partition(tma, s, g)                         -- (TMA,..)
      return cpasync.tma_partition(tma, 0, cute.make_layout(1),
        cute.group_modes(s, 0, 2), cute.group_modes(g, 0, 2))
    end
    local gA = cute.local_tile(cA, {BM, BK}, {bm, _})           -- (BM,BK,k)
    local gB = cute.local_tile(cB, {BN, BK}, {bn, _})           -- (BN,BK,k)
    local tAsA, tAgA = partition(tma_a, sA, gA)
    local tBsB, tBgB = partition(tma_b, sB, gB)
    local k_tiles = cute.size(gA, 2)
    local function load(k_tile, stage)
      cute.when(tid:eq(0) & cute.lt(k_tile, k_tiles), function()
        local bar = full + stage
        arch.mbarrier_arrive_and_expect_tx(bar, tma_a.tx_bytes
          + tma_b.tx_bytes)
        cute.copy(tma_a, tAgA(_, k_tile), tAsA(_, stage), {tma_bar_ptr = bar})
        cute.copy(tma_b, tBgB(_, k_tile), tBsB(_, stage), {tma_bar_ptr = bar})
      end)
    end

    local sums = start()
    local thr = mma:get_slice(tid % mma:size())
    local tCrA = mma:make_fragment_A(thr:partition_A(sA))       -- (1,M,K,PIPE)
    local tCrB = mma:make_fragment_B(thr:partition_B(sB))
    for stage = 0, o.stages - 1 do load(stage, stage) end
    for k_tile in cute.range(k_tiles) do
      local stage = k_tile % o.stages
      arch.mbarrier_wait(full + stage, k_tile // o.stages % 2)
      sums.multiply(tCrA(_, _, _, stage), tCrB(_, _, _, stage),
                    cute.gt(k_tile, 0))
      arch.sync_threads()  -- all warps have read this stage
      load(k_tile + o.stages, stage)
    end
    sums.finish()
    sums.C.store(alpha or 1, beta or 0)
  end)
end

local gemm_atom = {}

--- gemm_atom {atom, tile, stages, dtype}: returns {kernel, block, tile,
-- arguments(A, B, C, alpha, beta), grid(m, n)}.
-- - atom: an operation of wgmma with A in shared memory, or of tcgen05.mma for
--   one CTA with 128 rows. Either atom has f32 sums and a multiple of 32
--   columns.
-- - tile: {128, columns of the atom, BK}, where a row of BK elements has 128
--   bytes.
-- - dtype: the type of A and B.
setmetatable(gemm_atom, {__call = function(_, given)
  rules.options("gemm_atom", given, "atom tile stages dtype")
  local o = {stages = given.stages or 3, dtype = given.dtype or cute.bf16}
  local mma = cute.make_tiled_mma(given.atom)
  o.tile = given.tile or {128, mma.shape_mnk[2], 1024 // o.dtype.bits}
  rules.list_of_integers("gemm_atom", "tile", o.tile, 3)
  local BM, BN, BK = table.unpack(o.tile)
  rules.need(BM == 128 and BN == mma.shape_mnk[2] and BN % 32 == 0
    and BK * o.dtype.bits % 1024 == 0, "gemm_atom", "tile = {%d, %d, %d}; 128 "
    .. "rows, the columns of the atom, %d, a multiple of 32, and rows of 128 "
    .. "bytes are needed", BM, BN, BK, mma.shape_mnk[2])
  local row = tcgen05.make_smem_layout_atom("K_SW128", o.dtype)
  local sA_layout = cute.tile_to_shape(row, {BM, BK, o.stages})
  local sB_layout = cute.tile_to_shape(row, {BN, BK, o.stages})
  local function load(X, layout, rows)
    return cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileG2SOp(), X,
                                       layout(cute._, cute._, 0), {rows, BK})
  end
  return {
    kernel = make_kernel(o, mma, sA_layout, sB_layout), block = THREADS,
    tile = o.tile,
    arguments = function(A, B, C, alpha, beta)
      local a, cA = load(A, sA_layout, BM)
      local b, cB = load(B, sB_layout, BN)
      return a, cA, b, cB, C, alpha, beta
    end,
    grid = function(m, n)
      return tiles.count(m, BM) * tiles.count(n, BN)
    end}
end})

return sign.module("kernels.gemm_atom", gemm_atom)
-- SPDX-License-Identifier: MIT
