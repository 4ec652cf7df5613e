--- Finds the largest elements of rows, and draws indices of rows at random:
-- ops.topk, ops.sample. See kernels/topk.lua, kernels/sample.lua,
-- kernels/argmax.lua.
local calls = require "cute.ops.calls"
local core = require "cute.core"
local cute = require "cute"
local largest = require "kernels.argmax"
local rowwise = require "cute.ops.rowwise"
local sample = require "kernels.sample"
local tensor_op = require "cute.ops.tensor_op"
local topk = require "kernels.topk"

local top = {}

local MOST = 64  -- elements of a row, see kernels/topk.lua

-- If there are at most FEW rows of at least LONG elements, WARPS warps process
-- each row, and their lanes load UNROLL vectors at once. With fewer warps, a
-- row as long as a vocabulary takes 75 us.
local FEW, LONG, WARPS, UNROLL = 64, 1 << 15, 16, 4

-- Returns the extents of a result with k elements for each row of x.
local function shape_with(rows, x, k)
  local shape = cute.rank(x) > 1 and table.move(rows, 1, #rows, 1, {}) or {}
  shape[#shape + 1] = k
  return shape
end

-- Raises an error unless the kernel can find the k largest of n elements.
local function check_k(call, name, k, n)
  if k < 1 or k > MOST or k > n then
    call:fail("%s = %d; 1 to %d is needed for rows of %d elements", name, k,
              math.min(MOST, n), n)
  elseif n > 65535 and call.X.element_type.bits == 16 then
    call:fail("X is %s; rows of 16-bit elements can have at most 65535 "
      .. "elements: convert them to f32", call.X.layout)
  end
end

-- Returns a step (a launch of a plan, cute.ops.tensor_op) that finds the k
-- largest elements of each row of X. views(out, work) returns the tensors to
-- which these elements and their indices are stored.
local function finding(X, k, smallest, m, views)
  local o = rowwise.shape_of({X}, 1, {})
  local few = calls.typical(m) <= FEW and o.n >= LONG
  local made = topk {n = o.n, dtype = o.dtype, k = k, smallest = smallest,
                     width = o.width, warps = few and WARPS or nil,
                     unroll = few and UNROLL or nil}
  return rowwise.step(made, made.grid(m), function(call, out, work)
    local V, I = views(out, work)
    return {rowwise.matrix(call.X), V, I, n = 3}
  end)
end

local find = rowwise.operation("ops.topk", {names = {"X"},
  options = {k = "integer", smallest = "boolean"},
  plan = function(call)
    local X, k = call.X, call.o.k
    call:floats("X", X)
    local _, rows, m, n = rowwise.extents(X)
    check_k(call, "k", k, n)
    local shape = shape_with(rows, X, k)
    local dtype = call:dtype("ops.topk", X)
    if dtype ~= X.element_type then
      call:fail("the values must have the type of X, %s, not %s",
                X.element_type, dtype)
    end
    local p = call:start(1, {{shape = shape, dtype = X.element_type},
                             {shape = shape, dtype = cute.i32}})
    if m == 0 then return p end
    p.steps[1] = finding(X, k, call.o.smallest, m, function(out)
      return rowwise.matrix(out[1]), rowwise.matrix(out[2])
    end)
    return p
  end})

--- Returns the k largest elements of each row in descending order, and their
-- indices (i32). Equal elements are in the order of their indices.
---@param X any (...,N)
---@param k integer 1 to 64
---@param o? {smallest: boolean?, out: any}
function top.topk(X, k, o)
  return find(X, tensor_op.with({k = k}, o))
end

---------------------------------------------------------------------------
-- Sampling
---------------------------------------------------------------------------

-- Checks the options of ops.sample, and returns the temperature.
local function check_options(call, n)
  local o = call.o
  local t, p = o.temperature or 1, o.top_p or 1
  if t <= 0 or t ~= t then
    call:fail("temperature = %s; more than 0 is needed. For the most probable "
      .. "index, call ops.reduce(X, \"argmax\", {by = \"row\"})",
      core.show(t))
  elseif p <= 0 or p > 1 or p ~= p then
    call:fail("top_p = %s; more than 0 and at most 1 is needed", core.show(p))
  elseif p < 1 and not o.top_k then
    call:fail("top_p = %s needs the option top_k, from 1 to %d",
              core.show(p), MOST)
  end
  if o.top_k then check_k(call, "top_k", o.top_k, n) end
  return t
end

-- Sets the steps (launches) of plan p for a call with top_k: the first finds
-- the k largest elements of each row, the second draws one of them.
local function of_largest(p, call, k, m, by)
  local X = call.X
  local words = m * k * X.element_type.bits // 32 + 1
  p.floats = words + m * k
  local function views(_, work)
    local V = cute.recast_tensor(cute.make_tensor(work.iterator,
      cute.make_layout {words}), X.element_type)
    local I = cute.recast_tensor(cute.make_tensor(work.iterator + words,
      cute.make_layout {m * k}), cute.i32)
    local l = cute.make_layout({m, k}, {k, 1})
    return cute.make_tensor(V.iterator, l), cute.make_tensor(I.iterator, l)
  end
  local made = sample {k = k, top_p = call.o.top_p}
  p.steps[1] = finding(X, k, false, m, views)
  p.steps[2] = rowwise.step(made, made.grid(m), function(now, out, work)
    local V, I = views(out, work)
    return {V, I, rowwise.vector(out[1]), now.Seed, by, n = 5}
  end)
end

local draw = rowwise.operation("ops.sample", {names = {"X", "Seed"},
  options = {temperature = "number", top_k = "integer", top_p = "number"},
  plan = function(call)
    local X = call.X
    call:floats("X", X)
    local _, rows, m, n = rowwise.extents(X)
    if n == 0 then
      call:fail("X is %s; rows without elements have no index", X.layout)
    end
    local t = check_options(call, n)
    if call.Seed.element_type ~= cute.i64 or cute.size(call.Seed) ~= 1 then
      call:fail("seed is %s of %s; an integer or one element of i64 is needed",
                call.Seed.layout, call.Seed.element_type)
    end
    local p = call:start(2, {{shape = rows, dtype = cute.i32}})
    if m == 0 then return p end
    if call.o.top_k then
      of_largest(p, call, call.o.top_k, m, 1 / t)
      return p
    end
    local o = rowwise.shape_of({X}, 1, {})
    o.sample = true
    local k = largest(o)
    p.steps[1] = rowwise.step(k, k.grid(m), function(now, out)
      return {rowwise.matrix(now.X), rowwise.vector(out[1]), now.Seed, 1 / t,
              n = 4}
    end)
    return p
  end})

--- Draws an index (i32) for each row with the probabilities softmax(X /
-- temperature). With top_k, only the top_k largest elements can be drawn. With
-- top_p in addition, only the most probable of these can be drawn: as many as
-- needed to reach the total probability top_p.
---@param X any (...,N)
---@param seed integer|any an integer, or a tensor of one i64, which a graph can
-- change
---@param o? {temperature: number?, top_k: integer?, top_p: number?, out: any}
function top.sample(X, seed, o)
  if math.type(seed) then
    seed = cute.full({1}, seed, cute.i64, {device = X.device})
  end
  return draw(X, seed, o or {})
end

return top
-- SPDX-License-Identifier: MIT
