--- cute.utils.LayoutEnum: objects for the contiguous mode of a matrix, with the
-- Python DSL's names. Functions that accept "row" or "col" also accept these
-- objects.
local core = require "cute.core"
local sign = require "cute.lang.signature"
local smem = require "cute.smem"

local Layout = {}
Layout.__index = Layout

--- Returns which mode of an operand A (M,K) or B (N,K) with this layout is
-- contiguous.
---@return "K"|"MN" from OperandMajorMode
function Layout:mma_major_mode() return smem.major(self) end
--- Returns the result of mma_major_mode. The functions for Hopper use this
-- name.
function Layout:sm90_mma_major_mode() return smem.major(self) end

local function is(name) return function(self) return self.name == name end end

--- Reports whether K is contiguous in an operand A (M,K) with this layout.
Layout.is_k_major_a = is "row"
--- Reports whether M is contiguous in an operand A (M,K) with this layout.
Layout.is_m_major_a = is "col"
--- Reports whether K is contiguous in an operand B (N,K) with this layout.
Layout.is_k_major_b = is "row"
--- Reports whether N is contiguous in an operand B (N,K) with this layout.
Layout.is_n_major_b = is "col"
--- Reports whether N is contiguous in a matrix C (M,N) with this layout.
Layout.is_n_major_c = is "row"
--- Reports whether M is contiguous in a matrix C (M,N) with this layout.
Layout.is_m_major_c = is "col"

function Layout:__tostring()
  return self.name == "row" and "ROW_MAJOR" or "COL_MAJOR"
end

sign.class("LayoutEnum", Layout, [[
  mma_major_mode() sm90_mma_major_mode() is_k_major_a() is_m_major_a()
  is_k_major_b() is_n_major_b() is_n_major_c() is_m_major_c()
]])

local enum = {ROW_MAJOR = setmetatable({name = "row"}, Layout),
              COL_MAJOR = setmetatable({name = "col"}, Layout)}

--- Returns ROW_MAJOR or COL_MAJOR for a tensor or layout whose second or first
-- mode is contiguous.
---@param tensor table
---@return table
function enum.from_tensor(tensor)
  local layout = core.typename(tensor) == "tensor" and tensor.layout or tensor
  local function leads(mode)
    return core.rank(layout) > mode
      and core.eq(core.flatten_to_tuple(core.stride(layout, mode))[1], 1)
        == true
  end
  if leads(1) then return enum.ROW_MAJOR end
  if leads(0) then return enum.COL_MAJOR end
  core.fail("inadmissible", ("LayoutEnum: neither of the first two modes of %s "
    .. "is contiguous"):format(layout))
end

return sign.public("utils.LayoutEnum.", enum,
  "from_tensor(tensor: tensor|layout)")
-- SPDX-License-Identifier: MIT
