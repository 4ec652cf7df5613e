--- cute.utils.LayoutEnum: which mode of a matrix is contiguous, by the Python
-- DSL's names. What takes "row" or "col" takes these as well.
local core = require "cute.core"
local sign = require "cute.lang.signature"
local smem = require "cute.smem"

local Layout = {}
Layout.__index = Layout

--- The major of an operand, A (M,K) or B (N,K), that lies so.
---@return "K"|"MN" of OperandMajorMode
function Layout:mma_major_mode() return smem.major(self) end
--- mma_major_mode, by the name of Hopper's helpers.
function Layout:sm90_mma_major_mode() return smem.major(self) end

local function is(name) return function(self) return self.name == name end end

--- Is K contiguous in an A (M,K) that lies so?
Layout.is_k_major_a = is "row"
--- Is M contiguous in an A (M,K) that lies so?
Layout.is_m_major_a = is "col"
--- Is K contiguous in a B (N,K) that lies so?
Layout.is_k_major_b = is "row"
--- Is N contiguous in a B (N,K) that lies so?
Layout.is_n_major_b = is "col"
--- Is N contiguous in a C (M,N) that lies so?
Layout.is_n_major_c = is "row"
--- Is M contiguous in a C (M,N) that lies so?
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

--- Of a tensor or a layout, whose first or second mode is contiguous.
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
