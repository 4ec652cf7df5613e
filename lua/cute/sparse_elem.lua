--- Element types of sparse tensors. A sparse element stores num_phys of
-- num_logical elements of the dense tensor. In a layout of sparse elements, as
-- in the layouts of cute.blackwell_sparse, shapes and offsets count elements of
-- the dense tensor:
--
--     local a = cute.get_sparse_elem_type(2, 1, cute.f16)
--     local sA = cute.make_smem_tensor(a.elem_type, a:stored(layout), 128)
local core = require "cute.core"

local sparse = {}

local function refuse(op, text, ...)
  core.fail("bad-argument", op .. ": " .. text:format(...))
end

local function is_power(n)
  return math.type(n) == "integer" and n > 0 and n & n - 1 == 0
end

---@class cute.SparseElemType
---@field num_logical integer number of elements of the dense tensor
---@field num_phys integer number of these elements that are stored
---@field elem_type cute.DType type of a stored element
---@field bits integer width of all stored elements of a sparse element
local Type = {__name = "sparse_elem"}
Type.__index = Type

function Type.__tostring(t)
  return ("sparse_elem<%d,vector<%dx%s>>"):format(t.num_logical, t.num_phys,
                                                  tostring(t.elem_type))
end

function Type.__eq(t, u)
  return t.num_logical == u.num_logical and t.num_phys == u.num_phys
    and t.elem_type == u.elem_type
end

--- Returns the layout of the stored elements of a tensor. The num_logical dense
-- elements that share a sparse element must have consecutive offsets.
---@param layout cute.Layout whose offsets count elements of the dense tensor
---@return cute.Layout whose offsets count stored elements
function Type:stored(layout)
  if core.typename(layout) ~= "layout" then
    core.bad_argument(1, "layout", layout)
  end
  local l = core.upcast(layout, self.num_logical)
  return self.num_phys == 1 and l or core.downcast(l, self.num_phys)
end

--- Returns the element type of a sparse tensor, with fields num_logical,
-- num_phys, elem_type and bits. Its method `stored` converts layouts.
---@param num_logical integer number of elements of the dense tensor: a power of
-- two
---@param num_phys integer number of these elements that are stored: a power of
-- two
---@param elem_type cute.DType type of a stored element
---@return cute.SparseElemType
function sparse.get_sparse_elem_type(num_logical, num_phys, elem_type)
  local op = "get_sparse_elem_type"
  if type(elem_type) == "string" then elem_type = core.find_dtype(elem_type) end
  if core.typename(elem_type) ~= "dtype" then
    core.bad_argument(3, "element type", elem_type)
  elseif not is_power(num_logical) or not is_power(num_phys)
    or num_phys > num_logical then
    refuse(op, "%s of %s elements cannot be stored: both numbers must be "
      .. "powers of two, the first at most the second", core.show(num_phys),
      core.show(num_logical))
  end
  return setmetatable({num_logical = num_logical, num_phys = num_phys,
                       elem_type = elem_type,
                       bits = num_phys * elem_type.bits}, Type)
end

---@class cute.SparseElem
---@field type cute.SparseElemType
---@field elems cute.Value[] the stored elements
local Element = {__name = "sparse element"}
Element.__index = Element

--- Stores this sparse element at position `index` of a tensor of stored
-- elements.
---@param tensor cute.Tensor whose layout is a result of type:stored
---@param index integer|cute.Value number of the sparse element in the tensor
function Element:store(tensor, index)
  if core.typename(tensor) ~= "tensor"
    or tensor.element_type ~= self.type.elem_type then
    core.fail("type-mismatch", ("store: %s needs a tensor of %s, got %s")
      :format(tostring(self.type), tostring(self.type.elem_type),
              core.show(tensor)))
  end
  local first = index * self.type.num_phys
  for i, x in ipairs(self.elems) do tensor[first + i - 1] = x end
end

--- Returns a sparse element for num_logical elements. `elems` are the stored
-- ones. Its method `store` writes it to a tensor.
---@param num_logical integer
---@param elems cute.Value[] of one type
---@return cute.SparseElem
function sparse.make_sparse_elem(num_logical, elems)
  local dtype
  for i, x in ipairs(elems) do
    if core.typename(x) ~= "value" then
      core.bad_argument(2, "list of traced values", x)
    elseif dtype and x.dtype ~= dtype then
      core.fail("type-mismatch", ("make_sparse_elem: element %d has type "
        .. "%s, the first has type %s"):format(i, tostring(x.dtype),
        tostring(dtype)))
    end
    dtype = dtype or x.dtype
  end
  if not dtype then core.bad_argument(2, "list of traced values", elems) end
  return setmetatable({
    type = sparse.get_sparse_elem_type(num_logical, #elems, dtype),
    elems = elems}, Element)
end

return sparse
-- SPDX-License-Identifier: MIT
