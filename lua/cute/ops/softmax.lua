--- Softmax and cross entropy along rows, forward and backward, by
-- kernels/softmax.lua: ops.softmax, ops.softmax_backward, ops.cross_entropy,
-- ops.cross_entropy_backward.
local calls = require "cute.ops.calls"
local core = require "cute.core"
local cute = require "cute"
local elementwise = require "cute.ops.elementwise"
local kernel = require "kernels.softmax"
local modes = require "cute.ops.modes"
local rowwise = require "cute.ops.rowwise"
local tensor_op = require "cute.ops.tensor_op"

local softmax = {}

-- Returns the options of the kernel for plan p and m rows. Passes the other
-- arguments to rowwise.options_of.
local function options_of(p, m, ...)
  local o = rowwise.options_of(p.device, ...)
  o.cluster = rowwise.cluster_for(p.device, calls.typical(m), o.n, o.dtype)
  return o
end

local softmax_rows = rowwise.operation("ops.softmax", {names = {"X"},
  plan = function(call)
    local X = call.X
    call:floats("X", X)
    local shape, _, m, n = rowwise.extents(X)
    local dtype = call:dtype("ops.softmax", X)
    local p = call:start(1, {{shape = shape, dtype = dtype}})
    if m * n == 0 then return p end
    local k = kernel(options_of(p, m, {X, call.out[1]}, 2, {dtype}))
    p.steps[1] = rowwise.step(k, k.grid(m), function(now, out)
      return {rowwise.matrix(now.X), rowwise.matrix(out[1]), n = 2}
    end)
    return p
  end})

--- Returns e^X / sum(e^X) along the last mode. If all elements of a row are
-- -inf, the result is NaN.
---@param X any (...,N)
---@param o? {out: any, dtype: any}
function softmax.softmax(X, o)
  return softmax_rows(X, o)
end

local softmax_backward = rowwise.operation("ops.softmax_backward", {
  names = {"dY", "Y"},
  plan = function(call)
    local Y, dY = call.Y, call.dY
    call:floats("Y", Y)
    call:floats("dY", dY)
    call:same("dY", dY, "Y", Y)
    local shape, _, m, n = rowwise.extents(Y)
    local dtype = call:dtype("ops.softmax_backward", Y)
    local p = call:start(2, {{shape = shape, dtype = dtype}})
    if m * n == 0 then return p end
    local o = options_of(p, m, {Y, dY, call.out[1]}, 3, {dtype})
    o.backward = true
    local k = kernel(o)
    p.steps[1] = rowwise.step(k, k.grid(m), function(now, out)
      return {rowwise.matrix(now.Y), rowwise.matrix(now.dY),
              rowwise.matrix(out[1]), n = 3}
    end)
    return p
  end})

--- Returns the gradient dX = Y (dY - sum(Y dY)) of Y = softmax(X).
---@param dY any (...,N)
---@param Y any (...,N)
---@param o? {out: any, dtype: any}
function softmax.softmax_backward(dY, Y, o)
  return softmax_backward(dY, Y, o)
end

---------------------------------------------------------------------------
-- Cross entropy
---------------------------------------------------------------------------

local IGNORE = -100  -- PyTorch's default

-- Raises an error unless T has an index for each row of X.
local function check_targets(call, T, m)
  local dtype = T.element_type
  if dtype ~= cute.i32 and dtype ~= cute.i64 then
    call:fail("T has elements of type %s; i32 or i64 is needed", dtype)
  elseif cute.size(T) ~= m then
    call:fail("T is %s; %d elements are needed, one for each row of X",
              T.layout, m)
  end
end

local cross_entropy = rowwise.operation("ops.cross_entropy", {
  names = {"X", "T"}, flat = "T", options = {ignore = "integer"},
  plan = function(call)
    local X, T = call.X, call.T
    call:floats("X", X)
    local _, rows, m, n = rowwise.extents(X)
    check_targets(call, T, m)
    if call.o.dtype and call:dtype("ops.cross_entropy", X) ~= cute.f32 then
      call:fail("dtype = %s; losses must have type f32", tostring(call.o.dtype))
    end
    local p = call:start(2, {{shape = rows, dtype = cute.f32},
                             {shape = rows, dtype = cute.f32}})
    if m == 0 then return p end
    if n == 0 then call:fail("X is %s; rows without elements have no loss",
                             X.layout) end
    local o, ignore = options_of(p, m, {X}, 1, {}), call.o.ignore or IGNORE
    o.loss = true
    local k = kernel(o)
    p.steps[1] = rowwise.step(k, k.grid(m), function(now, out)
      return {rowwise.matrix(now.X), rowwise.vector(now.T),
              rowwise.vector(out[1]), rowwise.vector(out[2]),
              cute.constexpr(ignore), n = 5}
    end)
    return p
  end})

--- Returns two results in f32: the loss of each row, log(sum(e^X)) - X[T], and
-- log(sum(e^X)) itself. If the target T is `ignore`, the loss is 0; if another
-- T is not an index of the row, the loss is NaN.
---@param X any (...,N)
---@param T any i32 or i64, one element for each row
---@param o? {ignore: integer?, out: any}
function softmax.cross_entropy(X, T, o)
  return cross_entropy(X, T, o)
end

-- Raises an error unless the tensors of a list of {name, tensor} have the
-- extents of X without the last mode.
local function check_row_tensors(X, list)
  local _, rows = rowwise.extents(X)
  for _, e in ipairs(list) do
    if not modes.has(e[2].layout, rows) then
      core.fail("bad-argument", ("ops.cross_entropy_backward: %s is %s; "
        .. "extents (%s), those of X without the last mode, are needed"):format(
        e[1], e[2].layout, table.concat(rows, ",")))
    end
  end
end

-- Returns a tensor that has one element for each row as a column (...,1).
local function column(t)
  local shape, stride = {}, {}
  local own, apart = t.shape, t.stride
  if type(own) ~= "table" then own, apart = {own}, {apart} end
  for i, n in ipairs(own) do shape[i], stride[i] = n, apart[i] end
  shape[#shape + 1], stride[#stride + 1] = 1, 0
  return cute.make_tensor(t.iterator, cute.make_layout(shape, stride))
end

-- Computes the elements of dX for ops.cross_entropy_backward, by
-- ops.elementwise. g, t and lse are the gradient of the loss, the target and
-- the logarithm Lse of each element's row.
local function gradient(g, x, t, lse, ignore, at)
  local coords = {at:coords()}
  local c = coords[#coords]:to(cute.i64)
  local y = cute.exp(x:to(cute.f32) - lse)
  local one = cute.where(c:eq(t:to(cute.i64)), 1.0, 0.0)
  return cute.where(t:to(cute.i64):eq(ignore), 0.0, (y - one) * g)
end

--- Returns the gradient dX = (softmax(X) - onehot(T)) dLoss of
-- ops.cross_entropy. dLoss, T and Lse have the extents of X without the last
-- mode.
---@param dLoss any f32
---@param X any (...,N)
---@param T any i32 or i64
---@param Lse any f32
---@param o? {ignore: integer?, out: any, dtype: any}
function softmax.cross_entropy_backward(dLoss, X, T, Lse, o)
  check_row_tensors(X, {{"dLoss", dLoss}, {"T", T}, {"Lse", Lse}})
  local options, ignore = tensor_op.with(o), IGNORE
  if options.ignore then ignore, options.ignore = options.ignore, nil end
  if not options.out and not options.dtype then
    options.dtype = X.element_type
  end
  return elementwise.elementwise(gradient, column(dLoss), X, column(T),
                                 column(Lse), ignore, options)
end

return softmax
-- SPDX-License-Identifier: MIT
