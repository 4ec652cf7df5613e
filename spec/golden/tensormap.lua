--- Checks tensor maps against golden data (tensormap.jsonl): the driver's
-- status for the parameters, and the 128 bytes that it wrote. The bytes are
-- also decoded.
local core = require "cute.core"
local golden = require "spec.golden"

-- Returns the parameters of a line in the form of core.encode_tensor_map.
local function parameters(case)
  local p = {im2col = case.op == "im2col", type = case.type, rank = case.rank,
             address = tonumber(case.address, 16), extent = case.dims,
             stride = case.strides, step = case.elem_strides,
             interleave = case.interleave, swizzle = case.swizzle,
             l2 = case.l2, fill = case.oob}
  for _, k in ipairs {"box", "lower", "upper", "channels", "pixels"} do
    p[k] = case[k]
  end
  return p
end

local function hex(words)
  return (("%016x"):rep(16)):format(table.unpack(words))
end

-- Decodes the driver's words. Reports whether they give the same parameters.
local function decoded(case, words)
  local p, why = core.decode_tensor_map(
    ("<" .. ("i8"):rep(16)):pack(table.unpack(words)))
  if not p then return false, why end
  for name, want in pairs(parameters(case)) do
    local got = p[name]
    for i = 1, type(want) == "table" and #want or 0 do
      if got[i] ~= want[i] then return false, name .. " is decoded wrongly" end
    end
    if type(want) ~= "table" and got ~= want then
      return false, ("%s is decoded as %s"):format(name, tostring(got))
    end
  end
  return true
end

local function check(case)
  local ok, got = pcall(core.encode_tensor_map, parameters(case))
  if not ok and not got:find "tensor map: " then error(got, 0) end
  if case.result ~= 0 then return not ok, "accepted" end
  if not ok then return false, got end
  if hex(got) ~= case.words then return false, hex(got) end
  return decoded(case, got)
end

golden.ops.tensormap = {tiled = check, im2col = check}

return golden
-- SPDX-License-Identifier: MIT
