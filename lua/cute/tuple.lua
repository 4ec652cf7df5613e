--- Functions on IntTuples that call a Lua function for each element or mode,
-- and small helpers.
local core = require "cute.core"

local tuple = {}

-- Returns the function and the other argument, in this order. In the Python
-- DSL, some functions take the callback first and some take it last; here all
-- accept both orders.
local function callback(name, f, t)
  if type(f) ~= "function" then f, t = t, f end
  if type(f) ~= "function" then
    core.fail("bad-argument", ("%s takes a function and a tuple, got %s and %s")
      :format(name, core.show(t), core.show(f)))
  end
  return f, t
end

local function modes(t) return type(t) == "table" and t or {t} end

-- The largest nesting depth of a tuple. core/layout/layout.h has the same
-- limit.
local MAX_DEPTH = 32

local function leaves(f, depth, t, ...)
  if type(t) ~= "table" then return f(t, ...) end
  if depth > MAX_DEPTH then
    core.fail("limit", ("tuples nest at most %d deep"):format(MAX_DEPTH))
  end
  local more, result = {...}, {}
  for k, o in ipairs(more) do
    if type(o) ~= "table" or #o ~= #t then
      core.fail("shape-mismatch", ("transform_leaf: tuple 1 is %s and tuple "
        .. "%d is %s; they differ in nesting"):format(tuple.pretty_str(t),
        k + 1, tuple.pretty_str(o)))
    end
  end
  for i, x in ipairs(t) do
    local others = {}
    for k, o in ipairs(more) do others[k] = o[i] end
    result[i] = leaves(f, depth + 1, x, table.unpack(others))
  end
  return core.tuple(result)
end

--- Applies f to every leaf of a tuple and keeps the nesting. If further tuples
-- with the same nesting are given, f also receives their leaves.
---@param f fun(...): any
---@param t any integer or tuple
---@return any
function tuple.transform_leaf(f, t, ...)
  f, t = callback("transform_leaf", f, t)
  return leaves(f, 1, t, ...)
end

--- Applies f to each mode of a tuple, and g to all results. If further tuples
-- of the same rank are given, f also receives their modes. An integer is one
-- mode.
---
---     cute.transform_apply({1, 2}, {3, 4}, math.max, math.min)  --> 3
---@param ... any tuples, then f and g
---@return any
function tuple.transform_apply(...)
  local args = table.pack(...)
  local f, g = args[args.n - 1], args[args.n]
  if args.n < 3 then
    core.bad_argument(args.n + 1, "tuples and two functions", nil)
  end
  for n = args.n - 1, args.n do
    if type(args[n]) ~= "function" then
      core.bad_argument(n, "a function", args[n])
    end
  end
  local results, rank = {}, #modes(args[1])
  for k = 2, args.n - 2 do
    if #modes(args[k]) ~= rank then
      core.fail("shape-mismatch", ("transform_apply: tuple 1 is %s and "
        .. "tuple %d is %s; they differ in rank"):format(
        tuple.pretty_str(args[1]), k, tuple.pretty_str(args[k])))
    end
  end
  for i = 1, rank do
    local list = {}
    for k = 1, args.n - 2 do list[k] = modes(args[k])[i] end
    results[i] = f(table.unpack(list, 1, args.n - 2))
  end
  return g(table.unpack(results, 1, rank))
end

--- Returns the first mode (0-based) for which f is true, or nil.
---@param t any integer or tuple
---@param f fun(x: any): boolean
---@return integer?
function tuple.find_if(t, f)
  f, t = callback("find_if", f, t)
  for i, x in ipairs(modes(t)) do
    if f(x) then return i - 1 end
  end
  return nil
end

--- Calls f for each mode of t, and concatenates the modes of the tuples that f
-- returns. If further tuples of the same rank are given, f also receives their
-- modes.
---@param t any integer or tuple
---@param f fun(x: any, ...: any): table
---@return table
function tuple.filter_tuple(t, f, ...)
  f, t = callback("filter_tuple", f, t)
  local result, more = {}, {}
  for k = 1, select("#", ...) do
    more[k] = modes((select(k, ...)))
    if #more[k] ~= #modes(t) then
      core.fail("shape-mismatch", ("filter_tuple: tuple 1 is %s and tuple %d "
        .. "is %s; they differ in rank"):format(tuple.pretty_str(t), k + 1,
        tuple.pretty_str(more[k])))
    end
  end
  for i, x in ipairs(modes(t)) do
    local others = {}
    for k, m in ipairs(more) do others[k] = m[i] end
    local kept = f(x, table.unpack(others))
    if type(kept) ~= "table" then
      core.fail("bad-argument", ("filter_tuple: the function returned a %s for "
        .. "%s, not a tuple: return {} to drop a mode, {x} to keep it")
        :format(core.typename(kept), tuple.pretty_str(x)))
    end
    for _, y in ipairs(kept) do result[#result + 1] = y end
  end
  return core.tuple(result)
end

--- Appends modes of extent 1 (with stride 0 for layouts and tensors) until the
-- rank is up_to_rank. If up_to_rank is absent, appends one mode.
---
---     cute.append_ones({8, 4}, 4)  --> (8,4,1,1)
---     cute.append_ones(cute.make_layout {8, 4}, 3)  --> (8,4,1):(1,8,0)
---@param x any tuple, layout or tensor
---@param up_to_rank? integer
---@return any
function tuple.append_ones(x, up_to_rank)
  local rank = core.rank(x)
  up_to_rank = up_to_rank or rank + 1
  if up_to_rank < rank then
    core.fail("bad-argument", ("append_ones: the rank is %d, already above %d")
      :format(rank, up_to_rank))
  elseif up_to_rank == rank then
    return x
  end
  local kind = core.typename(x)
  if kind == "tensor" then
    return core.make_tensor(x.iterator, tuple.append_ones(x.layout, up_to_rank))
  end
  return core.append(x, kind == "layout" and core.make_layout(1) or 1,
                     up_to_rank)
end

--- Returns x and assumes that it is divisible: assume(x, 8), or assume(x, {div
-- = 8}). For a traced integer this shortens index arithmetic. A false
-- assumption is undefined behaviour on a GPU; the simulator checks it where
-- assume was called. A plain integer is checked at once. With four arguments,
-- also assumes a range: lo <= x <= hi, divisible by div. If a later loop counts
-- from 0 to x and lo is at least 1, the emitted text tells the compiler that
-- the loop runs.
---@param x cute.Int
---@param lo integer|table the divisor or, if hi and div follow, the least value
---@param hi? integer
---@param div? integer
---@return cute.Int x
function tuple.assume(x, lo, hi, div)
  if hi == nil and div == nil then
    div = type(lo) == "table" and lo.div or lo or 1
    lo = nil
  end
  if math.type(div) ~= "integer" or div < 1 then
    core.fail("bad-argument", "assume: the divisor must be a positive integer,"
      .. " not " .. tostring(div))
  end
  if math.type(x) then
    if x % div ~= 0 or lo and (x < lo or x > hi) then
      core.fail("bad-argument", ("assume: %s is not %sdivisible by %d")
        :format(x, lo and ("in [%s,%s] and "):format(lo, hi) or "", div))
    end
    return x
  end
  if not lo then
    local known = core.fact(x)
    lo, hi = known.lo, known.hi
    div = math.max(known.div, 1) // core.gcd(known.div, div) * div
  end
  core.claim(x, lo, hi, div)
  return core.assume(x, lo, hi, div)
end

--- Iterates over the coordinates of a shape in colexicographic order:
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

--- Returns the CuTe notation of a layout, tuple, swizzle or tensor.
---@return string
function tuple.pretty_str(x)
  if type(x) == "table" and not (getmetatable(x) or {}).__tostring then
    x = core.tuple(x)
  end
  return tostring(x)
end

--- Returns the number of bytes of a tensor, or of a layout with elements of the
-- given type.
---@param dtype any an element type, or a tensor without further arguments
---@param layout? any layout, tensor or shape
---@return integer
function tuple.size_in_bytes(dtype, layout)
  local kind = core.typename(dtype)
  if kind == "tensor" and layout == nil then
    dtype, layout = dtype.element_type, dtype
  end
  if type(layout) == "table" or math.type(layout) then
    layout = core.make_layout(layout)
  end
  return (core.cosize(layout) * dtype.bits + 7) // 8
end

return tuple
-- SPDX-License-Identifier: MIT
