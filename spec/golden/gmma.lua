--- Checks wgmma's shared-memory descriptors against golden data,
-- gmma_desc.jsonl in the folder golden-hopper.
local cute = require "cute"
local golden = require "spec.golden"
local warpgroup = cute.nvgpu.warpgroup

-- Returns a layout as text, with a swizzle of byte offsets, as in the data.
local function of_bytes(l, bits)
  local plain = tostring(cute.get_nonswizzle_portion(l))
  local b, m, s = tostring(cute.get_swizzle(l)):match "<(%d+),(%d+),(%d+)>"
  while bits > 8 and b ~= "0" do bits, m = bits // 2, m + 1 end
  return ("Sw<%s,%d,%s> o 0 o %s"):format(b, m, s, plain)
end

local function op_of(case)
  local t, shape, major = case.type, case.mma_shape, case.major
  if t == "tf32" then return warpgroup.MmaTF32Op(shape, "SMEM") end
  if t == "s8" then
    return warpgroup.MmaI8Op("i8", "i8", "i32", shape, "SMEM", major, major)
  elseif t == "u8" then
    return warpgroup.MmaI8Op("u8", "u8", "i32", shape, "SMEM", major, major)
  elseif t == "bf16" or t == "f16" then
    return warpgroup.MmaF16BF16Op(t, "f32", shape, "SMEM", major, major)
  end
  return warpgroup.MmaF8Op(t, t, "f32", shape, "SMEM", major, major)
end

local function check(case)
  local dtype = ({s8 = "i8"})[case.type] or case.type
  local bits = cute[dtype].bits
  local atom = warpgroup.make_smem_layout_atom(
    case.major .. "_" .. case.swizzle, dtype)
  local smem = cute.tile_to_shape(atom, case.tile)
  local mma = cute.make_tiled_mma(op_of(case))
  local which = case.operand
  local part = mma:get_slice(0)["partition_" .. which](mma:get_slice(0), smem)
  local fragment, desc = mma["make_fragment_" .. which](mma, part)
  local got = {smem = of_bytes(smem, bits), fragment = tostring(fragment),
               desc = ("%016x"):format(desc)}
  for name, value in pairs(got) do
    if value ~= case[name] then return false, got end
  end
  return true
end

golden.ops.gmma_desc = {gmma_desc = check}
-- SPDX-License-Identifier: MIT
