--- cute.nvgpu.warp: operations of one warp with the Python DSL's names: MMAs of
-- sm_80, ldmatrix and stmatrix. The functions make atoms, which can also be
-- made from their C++ names.
local core = require "cute.core"
local sign = require "cute.lang.signature"

local warp = {}

local TOKEN = {f16 = "F16", bf16 = "BF16", f32 = "F32"}

local function name_of(op, what, dtype, names)
  local t = type(dtype) == "string" and core.find_dtype(dtype) or dtype
  local name = tostring(t)
  if not (" " .. names .. " "):find(" " .. name .. " ", 1, true) then
    core.fail("bad-argument", ("%s: %s is %s; it may be %s"):format(op, what,
      core.show(dtype), (names:gsub(" ", ", "))))
  end
  return TOKEN[name]
end

--- Makes the MMA atom that computes D = A B + C for 16 x 8 x 16 or 16 x 8 x 8
-- elements.
---@param ab_dtype cute.DType f16 or bf16
---@param acc_dtype cute.DType f32; for f16 also f16
---@param shape_mnk integer[] {16, 8, 16} or {16, 8, 8}
---@return cute.MmaAtom for cute.make_tiled_mma
function warp.MmaF16BF16Op(ab_dtype, acc_dtype, shape_mnk)
  local op = "MmaF16BF16Op"
  local ab = name_of(op, "the operands' type", ab_dtype, "f16 bf16")
  local acc = name_of(op, "the accumulators' type", acc_dtype,
                      ab == "BF16" and "f32" or "f32 f16")
  local m, n, k = table.unpack(shape_mnk, 1, 3)
  if m ~= 16 or n ~= 8 or k ~= 16 and k ~= 8 then
    core.fail("bad-argument", ("%s: no instruction of shape %s; possible are "
      .. "{16, 8, 16} and {16, 8, 8}"):format(op, core.show(shape_mnk)))
  end
  return core.make_mma_atom(("SM80_16x8x%d_%s%s%s%s_TN"):format(k, acc, ab, ab,
                                                                acc))
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
  LdMatrix8x8x16bOp(transpose?: boolean, num_matrices?: integer)
  StMatrix8x8x16bOp(transpose?: boolean, num_matrices?: integer)
]])
-- SPDX-License-Identifier: MIT
