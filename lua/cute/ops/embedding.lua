--- Implements ops.embedding (selects rows of a table by indices), ops.rope
-- (rotates heads by position), and their gradients. They use
-- kernels/embedding.lua and kernels/rope.lua.
local calls = require "cute.ops.calls"
local core = require "cute.core"
local cute = require "cute"
local elementwise = require "cute.ops.elementwise"
local kernel = require "kernels.embedding"
local modes = require "cute.ops.modes"
local rotation = require "kernels.rope"
local operand = require "cute.ops.operand"
local rowwise = require "cute.ops.rowwise"
local tensor_op = require "cute.ops.tensor_op"

local embedding = {}

-- Raises an error unless t has elements of type i32 or i64.
local function check_indices(call, name, t)
  local dtype = t.element_type
  if dtype ~= cute.i32 and dtype ~= cute.i64 then
    call:fail("%s has elements of type %s; i32 or i64 is needed", name, dtype)
  end
end

local embedding_rows = rowwise.operation("ops.embedding", {names = {"I", "W"},
  flat = "I W", plan = function(call)
    local I, W = call.I, call.W
    check_indices(call, "I", I)
    call:floats("W", W)
    if cute.rank(W) ~= 2 then
      call:fail("W is %s; (rows, columns) are needed", W.layout)
    end
    local count, n = cute.size(W.shape[1]), cute.size(W.shape[2])
    local shape = modes.extents(I.layout)
    shape[#shape + 1] = n
    local dtype = call:dtype("ops.embedding", W)
    if dtype ~= W.element_type then
      call:fail("the result must have the type of W, %s, not %s",
                W.element_type, dtype)
    end
    local p = call:start(2, {{shape = shape, dtype = dtype}})
    if cute.product(shape) == 0 then return p end
    local o = rowwise.shape_of({W, call.out[1]}, 2, {})
    o.rows = count
    local k, m = kernel(o), cute.size(I)
    p.steps[1] = rowwise.step(k, k.grid(m), function(now, out)
      return {rowwise.vector(now.I), rowwise.matrix(now.W),
              rowwise.matrix(out[1]), n = 3}
    end)
    return p
  end})

--- Returns the rows of W whose indices are in I: (...,N) for I (...) and W
-- (rows,N). For an index outside of W, the elements of the returned row are
-- NaN.
---@param I any i32 or i64
---@param W any
---@param o? {out: any}
function embedding.embedding(I, W, o)
  return embedding_rows(I, W, o)
end

local add = rowwise.operation("ops.embedding_backward", {names = {"dY", "I"},
  flat = "I dY", options = {rows = "integer"}, plan = function(call)
    local dY, I, count = call.dY, call.I, call.o.rows
    check_indices(call, "I", I)
    call:floats("dY", dY)
    local _, _, m, n = rowwise.extents(dY)
    if cute.size(I) ~= m then
      call:fail("I is %s; %d elements are needed, one for each row of dY",
                I.layout, m)
    elseif count < 0 then
      call:fail("rows = %d; 0 or more is needed", count)
    end
    local dtype = call:dtype("ops.embedding_backward", dY)
    local p = call:start(2, {{shape = {count, n}, dtype = dtype}})
    p.anew = true
    if count * n == 0 then return p end
    -- The kernel adds only to the selected rows of dW, so all of dW is set to 0
    -- first.
    local dW = call.out[1] or calls.empty({count, n}, dtype, p.place)
    call.out[1] = dW
    p.steps = elementwise.filling(dW, 0, cute.f32, call.o)
    if m == 0 then return p end
    local o = rowwise.shape_of({dY, dW}, 2, {})
    o.rows, o.backward = count, true
    local k = kernel(o)
    p.steps[#p.steps + 1] = rowwise.step(k, k.grid(m), function(now, out)
      return {rowwise.vector(now.I), rowwise.matrix(now.dY),
              rowwise.matrix(out[1]), n = 3}
    end)
    return p
  end})

--- Returns dW (rows,N), the gradient of W in Y = ops.embedding(I, W). Row i of
-- dW is the sum of the rows of dY whose index is i, in a fixed order.
---@param dY any (...,N)
---@param I any i32 or i64 (...)
---@param rows integer the number of rows of W
---@param o? {out: any, dtype: any}
function embedding.embedding_backward(dY, I, rows, o)
  return add(dY, I, tensor_op.with({rows = rows}, o))
end

---------------------------------------------------------------------------
-- Rotary position embedding
---------------------------------------------------------------------------

local function check_table(call, name, t, positions, half)
  call:floats(name, t)
  local shape = modes.extents(t.layout)
  if #shape ~= 2 or shape[1] < positions or shape[2] ~= half then
    call:fail("%s is %s; at least %d rows of %d elements are needed", name,
              t.layout, positions, half)
  end
end

-- Returns a view of tensor t (...,H,D) as (M,H,D) with contiguous heads.
-- Returns nil if the leading modes cannot be merged into M, or if heads are not
-- contiguous.
local function tokens(t)
  local shape, stride, rank = t.shape, t.stride, cute.rank(t)
  local heads, d = shape[rank - 1], shape[rank]
  local m, step = rowwise.leading(t.layout, rank - 2)
  if not m or type(heads) == "table" or type(d) == "table"
    or type(step) == "table" or d > 1 and stride[rank] ~= 1 then
    return nil
  end
  return cute.make_tensor(t.iterator, cute.make_layout({m, heads, d},
    {step, stride[rank - 1], 1}))
end

local function is_rotated(t) return cute.rank(t) < 3 or tokens(t) ~= nil end

-- Raises an error if a position in the host's memory is not a row index of the
-- tables Cos and Sin. The kernel does not check positions.
local function check_positions(call)
  local at, of = call.positions, call.Cos.layout
  if core.typename(at) ~= "tensor" or at.device ~= "host"
    or at.element_type ~= cute.i32 then return end
  local rows = cute.size(of.shape[1])
  for i = 0, cute.size(at) - 1 do
    if at[i] < 0 or at[i] >= rows then
      call:fail("positions[%d] = %d, but Cos is %s: positions are its rows, 0 "
        .. "to %d", i, at[i], of, rows - 1)
    end
  end
end

local rope = rowwise.operation("ops.rope", {names = {"X", "Cos", "Sin"},
  check = check_positions,
  flat = "Cos Sin positions", tensors = {"positions"}, fits = is_rotated,
  apart = function(t) return is_rotated(t) and rowwise.injective(t) end,
  options = {interleaved = "boolean", inverse = "boolean"},
  plan = function(call)
    local X, o, at = call.X, call.o, call.positions
    call:floats("X", X)
    local shape = modes.extents(X.layout)
    local rank = #shape
    if rank < 3 then
      call:fail("X is %s; modes (..., S, H, D) are needed", X.layout)
    end
    local s, heads, d = shape[rank - 2], shape[rank - 1], shape[rank]
    if d % 2 ~= 0 then
      call:fail("X is %s; heads of an even number of elements are needed",
                X.layout)
    end
    local dtype = call:dtype("ops.rope", X)
    local p = call:start(4, {{shape = shape, dtype = dtype}})
    local m = cute.product(shape) // math.max(1, heads * d)
    check_table(call, "Cos", call.Cos, at and 1 or s, d // 2)
    check_table(call, "Sin", call.Sin, at and 1 or s, d // 2)
    local rows = at and cute.size(call.Cos.shape[1]) or s
    if at and (at.element_type ~= cute.i32 or cute.size(at) ~= m) then
      call:fail("positions is %s of %s; %d elements of i32 are needed",
                at.layout, at.element_type, m)
    elseif at and cute.size(call.Sin.shape[1]) ~= rows then
      call:fail("Cos is %s and Sin is %s; equal shapes are needed",
                call.Cos.layout, call.Sin.layout)
    end
    if cute.product(shape) == 0 then return p end
    local widest = X.element_type.bits > dtype.bits and X.element_type or dtype
    local k = rotation {dtype = operand.plain(widest), m = m, heads = heads,
      d = d, positions = rows, interleaved = o.interleaved,
      inverse = o.inverse, at = at and true, pdl = p.pdl}
    local function flat(t, size)
      return cute.make_tensor(t.iterator, cute.make_layout {size})
    end
    p.steps[1] = rowwise.step(k, k.grid, function(now, out)
      return {tokens(now.X), flat(now.Cos, rows * d // 2),
        flat(now.Sin, rows * d // 2), tokens(out[1]),
        now.positions and rowwise.vector(now.positions), n = at and 5 or 4}
    end)
    p.steps[1].pdl = p.pdl
    return p
  end})

--- Rotates pairs of elements of each head by angles that depend on the token's
-- position. A pair is (x_i, x_(i + D/2)) or, with interleaved = true, two
-- neighbours. Row p of Cos and Sin holds the angles' cosines and sines for
-- position p. A token's position is its index in X's mode S, or its entry in
-- `positions`. With inverse = true, rotates back, which is the gradient.
---@param X any (...,S,H,D)
---@param Cos any (P,D/2), P at least S
---@param Sin any (P,D/2)
---@param o? table {positions: any?, interleaved: boolean?, inverse: boolean?,
-- out: any}
function embedding.rope(X, Cos, Sin, o)
  return rope(X, Cos, Sin, o)
end

return embedding
-- SPDX-License-Identifier: MIT
