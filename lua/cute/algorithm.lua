--- Algorithms on whole tensors of a kernel, element by element and unrolled:
-- CuTe's fill, clear, axpby, transform, reduce. They work on registers and on
-- shared and global memory. They access memory with the widest possible
-- accesses.
local core = require "cute.core"
local text = require "cute.tuple".pretty_str

local algorithm = {}

local function is_tensor(x) return core.typename(x) == "tensor" end

local function check(what, n, x)
  if not is_tensor(x) then
    core.fail("bad-argument", ("%s: argument %d must be a tensor, got a %s")
      :format(what, n, core.typename(x)))
  end
  return x
end

local function check_sizes(what, ...)
  local list = {...}
  for i = 2, #list do
    if core.size(list[i]) ~= core.size(list[1]) then
      core.fail("shape-mismatch", ("%s: the tensors have %s and %s elements"
        .. "\n  %s\n  %s")
        :format(what, core.size(list[1]), core.size(list[i]),
                tostring(list[1]), tostring(list[i])))
    end
  end
end

-- Calls f with a register tensor in the shape of `out`, which f fills. Then
-- stores the registers to `out` with the widest possible accesses. If `out`
-- itself is in registers, calls f(out).
local function write(out, f)
  if out.memspace == "rmem" then return f(out) end
  local held = core.make_rmem_tensor(out.shape, out.dtype)
  f(held)
  core.autovec_copy(held, out)
end

-- Sets each element i of `out` to f(i). If `out` is in memory, computes the
-- elements in registers first.
local function write_each(out, f)
  write(out, function(to)
    for i = 0, core.size(out) - 1 do
      local v = f(i)
      if type(v) ~= "number" and v.dtype ~= out.dtype then
        v = v:to(out.dtype)
      end
      to[i] = v
    end
  end)
end

--- Sets every element of tensor t to x.
---@param t cute.Tensor
---@param x number|cute.Value
function algorithm.fill(t, x) t:fill(x) end

--- Sets every element of tensor t to zero.
---@param t cute.Tensor
function algorithm.clear(t) t:fill(0) end

-- Returns the elements of t, a tensor or vector, as a vector in the shape of
-- `like`.
local function values(t, like)
  local all = t:load()
  if text(t.shape) == text(like.shape) then return all end
  local out = core.make_rmem_tensor(like.shape, t.dtype)
  for i = 0, core.size(like) - 1 do out[i] = all[i] end
  return out:load()
end

--- Sets y = alpha * x + beta * y. Computes in the common type of all operands,
-- and rounds to y's type. If beta is 0, does not read y.
---@param alpha number|cute.Value
---@param x cute.Tensor
---@param beta number|cute.Value
---@param y cute.Tensor
---@param pred? cute.Tensor booleans: where false, y is unchanged
function algorithm.axpby(alpha, x, beta, y, pred)
  check_sizes("axpby", x, y, pred)
  local v, known = values(x, y), math.type(beta)
  if alpha ~= 1 then v = v * alpha end
  local function assign(all)
    write(y, function(to) to:store(all:to(y.dtype)) end)
  end
  local function sum(old)
    if known and beta == 0 then return v end
    return v + (beta == 1 and old or old * beta)
  end
  if pred then
    local old = y:load()
    assign(core.where(values(pred, y), sum(old):to(y.dtype), old))
  elseif known then
    assign(sum(beta ~= 0 and y:load()))
  else
    require "cute.lang.branch".when(core.ne(beta, 0), function()
      assign(sum(y:load()))
    end, function() assign(v) end)
  end
end

--- Applies op to each element of tensors. transform(t, op) sets t[i] =
-- op(t[i]), transform(a, out, op) sets out[i] = op(a[i]), and transform(a, b,
-- out, op) sets out[i] = op(a[i], b[i]).
---@param a cute.Tensor
---@param ... cute.Tensor|function
function algorithm.transform(a, ...)
  local rest = {...}
  local op = table.remove(rest)
  if type(op) ~= "function" then
    core.fail("bad-argument", ("transform: the last argument must be a "
      .. "function of an element, not %s"):format(core.show(op)))
  end
  for i, t in ipairs(rest) do check("transform", i + 1, t) end
  if #rest > 2 then
    core.fail("bad-argument", "transform takes one to three tensors")
  end
  check_sizes("transform", a, table.unpack(rest))
  local xs = a:load()
  local ys = rest[2] and rest[1]:load()
  write_each(rest[#rest] or a, function(i)
    if ys then return op(xs[i], ys[i]) end
    return op(xs[i])
  end)
end

--- Computes op(...op(op(init, t[0]), t[1])..., t[n - 1]), in order.
---@param t cute.Tensor
---@param init number|cute.Value
---@param op? fun(a, b): any addition if absent
function algorithm.reduce(t, init, op)
  local xs = t:load()
  local acc = init
  for i = 0, core.size(t) - 1 do
    if op then acc = op(acc, xs[i]) else acc = acc + xs[i] end
  end
  return acc
end

return algorithm
-- SPDX-License-Identifier: MIT
