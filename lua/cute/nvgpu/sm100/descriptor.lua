--- Descriptors of tcgen05.mma. The instruction descriptor (32 bits) contains
-- the element types, the shape and the major modes of the operands. The
-- descriptor of an operand in shared memory (64 bits) contains its address and
-- layout.
local core = require "cute.core"

local descriptor = {}

-- The codes of the types of A and B in the instruction descriptor. MMAs of
-- packed 4-bit types use another code for e2m1.
local AB = {f16 = 0, bf16 = 1, tf32 = 2, u8 = 0, i8 = 1, e4m3 = 0, e5m2 = 1,
            e2m3 = 3, e3m2 = 4, e2m1 = 5}
local C = {f16 = 0, f32 = 1, i32 = 2}
local SCALE = {e4m3 = 0, ue4m3 = 0, ue8m0 = 1}

local function code_of(codes, what, dtype)
  return codes[tostring(dtype)] or core.fail("bad-argument",
    ("tcgen05.mma has no %s of type %s"):format(what, tostring(dtype)))
end

local function operand_code(dtype, packed)
  if packed and tostring(dtype) == "e2m1" then return 1 end
  return code_of(AB, "operand", dtype)
end

-- Checks that x is a multiple of `unit` from unit to `most`; returns x / unit.
local function units(what, x, unit, most)
  if math.type(x) ~= "integer" or x % unit ~= 0 or x < unit or x > most then
    core.fail("bad-argument", ("tcgen05.mma: %s is %s; it may be a multiple "
      .. "of %d up to %d"):format(what, core.show(x), unit, most))
  end
  return x // unit
end

local function bit(flag, at) return flag and 1 << at or 0 end

-- Returns the fields that the instruction descriptors with and without scale
-- factors have in common.
local function common(d)
  return bit(d.sparse, 2)
    | operand_code(d.a, d.packed) << 7 | operand_code(d.b, d.packed) << 10
    | bit(d.a_neg, 13) | bit(d.b_neg, 14)
    | bit(d.a_major == "MN", 15) | bit(d.b_major == "MN", 16)
    | units("N", d.n, 8, 256) << 17 | units("M", d.m, 16, 256) << 24
end

--- Returns the instruction descriptor of an MMA without scale factors.
---@param d table with the fields a, b, c: element types; m, n: the extents of
-- the instruction, for a pair of CTAs those of both together; a_major, b_major:
-- "K" or "MN", K when absent; a_neg, b_neg: whether the operand is negated;
-- saturate; sparse; max_shift: 0 to 3, the largest shift of B's rows that a .ws
-- instruction reads
---@return integer
function descriptor.instruction(d)
  return common(d) | bit(d.saturate, 3)
    | code_of(C, "accumulator", d.c) << 4 | (d.max_shift or 0) << 30
end

--- Returns the instruction descriptor of an MMA with scale factors, whose
-- accumulators are f32. Bits 4-5 and 29-30 are 0; descriptor.runtime sets them
-- to the byte of a column in which the scale factors begin.
---@param d table as for descriptor.instruction, without c, saturate and
-- max_shift; scale: type of the scale factors; packed: whether e2m1 is packed,
-- as in the kinds mxf4 and mxf4nvf4; k96: whether K is 96 elements of a 4-bit
-- type
---@return integer
function descriptor.block_scaled(d)
  return common(d) | code_of(SCALE, "scale factor", d.scale) << 23
    | bit(d.k96, 31)
end

--- Adds the positions of the scale factors to an instruction descriptor. These
-- are bits 30-31 of their addresses in tensor memory: the byte of a column.
-- Returns a 64-bit number whose upper half is the 32-bit descriptor.
---@param instruction integer from descriptor.block_scaled
---@param sfa integer address of A's scale factors in tensor memory
---@param sfb integer address of B's scale factors
---@param sparse_id? integer selector of a sparse A's metadata, 0 when absent
---@return integer
function descriptor.runtime(instruction, sfa, sfb, sparse_id)
  return (instruction | (sparse_id or 0) | (sfb >> 30 & 3) << 4
    | (sfa >> 30 & 3) << 29) << 32
end

---------------------------------------------------------------------------
-- Shared memory
---------------------------------------------------------------------------

--- Returns the descriptor, with address 0, of the part of an operand in shared
-- memory that one instruction reads. The layout must be canonical;
-- tile_to_mma_shape makes such layouts from the results of
-- make_smem_layout_atom.
---@param layout cute.Layout (MN,K) of elements, with its swizzle
---@param bits integer width of an element
---@param major "K"|"MN" the contiguous mode
---@return integer
function descriptor.shared(layout, bits, major)
  local plain = core.get_nonswizzle_portion(layout)
  local l = core.make_layout(plain, core.make_layout(1, 0))
  if plain ~= layout then l = core.composition(core.get_swizzle(layout), l) end
  return core.umma_descriptor("make_umma_smem_desc", l, bits, major == "MN")
end

--- Makes the shared-memory layout of an operand's tile by repeating a layout
-- atom. The first mode of the result is the part that one MMA instruction
-- reads.
---@param atom cute.Layout a result of make_smem_layout_atom
---@param mma_tile_shape table ((MMA_MN,MMA_K),MN,K,Rest...), such as
-- tiled_mma:partition_shape_A(tile)
---@param order? table the order in which modes are filled, as in
-- cute.tile_to_shape
---@return cute.Layout ((MMA_MN,MMA_K),MN,K,Rest...)
function descriptor.tile_to_mma_shape(atom, mma_tile_shape, order)
  local first = core.get(mma_tile_shape, 0)
  local shape = {}
  for i = 0, 1 do
    shape[i + 1] = core.size(core.get(first, i))
      * core.size(core.get(mma_tile_shape, i + 1))
  end
  for i = 3, core.rank(mma_tile_shape) - 1 do
    shape[i] = core.size(core.get(mma_tile_shape, i))
  end
  return core.tiled_divide(core.tile_to_shape(atom, shape, order),
    {core.size(core.get(first, 0)), core.size(core.get(first, 1))})
end

--- Returns the layout of the descriptors of a tile, one for each instruction's
-- part. Its offsets are in units of 16 bytes.
---@param layout cute.Layout ((MMA_MN,MMA_K),MN,K,Rest...) of elements
---@param bits integer width of an element
---@return cute.Layout (1,MN,K,Rest...)
function descriptor.iterator(layout, bits)
  local plain = core.get_nonswizzle_portion(layout)
  return core.replace(core.recast_layout(plain, bits, 128), 0,
                      core.make_layout(1, 0))
end

return descriptor
-- SPDX-License-Identifier: MIT
