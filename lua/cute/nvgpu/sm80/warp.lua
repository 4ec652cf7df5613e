--- cute.nvgpu.warp: operations of one warp with the Python DSL's names: MMAs of
-- sm_80 and sm_89, MMAs with block scales of sm_120a, ldmatrix and stmatrix.
-- The functions make atoms, which can also be made from their C++ names.
local core = require "cute.core"
local sign = require "cute.lang.signature"

local warp = {}

local TOKEN = {f16 = "F16", bf16 = "BF16", f32 = "F32", e4m3 = "E4M3",
               e5m2 = "E5M2"}

-- Returns the name of a type, which must be one of `names`.
local function name_of(op, what, dtype, names)
  local t = type(dtype) == "string" and core.find_dtype(dtype) or dtype
  local name = tostring(t)
  if not (" " .. names .. " "):find(" " .. name .. " ", 1, true) then
    core.fail("bad-argument", ("%s: %s is %s; it may be %s"):format(op, what,
      core.show(dtype), (names:gsub(" ", ", "))))
  end
  return name
end

-- Returns K of an instruction's shape {16, 8, K}. K must be one of the given
-- numbers.
local function depth_of(op, shape_mnk, ...)
  local m, n, k = table.unpack(shape_mnk, 1, 3)
  local shapes = {}
  for i, depth in ipairs {...} do
    if m == 16 and n == 8 and k == depth then return k end
    shapes[i] = ("{16, 8, %d}"):format(depth)
  end
  core.fail("bad-argument", ("%s: no instruction of shape %s; possible: %s")
    :format(op, core.show(shape_mnk), table.concat(shapes, ", ")))
end

--- Makes the MMA atom that computes D = A B + C for 16 x 8 x 16 or 16 x 8 x 8
-- elements.
---@param ab_dtype cute.DType f16 or bf16
---@param acc_dtype cute.DType f32; for f16 also f16
---@param shape_mnk integer[] {16, 8, 16} or {16, 8, 8}
---@return cute.MmaAtom for cute.make_tiled_mma
function warp.MmaF16BF16Op(ab_dtype, acc_dtype, shape_mnk)
  local op = "MmaF16BF16Op"
  local ab = TOKEN[name_of(op, "the operands' type", ab_dtype, "f16 bf16")]
  local acc = TOKEN[name_of(op, "the accumulators' type", acc_dtype,
                            ab == "BF16" and "f32" or "f32 f16")]
  return core.make_mma_atom(("SM80_16x8x%d_%s%s%s%s_TN"):format(
    depth_of(op, shape_mnk, 16, 8), acc, ab, ab, acc))
end

--- Makes the MMA atom that multiplies tf32, for 16 x 8 x 8 or 16 x 8 x 4
-- elements.
---@param shape_mnk integer[] {16, 8, 8} or {16, 8, 4}
---@return cute.MmaAtom for cute.make_tiled_mma
function warp.MmaTF32Op(shape_mnk)
  return core.make_mma_atom(("SM80_16x8x%d_F32TF32TF32F32_TN"):format(
    depth_of("MmaTF32Op", shape_mnk, 8, 4)))
end

--- Makes the MMA atom that multiplies 8-bit floats (sm_89), for 16 x 8 x 32
-- elements.
---@param ab_dtype cute.DType e4m3 or e5m2
---@param acc_dtype cute.DType f32 or f16
---@param shape_mnk integer[] {16, 8, 32}
---@return cute.MmaAtom for cute.make_tiled_mma
function warp.MmaFP8Op(ab_dtype, acc_dtype, shape_mnk)
  local op = "MmaFP8Op"
  local ab = TOKEN[name_of(op, "the operands' type", ab_dtype, "e4m3 e5m2")]
  local acc = TOKEN[name_of(op, "the accumulators' type", acc_dtype, "f32 f16")]
  return core.make_mma_atom(("SM89_16x8x%d_%s%s%s%s_TN"):format(
    depth_of(op, shape_mnk, 32), acc, ab, ab, acc))
end

-- Makes an MMA atom of sm_120a for operands of types a and b, of which vs
-- elements share a scale factor of type sf. k is the instruction's K.
local function block_scaled(op, a, b, acc_dtype, sf_type, sf, k, vs)
  name_of(op, "the accumulators' type", acc_dtype, "f32")
  name_of(op, "the scale factors' type", sf_type, sf)
  return core.make_mma_atom(("SM120::BLOCKSCALED::SM120_16x8x%d_TN_VS<"
    .. "float_%s_t,float_%s_t,float,float_%s_t,%d>"):format(k, a, b,
    sf == "e4m3" and "ue4m3" or sf, vs))
end

-- Defines a function that makes an MMA atom with block scales for two operands
-- of one type, one of `types`. The other arguments are those of block_scaled.
local function of_one_type(op, types, sf, k, vs)
  return function(ab_dtype, acc_dtype, sf_type)
    local ab = name_of(op, "the operands' type", ab_dtype, types)
    return block_scaled(op, ab, ab, acc_dtype, sf_type, sf, k, vs)
  end
end

--- Makes the MMA atom of MXFP4 on sm_120a: 16 x 8 x 64 elements, of which 32
-- share a scale factor.
---@param ab_dtype cute.DType e2m1
---@param acc_dtype cute.DType f32
---@param sf_type cute.DType ue8m0
---@return cute.MmaAtom for cute.make_tiled_mma
warp.MmaMXF4Op = of_one_type("MmaMXF4Op", "e2m1", "ue8m0", 64, 32)

--- Makes the MMA atom of NVFP4 on sm_120a: 16 x 8 x 64 elements, of which 16
-- share a scale factor.
---@param ab_dtype cute.DType e2m1
---@param acc_dtype cute.DType f32
---@param sf_type cute.DType e4m3
---@return cute.MmaAtom for cute.make_tiled_mma
warp.MmaMXF4NVF4Op = of_one_type("MmaMXF4NVF4Op", "e2m1", "e4m3", 64, 16)

--- Makes the MMA atom of MXFP8 on sm_120a: 16 x 8 x 32 elements, of which 32
-- share a scale factor.
---@param ab_dtype cute.DType e4m3 or e5m2
---@param acc_dtype cute.DType f32
---@param sf_type cute.DType ue8m0
---@return cute.MmaAtom for cute.make_tiled_mma
warp.MmaMXF8Op = of_one_type("MmaMXF8Op", "e4m3 e5m2", "ue8m0", 32, 32)

--- Makes the MMA atom of sm_120a for 16 x 8 x 32 elements of two types. 32
-- elements share a scale factor. Fragments have one byte for each element.
---@param a_dtype cute.DType e4m3, e5m2, e3m2, e2m3 or e2m1
---@param b_dtype cute.DType e4m3, e5m2, e3m2, e2m3 or e2m1
---@param acc_dtype cute.DType f32
---@param sf_type cute.DType ue8m0
---@return cute.MmaAtom for cute.make_tiled_mma
function warp.MmaMXF8F6F4Op(a_dtype, b_dtype, acc_dtype, sf_type)
  local op, types = "MmaMXF8F6F4Op", "e4m3 e5m2 e3m2 e2m3 e2m1"
  return block_scaled(op, name_of(op, "A's type", a_dtype, types),
    name_of(op, "B's type", b_dtype, types), acc_dtype, sf_type, "ue8m0", 32,
    32)
end

-- Defines a function that makes operations of ldmatrix or stmatrix for 8 x 8
-- matrices of 16-bit elements. load, turned: patterns for the atoms' names,
-- without and with transposition.
local function matrices(op, load, turned)
  return function(transpose, num_matrices)
    local n = num_matrices or 1
    if n ~= 1 and n ~= 2 and n ~= 4 then
      core.fail("bad-argument", ("%s: %s matrices; 1, 2 or 4 are possible")
        :format(op, core.show(num_matrices)))
    end
    return {atom = (transpose and turned:format(2 * n) or load:format(n))}
  end
end

--- Makes the operation ldmatrix for cute.make_copy_atom(op, dtype).
---@param transpose? boolean
---@param num_matrices? integer 1 (when absent), 2 or 4
---@return table op
warp.LdMatrix8x8x16bOp = matrices("LdMatrix8x8x16bOp", "SM75_U32x%d_LDSM_N",
                                  "SM75_U16x%d_LDSM_T")
--- Makes the operation stmatrix (sm_90) for cute.make_copy_atom(op, dtype).
---@param transpose? boolean
---@param num_matrices? integer 1 (when absent), 2 or 4
---@return table op
warp.StMatrix8x8x16bOp = matrices("StMatrix8x8x16bOp", "SM90_U32x%d_STSM_N",
                                  "SM90_U16x%d_STSM_T")

return sign.public("cute.nvgpu.warp.", warp, [[
  MmaF16BF16Op(ab_dtype: dtype|string, acc_dtype: dtype|string,
    shape_mnk: table)
  MmaTF32Op(shape_mnk: table)
  MmaFP8Op(ab_dtype: dtype|string, acc_dtype: dtype|string, shape_mnk: table)
  MmaMXF4Op(ab_dtype: dtype|string, acc_dtype: dtype|string,
    sf_type: dtype|string)
  MmaMXF4NVF4Op(ab_dtype: dtype|string, acc_dtype: dtype|string,
    sf_type: dtype|string)
  MmaMXF8Op(ab_dtype: dtype|string, acc_dtype: dtype|string,
    sf_type: dtype|string)
  MmaMXF8F6F4Op(a_dtype: dtype|string, b_dtype: dtype|string,
    acc_dtype: dtype|string, sf_type: dtype|string)
  LdMatrix8x8x16bOp(transpose?: boolean, num_matrices?: integer)
  StMatrix8x8x16bOp(transpose?: boolean, num_matrices?: integer)
]])
-- SPDX-License-Identifier: MIT
