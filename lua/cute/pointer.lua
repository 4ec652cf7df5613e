--- Pointers (iterators) and what is made like something else.
local core = require "cute.core"

local pointer = {}

-- A pointer to global memory at an address that a kernel has.
local function at_address(dtype, address, memspace, opts)
  if memspace and memspace ~= "gmem" then
    core.fail("bad-argument", ("make_ptr: an address is one of gmem, not of %s")
      :format(core.show(memspace)))
  end
  local align = opts and opts.assumed_align
  if align ~= nil and math.type(align) ~= "integer" then
    core.fail("bad-argument", ("make_ptr: assumed_align = %s: an integer is "
      .. "needed"):format(core.show(align)))
  end
  return core.ptr_at(dtype, address, align or math.max(dtype.bits // 8, 1))
end

--- A pointer to elements of `dtype`: into a buffer or tensor of the host; what
-- an iterator of a kernel points to, taken for another type; or global memory
-- at an address, of type i64 or u64, that a kernel loads (`tensor.address`
-- of the host or a GPU) or computes. The simulator follows it to the arguments
-- of the launch and to tensors whose address was asked for; a GPU follows it
-- anywhere.
---@param dtype cute.DType
---@param value table|integer a buffer, tensor, iterator or address
---@param memspace? string "host" "gmem" "smem" "rmem": checked when given
---@param opts? table {assumed_align: integer} bytes that an address is a
---   multiple of; an element's when absent
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

--- The pointer with elements of another type, seen through a swizzle in place
-- of the one that it has, or both, in either order.
---@param ptr table iterator
---@param dtype? cute.DType
---@param swizzle? table of make_swizzle
---@return table iterator
function pointer.recast_ptr(ptr, dtype, swizzle)
  local given = {}
  for k, v in pairs {dtype, swizzle} do
    if type(v) == "string" then v = core.find_dtype(v) or v end
    local kind = core.typename(v)
    if kind == "constant" then kind = "swizzle" end  -- or it is told below
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

--- A vector shaped like x (of another type when given). Its elements are 0:
-- values of a kernel are never undefined.
---@param x table vector or tensor
---@param dtype? cute.DType
function pointer.empty_like(x, dtype) return core.full_like(x, 0, dtype) end

--- An atom by its name: of an MMA, or a copy of elements of `dtype`.
---@param name string
---@param dtype? cute.DType
function pointer.make_atom(name, dtype)
  if dtype then return core.make_copy_atom(name, dtype) end
  return core.make_mma_atom(name)
end

return pointer
