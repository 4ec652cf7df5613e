--- Makes pointers (iterators), and tensors and atoms that resemble given ones.
local core = require "cute.core"

local pointer = {}

-- Returns a pointer to global memory. A kernel computes the address.
local function at_address(dtype, address, memspace, opts)
  if memspace and memspace ~= "gmem" then
    core.fail("bad-argument", ("make_ptr: an integer address needs memory "
      .. "space gmem, not %s")
      :format(core.show(memspace)))
  end
  local align = opts and opts.assumed_align
  if align ~= nil and math.type(align) ~= "integer" then
    core.fail("bad-argument", ("make_ptr: assumed_align = %s; an integer is "
      .. "needed"):format(core.show(align)))
  end
  return core.ptr_at(dtype, address, align or math.max(dtype.bits // 8, 1))
end

--- Makes a pointer to elements of `dtype`. There are three kinds of source: a
-- buffer or tensor of the host; an iterator of a kernel, to whose memory the
-- result points; or an address of type i64 or u64 in global memory. A kernel
-- loads an address that the host read from `tensor.address`, or computes one.
-- In the simulator it must point to an argument of the launch, or to a tensor
-- whose `address` the script has read. A GPU accepts any address.
---@param dtype cute.DType
---@param value table|integer a buffer, tensor, iterator or address
---@param memspace? string "host" "gmem" "smem" "rmem": the expected memory
-- space, which is checked
---@param opts? table {assumed_align: integer} alignment of an address in bytes;
-- if absent, that of an element
---@return table iterator
function pointer.make_ptr(dtype, value, memspace, opts)
  if type(dtype) == "string" then dtype = core[dtype] end
  if type(memspace) == "table" and opts == nil then
    memspace, opts = nil, memspace
  end
  if math.type(value) == "integer" or core.typename(value) == "value" then
    return at_address(dtype, value, memspace, opts)
  end
  local it = core.typename(value) == "buffer"
    and core.make_tensor(value, core.make_layout(1)) or value
  it = it.iterator
  if memspace and memspace ~= it.memspace then
    core.fail("type-mismatch", ("make_ptr: the pointer is to %s, not %s")
      :format(it.memspace, tostring(memspace)))
  end
  if it.element_type == dtype then return it end
  return pointer.recast_ptr(it, dtype)
end

--- Returns the pointer with another element type, another swizzle, or both. The
-- two arguments may be in either order.
---@param ptr table iterator
---@param dtype? cute.DType
---@param swizzle? table from make_swizzle
---@return table iterator
function pointer.recast_ptr(ptr, dtype, swizzle)
  local given = {}
  for k, v in pairs {dtype, swizzle} do
    if type(v) == "string" then v = core.find_dtype(v) or v end
    local kind = core.typename(v)
    -- core.typename returns "constant" for swizzles, bases and `cute._`;
    -- make_composed_layout below rejects those that are not swizzles.
    if kind == "constant" then kind = "swizzle" end
    if kind ~= "dtype" and kind ~= "swizzle" or given[kind] then
      core.bad_argument(k + 1, "element type or swizzle", v)
    end
    given[kind] = v
  end
  dtype, swizzle = given.dtype, given.swizzle
  if swizzle then ptr = core.unswizzled(ptr) end
  if dtype and dtype ~= ptr.element_type then
    local n = math.max(dtype.bits // ptr.element_type.bits, 1)
    local view = core.make_tensor(ptr, core.make_layout(n, 1))
    ptr = core.recast_tensor(view, dtype).iterator
  end
  if not swizzle then return ptr end
  local one = core.make_layout(1)
  return core.make_tensor(ptr, core.make_composed_layout(swizzle, 0, one))
    .iterator
end

--- Makes a tensor or vector with the shape of x. Its type is x's unless `dtype`
-- is given. Its elements are 0, because values of a kernel are never undefined.
---@param x table vector or tensor
---@param dtype? cute.DType
function pointer.empty_like(x, dtype) return core.full_like(x, 0, dtype) end

--- Returns the MMA atom with this name or, if `dtype` is given, the copy atom
-- for elements of that type.
---@param name string
---@param dtype? cute.DType
function pointer.make_atom(name, dtype)
  if dtype then return core.make_copy_atom(name, dtype) end
  return core.make_mma_atom(name)
end

return pointer
-- SPDX-License-Identifier: MIT
