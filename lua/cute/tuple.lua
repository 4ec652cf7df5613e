--- Functions on IntTuples that call back into Lua, and small helpers.
local core = require "cute.core"

local tuple = {}

--- f of every leaf, in the same nesting; of further tuples of the same
--- nesting the leaves are passed along.
---@param f fun(...): any
---@param t any integer or tuple
---@return any
function tuple.transform_leaf(f, t, ...)
  if type(f) ~= "function" then f, t = t, f end
  if type(t) ~= "table" then return f(t, ...) end
  local more, result = {...}, {}
  for i, x in ipairs(t) do
    local others = {}
    for k, o in ipairs(more) do others[k] = o[i] end
    result[i] = tuple.transform_leaf(f, x, table.unpack(others))
  end
  return core.tuple(result)
end

--- The first mode (0-based) for which f is true, or nil.
---@param t any integer or tuple
---@param f fun(x: any): boolean
---@return integer?
function tuple.find_if(t, f)
  for i, x in ipairs(type(t) == "table" and t or {t}) do
    if f(x) then return i - 1 end
  end
  return nil
end

--- The modes of the tuples that f returns for each mode of t, as one tuple.
---@param t any integer or tuple
---@param f fun(x: any): table
---@return table
function tuple.filter_tuple(t, f)
  local result = {}
  for _, x in ipairs(type(t) == "table" and t or {t}) do
    for _, y in ipairs(f(x)) do result[#result + 1] = y end
  end
  return core.tuple(result)
end

--- The coordinates of a shape in colexicographic order:
--- `for c in cute.coords(l.shape) do ... l(c) ... end`.
---@param shape any integer or tuple
---@return fun(): any
function tuple.coords(shape)
  local n, i = core.size(shape), -1
  return function()
    i = i + 1
    if i < n then return core.idx2crd(i, shape) end
  end
end

--- CuTe notation of a layout, tuple, swizzle or tensor.
---@return string
function tuple.pretty_str(x)
  if type(x) == "table" and not (getmetatable(x) or {}).__tostring then
    x = core.tuple(x)
  end
  return tostring(x)
end

--- Bytes that elements of a type take under a layout.
---@param dtype any element type
---@param layout cute.Layout
---@return integer
function tuple.size_in_bytes(dtype, layout)
  return (core.cosize(layout) * dtype.bits + 7) // 8
end

return tuple
