--- RMSNorm and LayerNorm along rows, forward and backward, by kernels/norm.lua:
-- ops.rmsnorm, ops.layernorm, ops.rmsnorm_backward, ops.layernorm_backward.
local calls = require "cute.ops.calls"
local core = require "cute.core"
local cute = require "cute"
local norm = require "kernels.norm"
local operand = require "cute.ops.operand"
local kernels = require "kernels.reduce"
local rowwise = require "cute.ops.rowwise"
local tensor_op = require "cute.ops.tensor_op"

local norms = {}

-- Checks that the operands with these names have X's shape.
local function check_rows(call, names)
  for _, name in ipairs(names) do
    if call[name] then
      call:floats(name, call[name])
      call:same(name, call[name], "X", call.X)
    end
  end
end

-- Checks that the operands with these names are vectors of n elements.
local function check_vectors(call, names, n)
  for _, name in ipairs(names) do
    if call[name] then
      call:floats(name, call[name])
      call:vector(name, call[name], n)
    end
  end
end

-- Returns the arguments of kernel k as a list, in the order of the names in
-- k.args. `named` has the arguments by name.
local function in_order(k, named)
  local args = {n = #k.args}
  for i, name in ipairs(k.args) do args[i] = named[name] end
  return args
end

---------------------------------------------------------------------------
-- Forward
---------------------------------------------------------------------------

-- In launches of up to FEW rows, the kernel itself triggers the next launch
-- (PDL), because the latency of such short launches matters.
local FEW = 64

local function forward(name, layer)
  return function(call)
    local o, X, R = call.o, call.X, call.residual
    local shape, rows, m, n = rowwise.extents(X)
    check_rows(call, {"X", "residual"})
    check_vectors(call, {"W", "B"}, n)
    local eps = o.eps or (layer and 1e-5 or 1e-6)
    if eps < 0 or eps ~= eps then
      call:fail("eps = %s; 0 or more is needed", core.show(eps))
    end
    local own = operand.plain(X.element_type)
    local results, at = {{shape = shape, dtype = call:dtype(name, X)}}, {}
    local function result(what, extents, dtype)
      results[#results + 1] = {shape = extents, dtype = dtype}
      at[what] = #results
    end
    if R then result("H", shape, own) end
    if o.save and layer then result("Mean", rows, cute.f32) end
    if o.save then result("Rstd", rows, cute.f32) end
    local p = call:start(4, results)
    if m * n == 0 then return p end
    local few = calls.typical(m) <= FEW
    local given = rowwise.options_of(p.device, {X, R, call.out[1],
      call.out[at.H or 0]}, 4, {results[1].dtype, own})
    local k = norm[layer and "layer" or "rms"](tensor_op.with(given, {
        weight = call.W and true, bias = call.B and true,
        residual = R and true, save = o.save or nil,
        pdl = few and p.pdl or nil}))
    p.steps[1] = rowwise.step(k, k.grid(m), function(now, out)
      return in_order(k, {X = rowwise.matrix(now.operands[1]),
        W = now.W and rowwise.vector(now.W),
        B = now.B and rowwise.vector(now.B),
        R = now.residual and rowwise.matrix(now.residual),
        Y = rowwise.matrix(out[1]), H = at.H and rowwise.matrix(out[at.H]),
        Mean = rowwise.vector(out[at.Mean or 0]),
        Rstd = rowwise.vector(out[at.Rstd or 0]), eps = eps})
    end)
    p.steps[1].pdl = few and p.pdl or nil
    return p
  end
end

local FORWARD = {eps = "number", save = "boolean"}

local rmsnorm = rowwise.operation("ops.rmsnorm", {names = {"X", "W?"},
  flat = "W", tensors = {"residual"}, options = FORWARD,
  plan = forward("ops.rmsnorm", false)})

--- Normalizes rows: H = X + residual, Y = H / sqrt(mean(H^2) + eps) * W.
-- Returns Y, then H if there is a residual, then Rstd = 1 / sqrt(mean(H^2) +
-- eps) if `save` is set. See docs/ops.md.
---@param X any (...,N)
---@param W? any (N)
---@param o? table {eps: number?, residual: any?, save: boolean?, out: any,
-- dtype: any}
function norms.rmsnorm(X, W, o)
  return rmsnorm(X, W, o)
end

local layernorm = rowwise.operation("ops.layernorm", {names = {"X", "W?", "B?"},
  flat = "W B", tensors = {"residual"}, options = FORWARD,
  plan = forward("ops.layernorm", true)})

--- Normalizes rows: H = X + residual, Y = (H - mean) / sqrt(variance + eps) * W
-- + B. Returns Y, then H if there is a residual, then Mean and Rstd = 1 /
-- sqrt(variance + eps) if `save` is set.
---@param X any (...,N)
---@param W? any (N)
---@param B? any (N)
---@param o? table {eps: number?, residual: any?, save: boolean?, out: any,
-- dtype: any}
function norms.layernorm(X, W, B, o)
  return layernorm(X, W, B, o)
end

---------------------------------------------------------------------------
-- Backward
---------------------------------------------------------------------------

-- Returns a step (launch) that adds up the rows of a matrix of partial sums,
-- and stores the n sums of its columns in result i. The matrix has `parts` rows
-- and begins at row `first` of the work memory.
local function adding(parts, first, n, i)
  local sums = kernels.columns {op = "sum", m = parts, n = n, dtype = cute.f32}
  return rowwise.step(sums, sums.grid, function(_, out, work)
    return {cute.make_tensor(work.iterator + first * n,
      cute.make_layout({parts, n}, {n, 1})), rowwise.vector(out[i]), n = 2}
  end)
end

-- Returns the counters `turns` as a vector of `count` elements of u64. They are
-- 0 between launches.
local function states(turns, count)
  return turns and cute.make_tensor(cute.recast_tensor(turns, cute.u64)
    .iterator, cute.make_layout {count})
end

local function backward(name, layer)
  return function(call)
    local o, X, dY = call.o, call.X, call.dY
    local shape, _, m, n = rowwise.extents(X)
    check_rows(call, {"X", "dY", "residual"})
    check_vectors(call, {"W"}, n)
    for _, which in ipairs {"Mean", "Rstd"} do
      local t = call[which]
      if t and (t.element_type ~= cute.f32 or cute.size(t) ~= m) then
        call:fail("%s is %s of %s; %d elements of f32 are needed", which,
                  t.layout, t.element_type, m)
      end
    end
    local W, dH = call.W, call.residual
    local bias = layer and o.bias or nil
    if bias and not W then call:fail "bias needs W" end
    local results = {{shape = shape, dtype = call:dtype(name, X)}}
    if W then results[2] = {shape = {n}, dtype = W.element_type} end
    if bias then results[3] = {shape = {n}, dtype = W.element_type} end
    local p = call:start(6, results)
    if n == 0 or m == 0 and not W then return p end
    local given = rowwise.options_of(p.device, {X, dY, dH, call.out[1]}, 4,
                                     {results[1].dtype})
    local k = norm[layer and "layer_backward" or "rms_backward"](tensor_op.with(
      given, {weight = W and true, bias = bias, residual = dH and true}))
    local parts = W and k.parts(m) or 0
    local total = k.states(m)
    p.counts = total > 0 and 2 * total or nil
    p.floats = W and parts * n * (bias and 2 or 1) or nil
    p.steps[1] = rowwise.step(k, k.grid(m), function(now, out, work, turns)
      return in_order(k, {X = rowwise.matrix(now.X),
        W = now.W and rowwise.vector(now.W), dY = rowwise.matrix(now.dY),
        Mean = now.Mean and rowwise.vector(now.Mean),
        Rstd = rowwise.vector(now.Rstd),
        dH = now.residual and rowwise.matrix(now.residual),
        dX = rowwise.matrix(out[1]),
        Part = work and cute.make_tensor(work.iterator, cute.make_layout(
          {p.floats // n, n}, {n, 1})), State = states(turns, total)})
    end)
    if W then p.steps[2] = adding(parts, 0, n, 2) end
    if bias then p.steps[3] = adding(parts, parts, n, 3) end
    return p
  end
end

local rmsnorm_backward = rowwise.operation("ops.rmsnorm_backward", {
  names = {"dY", "X", "Rstd", "W?"}, flat = "W Rstd", tensors = {"residual"},
  plan = backward("ops.rmsnorm_backward", false)})

--- Returns the gradients of ops.rmsnorm: dX, and dW if W is given. If the
-- forward call had a residual, pass the H that it returned as X. The option
-- `residual` is then the gradient that reaches H directly, not through the
-- norm.
---@param dY any (...,N)
---@param X any (...,N)
---@param Rstd any f32, one element for each row
---@param W? any (N)
---@param o? {residual: any?, out: any, dtype: any}
function norms.rmsnorm_backward(dY, X, Rstd, W, o)
  return rmsnorm_backward(dY, X, Rstd, W, o)
end

local layernorm_backward = rowwise.operation("ops.layernorm_backward", {
  names = {"dY", "X", "Mean", "Rstd", "W?"}, flat = "W Mean Rstd",
  tensors = {"residual"},
  options = {bias = "boolean"},
  plan = backward("ops.layernorm_backward", true)})

--- Returns the gradients of ops.layernorm: dX, then dW if W is given, then dB
-- if the option `bias` is true.
---@param dY any (...,N)
---@param X any (...,N)
---@param Mean any f32, one element for each row
---@param Rstd any f32, one element for each row
---@param W? any (N)
---@param o? {bias: boolean?, residual: any?, out: any, dtype: any}
function norms.layernorm_backward(dY, X, Mean, Rstd, W, o)
  return layernorm_backward(dY, X, Mean, Rstd, W, o)
end

return norms
-- SPDX-License-Identifier: MIT
