--- Symbolic arguments: they stand for data, so that kernels compile without it.
--
--     local X = cute.symbolic {dtype = cute.bf16, shape = {"m", "k%8"},
--                              align = 16}
--     local run = cute.compile(k, X, 1.0, {block = 128})
--     run(x, 2.0, {grid = n})     -- x: any bf16 tensor that is as declared
--
-- An extent or stride is an integer or a symbol: cute.sym_int(), or a name such
-- as "m", optionally followed by `%` and a divisor. In one launch, a symbol has
-- the same value in all arguments.
local core = require "cute.core"

local symbolic = {}

-- The largest nesting depth of shapes and strides. Tuples have the same limit.
local DEEPEST = 32
local ids, named = 0, {}

local function new_symbol(width, divisibility)
  ids = ids + 1
  return core.symbol(ids, width, divisibility)
end

local function check_divisibility(d)
  if d ~= nil and (math.type(d) ~= "integer" or d < 1) then
    core.fail("bad-argument", ("divisibility = %s; an integer of at least 1 is "
      .. "needed"):format(core.show(d)))
  end
  return d or 1
end

--- Makes a symbolic integer of 32 or 64 bits, whose value each launch provides.
-- It can be an extent, a stride, or an argument.
---@param width? integer|table 32 (the default) or 64
---@param opts? {divisibility: integer} a known divisor
function symbolic.sym_int(width, opts)
  if type(width) == "table" then width, opts = nil, width end
  width = width or 32
  if width ~= 32 and width ~= 64 then
    core.fail("bad-argument", ("sym_int of %s bits; 32 or 64 is needed"):format(
      core.show(width)))
  end
  return new_symbol(width, check_divisibility(opts and opts.divisibility))
end

--- Makes a 32-bit integer whose value each launch provides: sym_int(32).
---@param divisibility? integer a known divisor
function symbolic.sym_int32(divisibility)
  return new_symbol(32, check_divisibility(divisibility))
end

--- Makes a 64-bit integer whose value each launch provides: sym_int(64).
---@param divisibility? integer a known divisor
function symbolic.sym_int64(divisibility)
  return new_symbol(64, check_divisibility(divisibility))
end

---------------------------------------------------------------------------
-- Extents and strides
---------------------------------------------------------------------------

-- Returns a table of the known facts about x, an extent or a stride. For an
-- integer it is {n = x, div = max(x, 1)}. For a symbol it is {div = its
-- divisor, id = its number, wide = whether it has 64 bits}.
local function leaf(what, x)
  if math.type(x) == "integer" then
    if x < 0 then
      core.fail("bad-argument", ("symbolic tensor: %d in its %s; 0 or more is "
        .. "needed"):format(x, what))
    end
    return {n = x, div = math.max(x, 1)}
  elseif core.typename(x) == "symbol" then
    return {div = x.divisibility, id = x.id, wide = x.width == 64}
  end
  local name, div = tostring(x):match "^(%a[%w_]*)%%?(%d*)$"
  if type(x) ~= "string" or not name or x:find "%%$" then
    core.fail("bad-argument", ("symbolic tensor: %s in its %s; an integer, "
      .. "cute.sym_int(), or a name such as \"m\" or \"m%%8\" is "
      .. "needed"):format(
      core.show(x), what))
  end
  named[name] = named[name] or symbolic.sym_int()
  div = div ~= "" and (math.tointeger(div) or div) or nil
  return {id = named[name].id, div = check_divisibility(div)}
end

-- Appends all integers and symbols of a nested table to a list.
local function flat(x, list, depth)
  if x == nil then core.fail("bad-argument", "a shape is needed, got nil") end
  if type(x) ~= "table" then
    list[#list + 1] = x
    return list
  end
  if depth > DEEPEST then
    core.fail("limit", ("tuples nest at most %d deep"):format(DEEPEST))
  end
  for k in next, x do
    if math.type(k) ~= "integer" or k < 1 or k > #x or x[k - 1] == nil
      and k > 1 then
      core.fail("bad-argument", ("%s is not a tuple: a list of integers and "
        .. "names is needed"):format(core.show(x)))
    end
  end
  for _, v in ipairs(x) do flat(v, list, depth + 1) end
  return list
end

local function collect(what, x)
  local list = flat(x, {}, 0)
  for i, v in ipairs(list) do list[i] = leaf(what, v) end
  return list
end

-- Returns a copy of the nested tables of x in which each symbol is replaced by
-- its divisor.
local function numbers(x, list, at)
  if type(x) ~= "table" then
    at[1] = at[1] + 1
    local l = list[at[1]]
    return l.n or l.div
  end
  local out = {}
  for i, v in ipairs(x) do out[i] = numbers(v, list, at) end
  return out
end

local function times(a, b)
  if a.n == 1 then return b end
  if b.n == 1 then return a end
  return {n = a.n and b.n and a.n * b.n, div = a.div * b.div,
          wide = a.wide or b.wide}
end

-- Returns the compact strides of the leaves of a shape. `order` has a number
-- for each leaf. The leaf with the lowest number varies fastest.
local function compact(shape, order)
  local at, stride, step = {}, {}, {n = 1, div = 1}
  for i = 1, #shape do at[i] = i end
  table.sort(at, function(a, b) return order[a] < order[b] end)
  for _, i in ipairs(at) do
    stride[i] = step
    if shape[i].n ~= 0 then step = times(step, shape[i]) end
  end
  return stride
end

local function check_order(given, n)
  local order, seen = flat(given, {}, 0), {}
  for _, o in ipairs(order) do seen[math.tointeger(o) or false] = true end
  for i = 0, n - 1 do
    if #order ~= n or not seen[i] then
      core.fail("bad-argument", ("stride_order = %s; 0 to %d, once each, is "
        .. "needed"):format(core.show(given), n - 1))
    end
  end
  return order
end

---------------------------------------------------------------------------
-- Tensors
---------------------------------------------------------------------------

local function list_of(leaves, field)
  local out = {}
  for i, l in ipairs(leaves) do out[i] = not l.n and l[field] or 0 end
  return out
end

local function check_align(dtype, align)
  local least = math.max(1, dtype.bits // 8)
  if align == nil then return least end
  if math.type(align) ~= "integer" or align < least or align & (align - 1) ~= 0
    or align > 256 then
    core.fail("bad-argument", ("an alignment of %s bytes; a power of two from "
      .. "%d to 256 is needed"):format(core.show(align), least))
  end
  return align
end

-- Returns x, or {x} if it is not a table: shapes and strides of tensors are
-- tuples.
local function tuple(x) return type(x) == "table" and x or {x} end

-- Makes a symbolic tensor from a table d: {dtype =, shape =, stride = or order
-- =, align =, wide =}.
local function make(d)
  d.shape, d.stride = tuple(d.shape), d.stride and tuple(d.stride)
  local shape = collect("shape", d.shape)
  local stride = d.stride and collect("stride", d.stride)
    or compact(shape, d.order)
  local wide = d.wide or false
  for _, list in ipairs {shape, stride} do
    for _, l in ipairs(list) do wide = wide or l.wide or false end
  end
  return core.symbolic_tensor(d.dtype, numbers(d.shape, shape, {0}),
    numbers(d.stride or d.shape, stride, {0}), {
      shape = list_of(shape, "div"), stride = list_of(stride, "div"),
      shape_symbol = list_of(shape, "id"),
      stride_symbol = list_of(stride, "id"),
      align = check_align(d.dtype, d.align), wide = wide})
end

local function type_of(dtype)
  local t = type(dtype) == "string" and core[dtype] or dtype
  if core.typename(t) ~= "dtype" then
    core.fail("bad-argument", ("symbolic tensor: no element type %s"):format(
      core.show(dtype)))
  end
  return t
end

local function options(what, given)
  local space = given and given.memspace
  if space ~= nil and space ~= "gmem" then
    core.fail("bad-argument", ("%s: memspace = %s; argument tensors must be in "
      .. "gmem"):format(what, core.show(space)))
  end
  return given or {}
end

--- Makes a tensor without data from extents and strides.
---@param dtype cute.DType|string
---@param shape any
---@param stride any
---@param opts? {assumed_align: integer, memspace: string}
function symbolic.make_fake_tensor(dtype, shape, stride, opts)
  opts = options("make_fake_tensor", opts)
  return make {dtype = type_of(dtype), shape = shape, stride = stride,
               align = opts.assumed_align}
end

--- Makes a compact tensor without data. `stride_order` is the order of its
-- modes; if absent, mode 0 varies fastest. The strides have 32 bits unless
-- use_32bit_stride = false.
---@param dtype cute.DType|string
---@param shape any
---@param opts? table {stride_order: integer[], assumed_align: integer,
-- use_32bit_stride: boolean, memspace: string}
function symbolic.make_fake_compact_tensor(dtype, shape, opts)
  opts = options("make_fake_compact_tensor", opts)
  local n, order = #flat(shape, {}, 0), nil
  if opts.stride_order then order = check_order(opts.stride_order, n) end
  if not order then
    order = {}
    for i = 1, n do order[i] = i - 1 end
  end
  return make {dtype = type_of(dtype), shape = shape, order = order,
               align = opts.assumed_align,
               wide = opts.use_32bit_stride == false}
end

--- Makes a tensor without data: {dtype =, shape =, stride =, align =}. If
-- stride is absent, the tensor is compact and its last mode varies fastest,
-- like cute.zeros. If align (bytes) is absent, the tensor is aligned like an
-- element.
---@param d {dtype: cute.DType|string, shape: any, stride: any, align: integer}
function symbolic.symbolic(d)
  local order, n = {}, #flat(d.shape, {}, 0)
  for i = 1, n do order[i] = n - i end
  return make {dtype = type_of(d.dtype), shape = d.shape, stride = d.stride,
               order = order, align = d.align}
end

return symbolic
-- SPDX-License-Identifier: MIT
