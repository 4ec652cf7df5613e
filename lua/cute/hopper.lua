--- cute.utils.hopper_helpers: shared-memory layouts and MMAs of a GEMM for
-- Hopper (sm_90a), chosen by types and tiles. cute.utils has the same functions
-- with the prefix sm90_.
--
-- "row" (utils.LayoutEnum.ROW_MAJOR) means a matrix with a contiguous second
-- mode, "col" (COL_MAJOR) one with a contiguous first mode. A is (M,K), B
-- (N,K), C (M,N), so row-major operands are K-major.
local sign = require "cute.lang.signature"
local core = require "cute.core"
local smem = require "cute.smem"
local warpgroup = require "cute.nvgpu.sm90.warpgroup"

local hopper = {}

local function dtype_of(x) return type(x) == "string" and core[x] or x end

-- Checks the extents of a tile, n integers of 1 or more, and returns them.
local function extents(what, tile, n)
  local list = {}
  for i = 1, n do
    local size = tile[i] ~= nil and core.size(tile[i])
    if math.type(size) ~= "integer" or size < 1 then
      core.fail("bad-argument", ("%s = %s; %d extents of 1 or more are needed")
        :format(what, core.show(tile), n))
    end
    list[i] = size
  end
  return list
end

---------------------------------------------------------------------------
-- Shared memory
---------------------------------------------------------------------------

--- Returns the smallest tile of a canonical layout. See cute.nvgpu.warpgroup.
hopper.make_smem_layout_atom = warpgroup.make_smem_layout_atom

--- Returns the kind of layout atom for make_smem_layout_atom, such as
-- "K_SW128": the one with the widest swizzle whose span divides the
-- contiguous extent.
---@param layout "row"|"col"
---@param element_type cute.DType
---@param major_mode_size integer number of elements of the contiguous mode
---@return string kind such as "K_SW128" or "MN_SW32"
function hopper.get_smem_layout_atom(layout, element_type, major_mode_size)
  return smem.major(layout) .. "_"
    .. smem.widest(major_mode_size * dtype_of(element_type).bits)
end

-- Returns the shared-memory layout of a shape (rows,columns,stages). Repeats
-- the smallest tile (the atom) in the given order, by default along the
-- contiguous mode first.
local function layout_of(layout, dtype, shape, order)
  local along = smem.major(layout) == "K" and 2 or 1
  local atom = warpgroup.make_smem_layout_atom(
    hopper.get_smem_layout_atom(layout, dtype, core.size(shape[along])), dtype)
  return core.tile_to_shape(atom, shape,
    order or along == 2 and {0, 1, 2} or {1, 0, 2})
end

local function check_stages(n)
  if n >= 1 then return n end
  core.fail("bad-argument", ("%d stages; 1 or more are needed"):format(n))
end

local function operand_layout(mode)
  return function(layout, mma_tiler_mnk, dtype, num_stages)
    local tile = extents("mma_tiler_mnk", mma_tiler_mnk, 3)
    return layout_of(layout, dtype,
                     {tile[mode], tile[3], check_stages(num_stages)})
  end
end

--- Returns the shared-memory layout of A's stages, (M,K,stages).
---@param a_layout "row"|"col"
---@param mma_tiler_mnk integer[]
---@param a_dtype cute.DType
---@param num_stages integer
---@return cute.Layout
hopper.make_smem_layout_a = operand_layout(1)

--- Returns the shared-memory layout of B's stages, (N,K,stages).
hopper.make_smem_layout_b = operand_layout(2)

--- Returns the shared-memory layout of the epilogue's buffers, (M,N,stages).
---@param epi_dtype cute.DType
---@param epi_layout "row"|"col"
---@param epi_tile integer[] {M, N}
---@param epi_stage integer
---@param smem_trg_shape? any (M,N,stages), instead of epi_tile and epi_stage
---@param smem_order? integer[] order in which the atom is repeated along the
-- modes (cute.tile_to_shape); if absent, the contiguous mode comes first
---@return cute.Layout
function hopper.make_smem_layout_epi(epi_dtype, epi_layout, epi_tile,
                                     epi_stage, smem_trg_shape, smem_order)
  local tile = extents("epi_tile", epi_tile, 2)
  return layout_of(epi_layout, epi_dtype, smem_trg_shape
    or {tile[1], tile[2], check_stages(epi_stage)}, smem_order)
end

---------------------------------------------------------------------------
-- Atoms
---------------------------------------------------------------------------

-- Returns the MMA instruction for these types and majors, and a tile of n
-- columns.
local function mma_op(a, b, acc, n, source, a_major, b_major)
  if a.bits == 16 then
    if a ~= b then
      core.fail("type-mismatch", ("A is %s, B %s; 16-bit operands need the "
        .. "same type"):format(tostring(a), tostring(b)))
    end
    return warpgroup.MmaF16BF16Op(a, acc, {64, n, 16}, source, a_major, b_major)
  end
  if a.bits == 32 then
    if a ~= b or acc ~= core.f32 or a_major ~= "K" or b_major ~= "K" then
      core.fail("type-mismatch", ("A is %s and %s-major, B %s and %s-major, "
        .. "accumulators are %s; tf32 needs two K-major operands and f32 "
        .. "accumulators")
        :format(tostring(a), a_major, tostring(b), b_major, tostring(acc)))
    end
    return warpgroup.MmaTF32Op({64, n, 8}, source)
  end
  local make = a.is_integer and warpgroup.MmaI8Op or warpgroup.MmaF8Op
  return make(a, b, acc, {64, n, 32}, source, a_major, b_major)
end

--- Makes a tiled MMA of warpgroups for these types.
---@param a_dtype cute.DType
---@param b_dtype cute.DType
---@param a_leading_mode "K"|"MN" the contiguous mode
---@param b_leading_mode "K"|"MN"
---@param acc_dtype cute.DType
---@param atom_layout_mnk integer[] numbers of warpgroups along M, N, K
---@param tiler_mn integer[] {M, N} of the tile; N is also the instruction's N
---@param a_source? string from warpgroup.OperandSource, "SMEM" if absent
---@return table tiled_mma
function hopper.make_trivial_tiled_mma(a_dtype, b_dtype, a_leading_mode,
                                       b_leading_mode, acc_dtype,
                                       atom_layout_mnk, tiler_mn, a_source)
  local n = extents("tiler_mn", tiler_mn, 2)[2]
  return core.make_tiled_mma(mma_op(a_dtype, b_dtype, acc_dtype, n,
    a_source or "SMEM", a_leading_mode, b_leading_mode),
    extents("atom_layout_mnk", atom_layout_mnk, 3))
end

--- Returns the copy atom that stores accumulators to shared memory. For 16-bit
-- results it is stmatrix, transposed if the first mode is contiguous. Other
-- types use stores of single elements.
---@param layout_d "row"|"col"
---@param elem_ty_d cute.DType
---@param elem_ty_acc? cute.DType
---@return table copy_atom
function hopper.get_smem_store_op(layout_d, elem_ty_d, elem_ty_acc)
  local major = smem.major(layout_d)
  if elem_ty_acc and elem_ty_acc.bits < elem_ty_d.bits then
    core.fail("type-mismatch", ("elem_ty_d = %s must not be wider than "
      .. "elem_ty_acc = %s"):format(tostring(elem_ty_d), tostring(elem_ty_acc)))
  end
  if elem_ty_d.bits == 16 then
    return core.make_copy_atom(major == "K" and "SM90_U32x4_STSM_N"
      or "SM90_U16x8_STSM_T", elem_ty_d)
  end
  return core.make_copy_atom("UniversalCopy", elem_ty_d)
end

--- Returns the epilogue tile, the unit in which a GEMM stores its result:
-- epi_tile_override, or a default.
---@param tile_shape_mnk integer[]
---@param element_type cute.DType
---@param is_cooperative? boolean true if two warpgroups share a tile
---@param epi_tile_override? integer[]
---@return integer[]
function hopper.compute_tile_shape_or_override(tile_shape_mnk, element_type,
                                               is_cooperative,
                                               epi_tile_override)
  if epi_tile_override then return epi_tile_override end
  local tile = extents("tile_shape_mnk", tile_shape_mnk, 2)
  local m, n = is_cooperative and 128 or 64, 32
  if not is_cooperative and element_type.bits == 8 then n = 64 end
  return {math.min(m, tile[1]), math.min(n, tile[2])}
end

return sign.public("utils.hopper_helpers.", hopper, [[
  get_smem_layout_atom(layout: string|LayoutEnum, element_type: dtype|string,
    major_mode_size: integer)
  make_smem_layout_a(a_layout: string|LayoutEnum, mma_tiler_mnk: table,
    a_dtype: dtype|string, num_stages: integer)
  make_smem_layout_b(b_layout: string|LayoutEnum, mma_tiler_mnk: table,
    b_dtype: dtype|string, num_stages: integer)
  make_smem_layout_epi(epi_dtype: dtype|string, epi_layout: string|LayoutEnum,
    epi_tile: table, epi_stage: integer, smem_trg_shape?: table,
    smem_order?: table)
  make_trivial_tiled_mma(a_dtype: dtype, b_dtype: dtype, a_leading_mode: string,
    b_leading_mode: string, acc_dtype: dtype, atom_layout_mnk: table,
    tiler_mn: table, a_source?: string)
  get_smem_store_op(layout_d: string|LayoutEnum, elem_ty_d: dtype,
    elem_ty_acc?: dtype)
  compute_tile_shape_or_override(tile_shape_mnk: table, element_type: dtype,
    is_cooperative?: boolean, epi_tile_override?: table)
]])
-- SPDX-License-Identifier: MIT
