--- The canonical shared-memory layouts that warpgroup MMAs read.
--
-- An atom is given by its major ("K" or "MN"), its swizzle ("INTER", "SW32",
-- "SW64", "SW128") and the width of its elements in bits. In bits it is 8
-- rows of 128 bits times the swizzle's span; the stored swizzle works on
-- bytes.
local core = require "cute.core"

local smem = {}

-- B of Sw<B,4,3>, and the span in units of 16 bytes.
local KINDS = {
  INTER = {swizzle = {0, 4, 3}, bits = 128},
  SW32 = {swizzle = {1, 4, 3}, bits = 256},
  SW64 = {swizzle = {2, 4, 3}, bits = 512},
  SW128 = {swizzle = {3, 4, 3}, bits = 1024},
}
-- Blackwell's 32-byte granules: 4 rows, swizzled 16 bytes higher.
local UMMA_KINDS = setmetatable({
  SW128_32B = {swizzle = {2, 5, 2}, bits = 1024, rows = 4},
}, {__index = KINDS})

local function find(kinds, name)
  local kind = kinds[name]
  if kind then return kind end
  core.fail("unknown-name", ("no shared-memory swizzle '%s' (INTER, SW32, " ..
            "SW64, SW128)"):format(name))
end

local function swizzle(kind)
  return core.make_swizzle(table.unpack(kind.swizzle))
end

local function atom(kind, major, bits)
  local rows, span = kind.rows or 8, kind.bits
  local l
  if major == "K" then
    l = core.make_layout({rows, span}, {span, 1})
  elseif major == "MN" then
    l = core.make_layout({span, rows}, {1, span})
  else
    core.fail("unknown-name", ("no major '%s' (K or MN)"):format(major))
  end
  local sw = swizzle(kind)
  if bits >= 8 then
    sw = core.upcast(sw, bits // 8)
  else
    sw = core.downcast(sw, 8 // bits)
  end
  return core.composition(sw, core.upcast(l, bits))
end

--- The atom for wgmma, its swizzle on element offsets.
---@param major "K"|"MN"
---@param kind "INTER"|"SW32"|"SW64"|"SW128"
---@param bits integer of an element
---@return cute.Layout
function smem.gmma_atom(major, kind, bits)
  return atom(find(KINDS, kind), major, bits)
end

--- The swizzle of a kind as stored: on bytes.
function smem.gmma_swizzle(kind) return swizzle(find(KINDS, kind)) end

--- The atom for tcgen05.
function smem.umma_atom(major, kind, bits)
  return atom(find(UMMA_KINDS, kind), major, bits)
end

function smem.umma_swizzle(kind) return swizzle(find(UMMA_KINDS, kind)) end

return smem
