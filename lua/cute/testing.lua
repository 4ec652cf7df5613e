--- cute.testing: assertions in a kernel, and conversion of tensors. The package
-- cutelua adds timing and the choice of the fastest configuration.
local sign = require "cute.lang.signature"
local core = require "cute.core"

local testing = {}

--- Stops the kernel if the condition is false. The simulator then reports the
-- line and the text; a GPU traps. On the host it is Lua's assert.
---@param cond any
---@param text? string
function testing.assert_(cond, text)
  if core.typename(cond) == "value" then
    core.trap(cond, text or "")
  elseif not cond then
    core.fail("bad-argument", ("assertion failed%s: the condition is %s")
      :format(text and ": " .. text or "", tostring(cond)))
  end
end

--- Copies every element of src to dst, of the same size, rounded to dst's type.
-- The copy runs on dst's device (types of less than 8 bits: on the host).
-- Returns dst.
---@param src table
---@param dst table
function testing.convert(src, dst)
  local n = core.size(src)
  if n ~= core.size(dst) then
    core.fail("shape-mismatch", ("convert: %s to %s"):format(
      tostring(core.shape(src)), tostring(core.shape(dst))))
  end
  if dst.device ~= "host" and dst.dtype.bits >= 8 and src.dtype.bits >= 8
    and require "cute.ops.elementwise".move(dst, src:to(dst.device)) then
    return dst
  end
  local here = dst:to "host"
  for i, x in src:to "host":elements() do here[i] = x end
  if here ~= dst then dst:copy_from(here) end
  return dst
end

--- Copies a tensor to the host and leaves a gap after each row of its fastest
-- mode. A gap has 16 bytes or more and ends at a multiple of 16 bytes. On the
-- simulator a kernel must not access the gaps. Without gaps, an access beyond
-- the end of a row would reach the next row unnoticed. The shape must consist
-- of integers.
---@param t table
---@return table
function testing.padded(t)
  local bits, order, stride = t.dtype.bits, {}, {}
  for i = 1, core.rank(t) do
    order[i] = i
    if not (math.type(t.shape[i]) and math.type(t.stride[i])) then
      core.fail("bad-argument", "padded: a shape (integer, integer ...) is "
        .. "needed, not the shape of " .. tostring(t))
    end
  end
  table.sort(order, function(i, j)
    return t.stride[i] < t.stride[j] or (t.stride[i] == t.stride[j] and i < j)
  end)
  -- Number of elements in 16 bytes.
  local unit = math.max(128 // bits, 1)
  local size = 1
  for k, i in ipairs(order) do
    stride[i], size = size, size * t.shape[i]
    if k == 1 then size = (size + unit - 1) // unit * unit + unit end
  end
  local buffer = core.buffer(t.dtype, size)
  buffer:fill(0)
  return core.make_tensor(buffer, core.make_layout(t.shape, stride))
    :copy_from(t:to "host")
end

return sign.public("testing.", testing, [[
  assert_(condition, text?: string) convert(src: tensor, dst: tensor)
  padded(t: tensor)
]])
-- SPDX-License-Identifier: MIT
