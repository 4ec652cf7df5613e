--- cute.utils: functions for a GEMM with tcgen05.mma whose operand A has a
-- narrower type than the MMA (sm_100a and its family). Warps load A from shared
-- memory, convert it, optionally multiply it by scales, and store it where the
-- MMA reads it: in tensor memory if A is K-major, else in shared memory.
--
-- Scales have the modes (M,K,L). One factor applies to scale_granularity_m rows
-- and scale_granularity_k elements along K. In the layouts of scales, strides
-- of 0 repeat a factor.
local sign = require "cute.lang.signature"
local arch = require "cute.arch"
local blackwell = require "cute.blackwell"
local core = require "cute.core"
local cpasync = require "cute.nvgpu.sm90.cpasync"
local tcgen05 = require "cute.nvgpu.sm100.tcgen05"

local mixed = {}

local _ = core._

local function dtype_of(x) return type(x) == "string" and core[x] or x end

local function refuse(op, text, ...)
  core.fail("bad-argument", op .. ": " .. text:format(...))
end

local function is_mn(op, major)
  if major ~= "K" and major ~= "MN" then
    refuse(op, "the major mode must be K or MN, not %s", core.show(major))
  end
  return major == "MN"
end

---------------------------------------------------------------------------
-- Choices
---------------------------------------------------------------------------

--- Returns the memory from which the MMA reads the converted A.
---@param a_major_mode "K"|"MN"
---@return "TMEM"|"SMEM"
function mixed.get_transform_a_source(a_major_mode)
  return is_mn("get_transform_a_source", a_major_mode) and "SMEM" or "TMEM"
end

--- Returns the copy atom that stores the converted A.
---@param mma_dtype cute.DType the type of the converted A
---@param use_2cta_instrs boolean
---@param transform_a_source "TMEM"|"SMEM"
---@param a_smem_shape table the shape ((MMA_M,MMA_K),M,K) of A's partition
---@param a_dtype cute.DType the type of A in shared memory
---@return cute.CopyAtom
function mixed.get_copy_atom_a_transform(mma_dtype, use_2cta_instrs,
    transform_a_source, a_smem_shape, a_dtype)
  if transform_a_source == "SMEM" then
    return core.make_copy_atom("UniversalCopy", dtype_of(a_dtype), 32)
  elseif transform_a_source ~= "TMEM" then
    refuse("get_copy_atom_a_transform", "A's converted values are in TMEM or "
      .. "SMEM, not %s", core.show(transform_a_source))
  end
  local rows = core.size(core.get(core.get(a_smem_shape, 0), 0))
  local halves = rows == 64 and not use_2cta_instrs
  local op = halves and tcgen05.St16x256bOp(1) or tcgen05.St32x32bOp(8)
  return core.make_copy_atom(op.atom, dtype_of(mma_dtype))
end

--- Reports whether scales may have this granularity. If A has 8 bits, scales
-- are not possible. If A has 4 bits, each row needs its own factor. The
-- granularity along K must then divide K, and be a multiple of the tile's K.
---@param scale_granularity_m integer 0 for no scales
---@param scale_granularity_k integer
---@param a_dtype cute.DType
---@param k integer
---@param mma_tiler_k integer
---@return boolean
function mixed.is_valid_scale_granularity(scale_granularity_m,
    scale_granularity_k, a_dtype, k, mma_tiler_k)
  local bits = dtype_of(a_dtype).bits
  if bits == 8 then
    return scale_granularity_m == 0 and scale_granularity_k == 0
  elseif bits == 4 then
    return scale_granularity_m == 1 and scale_granularity_k ~= 0
      and k % scale_granularity_k == 0
      and scale_granularity_k % mma_tiler_k == 0
  end
  return true
end

--- Reports whether cvt_tensor_a may read 8 integers of 4 bits in the shuffled
-- order of cute.arch.cvt_i4_bf16_intrinsic. This needs a K-major A of i4, an
-- MMA of bf16, a K that is a multiple of 8, and at least 8 elements for each
-- scale. The Python DSL also needs CUDA 13.1; cutelua's conversion does not.
---@param a_major "m"|"k" the contiguous mode
---@param k integer
---@param a_dtype cute.DType
---@param mma_dtype cute.DType
---@param scale_granularity_k integer
---@return boolean
function mixed.is_shuffle_a(a_major, k, a_dtype, mma_dtype, scale_granularity_k)
  return a_major == "k" and k % 8 == 0 and scale_granularity_k >= 8
    and dtype_of(a_dtype) == core.i4 and dtype_of(mma_dtype) == core.bf16
end

---------------------------------------------------------------------------
-- Layouts
---------------------------------------------------------------------------

-- Returns the layout of scale factors. mn and k are {granularity, number of
-- factors} along M (or N) and along K.
local function factors(mn, k, is_mn_major)
  return core.make_layout({mn, k}, is_mn_major and {{0, 1}, {0, mn[2]}}
    or {{0, k[2]}, {0, 1}})
end

local function append(l, extent, stride)
  return core.make_layout(core.get(l, 0), core.get(l, 1),
                          core.make_layout(extent, stride))
end

--- Returns the layout of the scales of A (M,K,L) in global memory:
-- ((granularity,M),(granularity,K),L).
---@param scale_shape_mkl integer[] the extents {M, K, L} of A
---@param scale_granularity_m integer
---@param scale_granularity_k integer
---@param scale_major_mode "K"|"MN" the contiguous mode of the scales
---@return cute.Layout
function mixed.get_gmem_layout_scale(scale_shape_mkl, scale_granularity_m,
    scale_granularity_k, scale_major_mode)
  local m, k, l = table.unpack(scale_shape_mkl)
  local one = factors(
    {scale_granularity_m, core.ceil_div(m, scale_granularity_m)},
    {scale_granularity_k, core.ceil_div(k, scale_granularity_k)},
    is_mn("get_gmem_layout_scale", scale_major_mode))
  return append(one, l, core.cosize(one))
end

--- Returns three values: one CTA's tile of A, {M, K}; the shared-memory layout
-- of its scales for one stage, ((granularity,M),(granularity,K)); and this
-- layout for all stages. A stage has at least 128 bytes, because TMA needs
-- them.
---@param mma_tiler integer[] {M, N, K}
---@param use_2cta_instrs boolean whether a pair of CTAs shares a tile
---@param scale_granularity_m integer
---@param scale_granularity_k integer
---@param scale_major_mode "K"|"MN"
---@param a_scale_dtype cute.DType
---@param num_scale_load2trans_stage integer
---@return integer[] tile, cute.Layout one_stage, cute.Layout all_stages
function mixed.get_smem_layout_scale(mma_tiler, use_2cta_instrs,
    scale_granularity_m, scale_granularity_k, scale_major_mode, a_scale_dtype,
    num_scale_load2trans_stage)
  local op = "get_smem_layout_scale"
  local m, k = core.size(mma_tiler[1]), core.size(mma_tiler[3])
  if use_2cta_instrs then m = m // 2 end
  local function mode(extent, granularity)
    local own = math.min(granularity, extent)
    if own < 1 or extent % own ~= 0 then
      refuse(op, "one factor for %d elements; the tile has %d", granularity,
             extent)
    end
    return {own, extent // own}
  end
  local one = factors(mode(m, scale_granularity_m),
                      mode(k, scale_granularity_k), is_mn(op, scale_major_mode))
  local bytes = core.cosize(one) * dtype_of(a_scale_dtype).bits // 8
  if bytes < 128 then
    refuse(op, "the scales of a tile are %d bytes; TMA needs 128", bytes)
  end
  return {m, k}, one, append(one, num_scale_load2trans_stage, core.cosize(one))
end

---------------------------------------------------------------------------
-- Partitions
---------------------------------------------------------------------------

-- Returns t with its first mode V replaced by (V,1): ((V,1),Rest...).
local function with_rest(t)
  local plain = core.get_nonswizzle_portion(t.layout)
  local modes = {core.make_layout(core.get(plain, 0), core.make_layout(1, 0))}
  for i = 1, core.rank(plain) - 1 do modes[i + 1] = core.get(plain, i) end
  return core.make_tensor(t.iterator, core.composition(
    core.get_swizzle(t.layout), core.make_layout(table.unpack(modes))))
end

--- Partitions the scales for TMA. Returns ((atom,1),stages) of shared memory,
-- and ((atom,1),M,K,L) of global memory.
---@param tCsS cute.Tensor (MMA,M,K,stages)
---@param tCgS cute.Tensor (MMA,M,K,tiles of M, K, L)
---@param tma_atom_s cute.CopyAtom
---@param block_in_cluster_coord_vmnk table {V, M, N, K}
---@param scale_cta_layout cute.Layout of the CTAs that share a tile
---@return cute.Tensor tSsS, cute.Tensor tSgS
function mixed.scale_tma_partition(tCsS, tCgS, tma_atom_s,
    block_in_cluster_coord_vmnk, scale_cta_layout)
  local s, g = cpasync.tma_partition(tma_atom_s, block_in_cluster_coord_vmnk[3],
    scale_cta_layout, core.group_modes(tCsS, 0, 3),
    core.group_modes(tCgS, 0, 3))
  return with_rest(s), with_rest(g)
end

--- Partitions A for the threads that convert it. Returns four values: the tiled
-- copy of the scales (nil without scales); the tiled copy that stores converted
-- values (nil for shared memory, where store_transformed_a needs none); this
-- thread's part of A; and its part of the converted A.
---@param transform_a_source "TMEM"|"SMEM"
---@param scale_mode string from TransformMode
---@param copy_atom_a_input cute.CopyAtom
---@param copy_atom_a_transform cute.CopyAtom the result of
-- get_copy_atom_a_transform
---@param sA_input cute.Tensor (MMA,M,K,stages) in shared memory
---@param A_transform cute.Tensor (MMA,M,K,stages)
---@param transform_local_tidx any index of the thread, 0 to 127
---@return cute.TiledCopy? src_copy_a, cute.TiledCopy? dst_copy_a
---@return cute.Tensor tAsA_input, cute.Tensor tA_transform
function mixed.transform_partition(transform_a_source, scale_mode,
    copy_atom_a_input, copy_atom_a_transform, sA_input, A_transform,
    transform_local_tidx)
  local tmem = transform_a_source == "TMEM"
  local first = A_transform(_, _, _, 0)
  local copy
  if tmem then
    copy = tcgen05.make_tmem_copy(copy_atom_a_transform, first)
    local function rows(t)
      return core.size(core.get(core.get(t.layout, 0), 0))
    end
    if rows(A_transform) == 128 and rows(sA_input) == 64 then
      sA_input = core.make_tensor(sA_input.iterator,
        core.logical_product(sA_input.layout, {{core.make_layout(2, 0)}}))
    end
  else
    copy = core.make_cotiled_copy(copy_atom_a_transform,
      core.make_layout({128, 8}, {8, 1}),
      core.get_nonswizzle_portion(first.layout))
  end
  local thr = copy:get_slice(transform_local_tidx)
  local scales = scale_mode == "ConvertScale"
    and core.make_tiled_copy_S(copy_atom_a_input, copy) or nil
  return scales, tmem and copy or nil, thr:partition_S(sA_input),
    thr:partition_D(A_transform)
end

--- Partitions the scales for the threads that convert A. Returns the thread's
-- slice of src_copy_a, its part of the scales, registers that hold each factor
-- once, and a view of these registers with a factor for each element of A.
---@param src_copy_a cute.TiledCopy the result of transform_partition
---@param tCsS cute.Tensor (MMA,M,K,stages) in shared memory
---@param transform_local_tidx any
---@param mma_dtype cute.DType the type of the registers
---@return table thr_copy
---@return cute.Tensor tSsS_trans, cute.Tensor tSrS_copy, cute.Tensor tSrS
function mixed.scale_partition(src_copy_a, tCsS, transform_local_tidx,
                               mma_dtype)
  local thr = src_copy_a:get_slice(transform_local_tidx)
  local part = thr:partition_S(tCsS)
  local l = part(_, _, _, _, 0).layout
  local held = core.make_rmem_tensor(core.filter_zeros(l).shape,
                                     dtype_of(mma_dtype))
  return thr, part, held, core.make_tensor(held.iterator,
    core.make_layout(l.shape, held.layout.stride))
end

--- Partitions accumulators for an epilogue. Returns three values: the tiled
-- copy to registers of get_tmem_load_op; this thread's part of the accumulators
-- (T2R,T2R_M,T2R_N,EPI_M,EPI_N,stages); and registers (T2R,T2R_M,T2R_N) for one
-- tile of the epilogue.
---@param cta_tile_shape_mnk integer[]
---@param c_layout "row"|"col"
---@param c_dtype cute.DType
---@param acc_dtype cute.DType
---@param tidx any the thread's index among the threads of the epilogue
---@param tAcc cute.Tensor ((MMA_M,MMA_N),1,1,stages) in tensor memory
---@param gC_mnl cute.Tensor ((MMA_M,MMA_N),1,1,tiles of M, N, L)
---@param epi_tile table the result {M, N} of compute_epilogue_tile_shape
---@param use_2cta_instrs boolean
---@return cute.TiledCopy tiled_copy_t2r
---@return cute.Tensor tTR_tAcc, cute.Tensor tTR_rAcc
function mixed.epilog_tmem_copy_and_partition(cta_tile_shape_mnk, c_layout,
    c_dtype, acc_dtype, tidx, tAcc, gC_mnl, epi_tile, use_2cta_instrs)
  local load = blackwell.get_tmem_load_op(cta_tile_shape_mnk, c_layout, c_dtype,
    acc_dtype, epi_tile, use_2cta_instrs)
  local acc = core.flat_divide(tAcc({_, _}, 0, 0, _), epi_tile)
  local copy = tcgen05.make_tmem_copy(load, acc(_, _, 0, 0, 0))
  local thr = copy:get_slice(tidx)
  local C = core.flat_divide(gC_mnl({_, _}, 0, 0, _, _, _), epi_tile)
  local part = thr:partition_D(C)
  return copy, thr:partition_S(acc), core.make_rmem_tensor(
    part(_, _, _, 0, 0, 0, 0, 0).shape, dtype_of(acc_dtype))
end

---------------------------------------------------------------------------
-- Conversions
---------------------------------------------------------------------------

--- Converts values of A. With `shuffle`, 4-bit integers are in the shuffled
-- order of cute.arch.cvt_i4_bf16_intrinsic (its option with_shuffle).
---@param src cute.Tensor
---@param dtype cute.DType
---@param shuffle boolean
---@return table vector
function mixed.cvt_tensor_a(src, dtype, shuffle)
  local x, to = src:load(), dtype_of(dtype)
  if not shuffle then return x:to(to) end
  if src.element_type ~= core.i4 or to ~= core.bf16 then
    refuse("cvt_tensor_a", "a shuffled order exists for i4 to bf16, not for %s "
      .. "to %s", tostring(src.element_type), tostring(to))
  end
  return arch.cvt_i4_bf16_intrinsic(x, core.size(src), {with_shuffle = true})
end

--- Converts 4-bit integers to e4m3. Their number must be a multiple of 8.
---@param src cute.Tensor of i4
---@param dtype cute.DType e4m3
---@return table vector
function mixed.cvt_tensor_a_mxf8(src, dtype)
  return arch.cvt_i4_mxf8_intrinsic(src:load(), core.size(src),
                                    dtype_of(dtype))
end

--- Stores converted values.
---@param src_a cute.Tensor in registers
---@param dst_a cute.Tensor
---@param copy_atom_a? any the copy for tensor memory; nil for shared memory
function mixed.store_transformed_a(src_a, dst_a, copy_atom_a)
  if copy_atom_a then core.copy(copy_atom_a, src_a, dst_a)
  else core.autovec_copy(src_a, dst_a) end
end

return sign.public("utils.", mixed, [[
  get_transform_a_source(a_major_mode: string)
  get_copy_atom_a_transform(mma_dtype: dtype|string, use_2cta_instrs: boolean,
    transform_a_source: string, a_smem_shape: table, a_dtype: dtype|string)
  is_valid_scale_granularity(scale_granularity_m: integer,
    scale_granularity_k: integer, a_dtype: dtype|string, k: integer,
    mma_tiler_k: integer)
  is_shuffle_a(a_major: string, k: integer, a_dtype: dtype|string,
    mma_dtype: dtype|string, scale_granularity_k: integer)
  get_gmem_layout_scale(scale_shape_mkl: table, scale_granularity_m: integer,
    scale_granularity_k: integer, scale_major_mode: string)
  get_smem_layout_scale(mma_tiler: table, use_2cta_instrs: boolean,
    scale_granularity_m: integer, scale_granularity_k: integer,
    scale_major_mode: string, a_scale_dtype: dtype|string,
    num_scale_load2trans_stage: integer)
  scale_tma_partition(tCsS: tensor, tCgS: tensor, tma_atom_s,
    block_in_cluster_coord_vmnk: table, scale_cta_layout: layout)
  transform_partition(transform_a_source: string, scale_mode: string,
    copy_atom_a_input, copy_atom_a_transform, sA_input: tensor,
    A_transform: tensor, transform_local_tidx)
  scale_partition(src_copy_a: tiled, tCsS: tensor, transform_local_tidx,
    mma_dtype: dtype|string)
  epilog_tmem_copy_and_partition(cta_tile_shape_mnk: table,
    c_layout: string|LayoutEnum, c_dtype: dtype|string,
    acc_dtype: dtype|string, tidx, tAcc: tensor, gC_mnl: tensor,
    epi_tile: table, use_2cta_instrs: boolean)
  cvt_tensor_a(src: tensor, dtype: dtype|string, shuffle: boolean)
  cvt_tensor_a_mxf8(src: tensor, dtype: dtype|string)
  store_transformed_a(src_a: tensor, dst_a: tensor, copy_atom_a?)
]])
-- SPDX-License-Identifier: MIT
