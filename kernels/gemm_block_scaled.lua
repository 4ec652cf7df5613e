--- A GEMM with block scales for Blackwell: C = A B^T, where 16 or 32 numbers
-- of a row of A or B share a scale factor (sm_100a and its family).
--
--     local gemm = gemm_block_scaled {op = tcgen05.MmaMXF4Op {128, 128, 64},
--                                     dtype = cute.e2m1, sf = cute.ue8m0}
--     gemm.kernel(table.unpack(gemm.arguments(m, n, k, A, SFA, B, SFB, C)))
--       :launch {grid = gemm.grid(m, n), block = 128}
--
-- A (m,k), B (n,k) and C (m,n) are row-major; rows of A and B have a multiple
-- of 16 bytes. SFA and SFB have the layout gemm.scale_layout(rows, k), which
-- cuBLAS also expects. In this layout, the factors of 128 rows and 4 blocks are
-- 512 contiguous bytes. Each 16 bytes hold the factors of rows r, r + 32, r +
-- 64, r + 96.
--
-- Roles of the four warps:
--   warp 0   one thread requests tiles and their scale factors by TMA
--   warp 1   one thread copies scale factors to tensor memory and multiplies
--   warp 2   allocates tensor memory, and frees it
-- kernels/gemm_sm100/scale_factors.lua copies scale factors to tensor memory.
--
-- Options: op, the MMA, with 128 rows; dtype and sf, the types of the operands
-- and of the scale factors; bk, the K of a tile (128 bytes when absent); stages
-- (4 when absent).
local cute = require "cute"
local scale_factors = require "kernels.gemm_sm100.scale_factors"
local tiles = require "cute.tiles"
local cpasync, tcgen05 = cute.nvgpu.cpasync, cute.nvgpu.tcgen05
local pipeline, arch, utils, _ = cute.pipeline, cute.arch, cute.utils, cute._

local function make_kernel(o)
  local mma, stages, sf = cute.make_tiled_mma(o.op), o.stages, o.sf
  local BM, BN, BK = mma.shape_mnk[1], mma.shape_mnk[2], o.bk
  local tile = {BM, BN, BK}
  local atom = tcgen05.make_smem_layout_atom("K_SW128", o.dtype)
  local of_a, of_b = scale_factors.layouts(mma, tile, stages, sf)
  local t2r = cute.make_copy_atom(tcgen05.Ld32x32bOp(32), cute.f32)
  local columns = 32
  while columns < BN + of_a.columns + of_b.columns do columns = columns * 2 end

  return cute.kernel("gemm_" .. tostring(o.dtype) .. "_" .. tostring(sf),
    function(tma_a, cA, tma_fa, cFA, tma_b, cB, tma_fb, cFB, mC)
    local warp, tid = arch.warp_idx(), arch.thread_idx()
    local bm, bn = tiles.raster(arch.block_idx(),
      tiles.count(mC.shape[1], BM), tiles.count(mC.shape[2], BN), 8)
    local sA = cute.make_smem_tensor(o.dtype,                   -- (BM,BK,PIPE)
      cute.tile_to_shape(atom, {BM, BK, stages}), 1024)
    local sB = cute.make_smem_tensor(o.dtype,
      cute.tile_to_shape(atom, {BN, BK, stages}), 1024)
    local sFA = cute.make_smem_tensor(sf, of_a.smem, 128)       -- (SF,M,K,PIPE)
    local sFB = cute.make_smem_tensor(sf, of_b.smem, 128)
    local One = pipeline.CooperativeGroup(pipeline.Agent.Thread)
    local pipe = pipeline.PipelineTmaUmma {
      num_stages = stages, tx_count = tma_a.tx_bytes + tma_fa.tx_bytes
        + tma_b.tx_bytes + tma_fb.tx_bytes,
      producer_group = One, consumer_group = One, defer_sync = true}
    local sums = pipeline.PipelineUmmaAsync {num_stages = 1,
      producer_group = One, consumer_group = One, defer_sync = true}
    local address = arch.alloc_smem(cute.i32, 1)
    cute.when(warp:eq(2), function()
      arch.alloc_tmem(columns, address)
      arch.relinquish_tmem_alloc_permit()
    end)
    arch.tcgen05_before_thread_sync()
    pipeline.agent_sync()
    arch.tcgen05_after_thread_sync()
    local ptr = arch.retrieve_tmem_ptr(cute.f32, 16, address)
    local tCtC = cute.make_tensor(ptr,                          -- (MMA,M,N)
      mma:make_fragment_C(mma:partition_shape_C {BM, BN}).layout)

    cute.when(warp:eq(0) & arch.elect_one(), function()
      -- Returns a function that loads tile k of g, the tiles of an operand or
      -- of its scale factors along K, into a stage of s.
      local function loader(tma, s, g)
        local n = cute.rank(s) - 1
        local to, from = cpasync.tma_partition(tma, 0, cute.make_layout(1),
          cute.group_modes(s, 0, n), cute.group_modes(g, 0, n))
        return function(k, i, full)
          cute.copy(tma, from(_, k), to(_, i), full)
        end
      end
      local function operand(tma, s, c, at)            -- tiles of bytes (row,K)
        s = cute.recast_tensor(s, cute.u8)
        return loader(tma, s, cute.local_tile(c, {cute.size(s, 0),
                                                  cute.size(s, 1)}, {at, _}))
      end
      local thr = mma:get_slice(0)
      local loads = {operand(tma_a, sA, cA, bm), operand(tma_b, sB, cB, bn),
        loader(tma_fa, sFA, thr:partition_A(                    -- (SF,M,K,k)
          cute.local_tile(cFA, {BM, BK}, {bm, _}))),
        loader(tma_fb, sFB, thr:partition_B(
          cute.local_tile(cFB, {BN, BK}, {bn, _})))}
      local write = pipe:make_producer_state()
      for k_tile in cute.range(tiles.count(cute.size(cFA, 1), BK)) do
        pipe:producer_acquire(write)
        local full = {tma_bar_ptr = pipe:producer_get_barrier(write)}
        for _, copy in ipairs(loads) do copy(k_tile, write.index, full) end
        write:advance()
      end
    end)

    cute.when(warp:eq(1) & arch.elect_one(), function()
      local thr = mma:get_slice(0)
      local tCrA = mma:make_fragment_A(thr:partition_A(sA))     -- (1,M,K,PIPE)
      local tCrB = mma:make_fragment_B(thr:partition_B(sB))
      local factors = cute.recast_ptr(ptr + BN, nil, sf)
      local tFA = cute.make_tensor(factors, of_a.tmem)          -- (SF,M,K,PIPE)
      local tFB = cute.make_tensor(factors + 4 * of_a.columns, of_b.tmem)
      local copy_a = scale_factors.copier(sFA, tFA)
      local copy_b = scale_factors.copier(sFB, tFB)
      local read = pipe:make_consumer_state()
      for k_tile in cute.range(tiles.count(cute.size(cFA, 1), BK)) do
        local i = read.index
        pipe:consumer_wait(read)
        arch.tcgen05_after_thread_sync()
        copy_a(i)
        copy_b(i)
        mma:set(tcgen05.Field.ACCUMULATE, cute.gt(k_tile, 0))
        cute.gemm(mma, tCtC, {tCrA(_, _, _, i), tFA(_, _, _, i)},
                  {tCrB(_, _, _, i), tFB(_, _, _, i)}, tCtC)
        pipe:consumer_release(read)
        read:advance()
      end
      sums:producer_commit(sums:make_producer_state())
    end)
    arch.sync_warp()

    sums:consumer_wait(sums:make_consumer_state())
    arch.tcgen05_after_thread_sync()
    local tC = tCtC({_, _}, 0, 0)                               -- (BM,BN)
    local load = tcgen05.make_tmem_copy(t2r, tC)
    local C = tiles.result(mC, load, {BM, BN}, {bm, bn}, tid)
    cute.copy(load, load:get_slice(tid):partition_S(tC), C.acc)
    arch.fence_view_async_tmem_load()
    C.store()
    arch.tcgen05_before_thread_sync()
    arch.sync_threads()
    arch.tcgen05_after_thread_sync()
    cute.when(warp:eq(2), function() arch.dealloc_tmem(ptr, columns) end)
  end)
end

--- Returns a GEMM with these options. Its fields are kernel, grid, scale_layout
-- and arguments.
---@param options table see above
return function(options)
  local o = {op = options.op, dtype = options.dtype, sf = options.sf,
             bk = options.bk or 1024 // options.dtype.bits,
             stages = options.stages or 4}
  local mma = cute.make_tiled_mma(o.op)
  local BM, BN = mma.shape_mnk[1], mma.shape_mnk[2]
  local vs = mma.sf_vec_size
  local gemm = {kernel = make_kernel(o), tile = {BM, BN, o.bk}, vs = vs}

  --- Returns the number of blocks for a result of m x n.
  function gemm.grid(m, n) return tiles.count(m, BM) * tiles.count(n, BN) end

  --- Returns the layout of the scale factors of `rows` rows of k numbers. It
  -- maps (row,block) to the index of the factor in memory. Rows and blocks are
  -- rounded up to whole chunks.
  function gemm.scale_layout(rows, k)
    return cute.filter_zeros(
      utils.tile_atom_to_shape_SF({rows, k, 1}, vs)(_, _, 0))
  end

  local load = cpasync.CopyBulkTensorTileG2SOp()
  -- Returns a function that makes the TMA atom and the coordinates of A or B,
  -- as bytes.
  local function operand(rows)
    return function(X)
      local atom = tcgen05.make_smem_layout_atom("K_SW128", cute.u8)
      local bytes = o.bk * o.dtype.bits // 8
      return cpasync.make_tiled_tma_atom(load, cute.recast_tensor(X, cute.u8),
        cute.tile_to_shape(atom, {rows, bytes}), {rows, bytes})
    end
  end
  local of_a, of_b = scale_factors.layouts(mma, gemm.tile, o.stages, o.sf)
  -- Returns a function that makes the TMA atom and the coordinates of the scale
  -- factors of `rows` rows of A or B.
  local function factors(atom_of, of, rows, k)
    return function(F)
      local layout = utils.tile_atom_to_shape_SF({rows, k, 1}, vs)(_, _, 0)
      return atom_of(load, cute.make_tensor(F.iterator, layout), of.smem,
                     gemm.tile, mma, nil, {internal_type = cute.i16})
    end
  end

  --- Returns the kernel's arguments for a problem m x n x k. A, SFA, B, SFB and
  -- C are tensors or names. A name becomes a list of the name and a function
  -- that makes the argument from a tensor.
  function gemm.arguments(m, n, k, A, SFA, B, SFB, C)
    local list = {}
    local sfa = factors(cute.nvgpu.make_tiled_tma_atom_A, of_a, m, k)
    local sfb = factors(cute.nvgpu.make_tiled_tma_atom_B, of_b, n, k)
    for i, x in ipairs {{A, operand(BM)}, {SFA, sfa}, {B, operand(BN)},
                        {SFB, sfb}} do
      local X, make = x[1], x[2]
      if type(X) == "string" then
        list[2 * i - 1] = {X, function(t) return (make(t)) end}
        list[2 * i] = {X, function(t) return select(2, make(t)) end}
      else
        list[2 * i - 1], list[2 * i] = make(X)
      end
    end
    list[9] = C
    return list
  end
  return gemm
end
-- SPDX-License-Identifier: MIT
