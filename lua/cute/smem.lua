--- The canonical shared-memory layouts that warpgroup MMAs read.
--
-- The smallest tile of such a layout is an atom. It is given by its major mode
-- ("K" or "MN"), its swizzle ("INTER", "SW32", "SW64", "SW128") and the width
-- of its elements in bits. The atom has 8 rows, each as long as the swizzle's
-- span (for INTER, 128 bits). KINDS holds swizzles of byte offsets; smem.atom
-- converts them to element offsets. tcgen05 also has "SW128_32B", which
-- permutes pieces of 32 bytes, and whose atom has 4 rows.
local core = require "cute.core"

local smem = {}

-- The properties of each swizzle. `swizzle` has the numbers B, M, S of
-- Sw<B,M,S> on byte offsets. `bits` is the span of a row, and `rows` the number
-- of rows of an atom.
local KINDS = {
  INTER = {swizzle = {0, 4, 3}, bits = 128, rows = 8},
  SW32 = {swizzle = {1, 4, 3}, bits = 256, rows = 8},
  SW64 = {swizzle = {2, 4, 3}, bits = 512, rows = 8},
  SW128 = {swizzle = {3, 4, 3}, bits = 1024, rows = 8},
  SW128_32B = {swizzle = {2, 5, 2}, bits = 1024, rows = 4},
}

local function find(name)
  return KINDS[name] or core.fail("unknown-name", ("no shared-memory swizzle "
    .. "'%s' (INTER, SW32, SW64, SW128, SW128_32B)"):format(name))
end

--- Returns the swizzle on byte offsets of a kind such as "SW128".
function smem.swizzle(kind)
  return core.make_swizzle(table.unpack(find(kind).swizzle))
end

--- Returns the layout atom with this major mode and kind of swizzle. Its
-- swizzle works on element offsets.
---@param major "K"|"MN"
---@param kind "INTER"|"SW32"|"SW64"|"SW128"|"SW128_32B"
---@param bits integer width of an element
---@return cute.Layout
function smem.atom(major, kind, bits)
  local rows, span, sw = find(kind).rows, find(kind).bits, smem.swizzle(kind)
  if major ~= "K" and major ~= "MN" then
    core.fail("unknown-name", ("no major '%s' (K or MN)"):format(major))
  end
  local l = major == "K" and core.make_layout({rows, span}, {span, 1})
    or core.make_layout({span, rows}, {1, span})
  sw = bits >= 8 and core.upcast(sw, bits // 8) or core.downcast(sw, 8 // bits)
  return core.composition(sw, core.upcast(l, bits))
end

--- Returns the kind of the widest swizzle whose span divides a contiguous
-- extent of `bits` bits.
---@param bits integer the extent in bits
---@return string kind
function smem.widest(bits)
  for _, kind in ipairs {"SW128", "SW64", "SW32", "INTER"} do
    if bits > 0 and bits % KINDS[kind].bits == 0 then return kind end
  end
  core.fail("shape-mismatch", ("a contiguous extent of %d bits is not a "
    .. "multiple of 128"):format(bits))
end

-- The major mode for matrices whose second mode ("row") or first mode ("col")
-- is contiguous.
local MAJOR = {row = "K", col = "MN"}

--- Returns the major mode of a layout "row" or "col", or of a LayoutEnum.
---@param layout string|table
---@return "K"|"MN"
function smem.major(layout)
  local name = type(layout) == "table" and layout.name or layout
  return MAJOR[name] or core.fail("unknown-name", ("no layout '%s' (row or "
    .. "col)"):format(tostring(layout)))
end

return smem
-- SPDX-License-Identifier: MIT
