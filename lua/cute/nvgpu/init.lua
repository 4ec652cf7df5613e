--- cute.nvgpu: functions specific to a family of GPUs, with the Python DSL's
-- names.
local core = require "cute.core"
local sign = require "cute.lang.signature"

local nvgpu = {}

-- Each module of cute.nvgpu is in the folder of the first architecture that has
-- the module's instructions.
for part, first in pairs {cpasync = "sm90", sparse = "sm80", warp = "sm80",
                          tcgen05 = "sm100", warpgroup = "sm90"} do
  local module = require(("cute.nvgpu.%s.%s"):format(first, part))
  nvgpu[part] = sign.namespace(module, "cute.nvgpu." .. part)
end

---------------------------------------------------------------------------
-- Enumerations for strings that operations and accesses accept
---------------------------------------------------------------------------

nvgpu.OperandMajorMode = nvgpu.warpgroup.OperandMajorMode
--- The values of the options sem and scope of cute.arch.load, store and
-- atomics.
nvgpu.MemoryOrder = {RELAXED = "relaxed", ACQUIRE = "acquire",
                     RELEASE = "release", ACQ_REL = "acq_rel"}
nvgpu.MemoryScope = {CTA = "cta", CLUSTER = "cluster", GPU = "gpu",
                     SYS = "sys"}
--- The values of the options level1_eviction_priority and cop of loads and
-- stores.
nvgpu.CacheEvictionPriority = {
  EVICT_NORMAL = "evict_normal", EVICT_FIRST = "evict_first",
  EVICT_LAST = "evict_last", EVICT_UNCHANGED = "evict_unchanged",
  NO_ALLOCATE = "evict_no_allocate"}
nvgpu.LoadCacheMode = nvgpu.cpasync.LoadCacheMode
nvgpu.StoreCacheMode = {WRITE_BACK = "wb", GLOBAL = "cg", STREAMING = "cs",
                        WRITE_THROUGH = "wt"}

--- Makes the operation of plain loads and stores, for cute.make_copy_atom(op,
-- dtype, bits).
function nvgpu.CopyUniversalOp() return {atom = "UniversalCopy"} end
--- CopyUniversalOp for copies from global memory to registers.
nvgpu.CopyG2ROp = nvgpu.CopyUniversalOp
--- CopyUniversalOp for copies from registers to global memory.
nvgpu.CopyR2GOp = nvgpu.CopyUniversalOp
--- CopyUniversalOp for copies from shared memory to registers.
nvgpu.CopyS2ROp = nvgpu.CopyUniversalOp
--- CopyUniversalOp for copies from registers to shared memory.
nvgpu.CopyR2SOp = nvgpu.CopyUniversalOp

local FMA = {f16 = "half_t", bf16 = "bfloat16_t", f32 = "float", f64 = "double"}

--- Makes the MMA atom of a scalar multiply-add: a 1x1x1 MMA by one thread.
---@param abacc_dtype cute.DType f16, bf16, f32 or f64
---@return cute.MmaAtom for cute.make_tiled_mma
function nvgpu.MmaUniversalOp(abacc_dtype)
  local name = FMA[tostring(abacc_dtype)]
  if not name then
    core.fail("bad-argument", ("MmaUniversalOp: no multiply-add of %s (f16 "
      .. "bf16 f32 f64)"):format(tostring(abacc_dtype)))
  end
  return core.make_mma_atom(("UniversalFMA<%s>"):format(name))
end

---------------------------------------------------------------------------
-- TMA atoms of a GEMM's operands
---------------------------------------------------------------------------

-- Returns a layout that maps the elements of a CTA's part (V,Rest...) of an
-- operand's tile to coordinates of the tensor. `letter` names the operand: "A",
-- "B" or "C".
local function partition_of(tiled_mma, letter, gmem_tensor, tile)
  local whole = core.composition(
    core.make_identity_layout(gmem_tensor.shape), tile)
  return core.get(tiled_mma["thrfrg_" .. letter](tiled_mma, whole), 1)
end

-- Defines a function that makes a TMA atom for operand `letter` of a GEMM. i
-- and j say which of the tiler's extents (M,N,K) belong to the operand. CTAs
-- along mode `shared` of the cluster (V,M,N,K) share a tile.
local function atom_of(letter, i, j, shared)
  return function(op, gmem_tensor, smem_layout, mma_tiler_mnk, tiled_mma,
                  cluster_shape_vmnk, opts)
    local ctas = shared and op.multicast and cluster_shape_vmnk
      and core.size(cluster_shape_vmnk[shared]) or 1
    local tile, rank = {mma_tiler_mnk[i], mma_tiler_mnk[j]},
      core.rank(smem_layout)
    if rank >= 3 then
      tile = partition_of(tiled_mma, letter, gmem_tensor, tile)
    end
    if rank == 4 then
      smem_layout = smem_layout(core._, core._, core._, 0)
    end
    return nvgpu.cpasync.make_tiled_tma_atom(op, gmem_tensor, smem_layout,
                                             tile, ctas, opts)
  end
end

--- Makes a TMA atom for operand A (M,K) of a GEMM whose tile is mma_tiler_mnk;
-- see cpasync.make_tiled_tma_atom. smem_layout is the layout of the part of A's
-- tile that tiled_mma assigns to a CTA, ((MMA_M,MMA_K),M,K), with or without a
-- mode of stages. If an MMA uses one CTA, the layout of the tile (M,K) is also
-- possible. With a multicast, the CTAs along N of the cluster (V,M,N,K) share a
-- tile. For the scale factors of A, pass the layout of make_smem_layout_sfa,
-- and cute.i16 as internal_type.
---@param op table
---@param gmem_tensor cute.Tensor
---@param smem_layout cute.Layout
---@param mma_tiler_mnk table {M, N, K}
---@param tiled_mma cute.TiledMma
---@param cluster_shape_vmnk? table
---@param opts? table the options of cpasync.make_tiled_tma_atom
---@return table atom, table coordinates
nvgpu.make_tiled_tma_atom_A = atom_of("A", 1, 3, 3)
--- Makes a TMA atom for operand B (N,K), like make_tiled_tma_atom_A. CTAs along
-- M of the cluster share a tile. For the scale factors of B, pass an MMA of one
-- CTA, because each CTA of a pair needs all of them.
nvgpu.make_tiled_tma_atom_B = atom_of("B", 2, 3, 2)
--- Makes a TMA atom for the result C (M,N), like make_tiled_tma_atom_A. Each
-- CTA writes its own tile.
nvgpu.make_tiled_tma_atom_C = atom_of("C", 1, 2)

-- Returns f applied to each element of a list {d, h, w}, {h, w} or {w}, in
-- reverse order.
local function reversed(list, f)
  local out, n = {}, #list
  for i = 1, n do out[i] = f(n + 1 - i) end
  return out
end

--- Makes a TMA atom for the operand (M,K) of a convolution; see
-- cpasync.make_im2col_tma_atom. filter_trs holds the extents of the filter.
-- Neighbouring positions of the filter are `dilation` pixels apart. The filter
-- moves by `stride` over an image that is padded by lower_padding and
-- upper_padding. Each list is {d, h, w}, {h, w} or {w}, depending on the rank
-- of the image.
function nvgpu.make_im2col_tma_atom_A(op, gmem_tensor, smem_layout,
    mma_tiler_mnk, _, filter_trs, upper_padding_dhw, lower_padding_dhw,
    stride_dhw, dilation_dhw, cluster_shape_vmnk)
  local function of(list) return function(i) return list[i] end end
  return nvgpu.cpasync.make_im2col_tma_atom(op, gmem_tensor, smem_layout,
    {mma_tiler_mnk[1], mma_tiler_mnk[3]},
    reversed(filter_trs, function(i) return -lower_padding_dhw[i] end),
    reversed(filter_trs, function(i)
      return upper_padding_dhw[i] - (filter_trs[i] - 1) * dilation_dhw[i]
    end), reversed(filter_trs, of(lower_padding_dhw)),
    reversed(filter_trs, of(upper_padding_dhw)),
    reversed(filter_trs, of(stride_dhw)), nil,
    reversed(filter_trs, of(dilation_dhw)),
    cluster_shape_vmnk and core.size(cluster_shape_vmnk[3]) or 1)
end

return sign.public("cute.nvgpu.", nvgpu, [[
  CopyUniversalOp() CopyG2ROp() CopyR2GOp() CopyS2ROp() CopyR2SOp()
  MmaUniversalOp(abacc_dtype: dtype|string)
  make_im2col_tma_atom_A(op, gmem_tensor: tensor, smem_layout: layout,
    mma_tiler_mnk: table, tiled_mma, filter_trs: table,
    upper_padding_dhw: table, lower_padding_dhw: table, stride_dhw: table,
    dilation_dhw: table, cluster_shape_vmnk?: table)
  make_tiled_tma_atom_A(op, gmem_tensor: tensor, smem_layout: layout,
    mma_tiler_mnk: table, tiled_mma, cluster_shape_vmnk?: table,
    opts?: {internal_type l2_promotion oob_fill})
  make_tiled_tma_atom_B(op, gmem_tensor: tensor, smem_layout: layout,
    mma_tiler_mnk: table, tiled_mma, cluster_shape_vmnk?: table,
    opts?: {internal_type l2_promotion oob_fill})
  make_tiled_tma_atom_C(op, gmem_tensor: tensor, smem_layout: layout,
    mma_tiler_mnk: table, tiled_mma)
]])
-- SPDX-License-Identifier: MIT
