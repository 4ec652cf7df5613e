--- Reductions: of a whole tensor, and along the rows of a matrix.
--
--     local k = reduce.all {op = "sum", dtype = cute.f32, n = 1 << 20}
--     k.kernel(X, Y, Parts, Tickets):launch {grid = k.grid, block = k.block}
--     local k = reduce.rows {op = "max", dtype = cute.bf16, n = 4096}
--     k.kernel(X, Y):launch {grid = k.grid(m), block = k.block}
--     local k = reduce.columns {op = "sum", dtype = cute.f32, m = 64, n = 4096}
--     k.kernel(X, Y):launch {grid = k.grid, block = k.block}
--
-- op: one of reduce_tensor.OPS, such as "sum" or "max", or a table {of =
-- function(a, b), init = x, map = function(x), after = function(x, count)}.
-- `of` combines f32 vectors or values, in any order, and begins with `init`.
-- `map`, if any, is applied to loaded values, and `after` to the result. X has
-- any type, Y is f32 or another float; intermediate values are f32. max and min
-- ignore NaNs.
--
-- For reduce.all, Y has one element, and Parts has k.grid elements of f32.
-- Tickets has one element of u32, which is 0 before and after the launch. The
-- last block reduces the partial results of all blocks, in the order of the
-- blocks, so equal inputs give equal results.
local cute = require "cute"
local rules = require "kernels.operand_rules"
local reduce_tensor = require "kernels.reduce_tensor"
local rows = require "kernels.rows"
local sign = require "cute.lang.signature"

local reduce = {}

-- Reduces a list of values to one value, pair by pair.
local function folded(op, list)
  while #list > 1 do
    local half = {}
    for i = 1, #list, 2 do
      half[#half + 1] = list[i + 1] and op.of(list[i], list[i + 1]) or list[i]
    end
    list = half
  end
  return list[1]
end

-- Reduces the elements of a vector to one value.
local function whole(op, vector)
  local list = {}
  for i = 0, #vector - 1 do list[i + 1] = vector[i] end
  return folded(op, list)
end

local function mapped(op, vector)
  vector = vector:to(cute.f32)
  return op.map and op.map(vector) or vector
end

local function finish(op, x, n) return op.after and op.after(x, n) or x end

---------------------------------------------------------------------------
-- Along rows
---------------------------------------------------------------------------

--- Makes a kernel that reduces the rows of X (M,N) to Y (M).
---@param o {op: any, n: integer, dtype: any} and the options of
-- kernels/rows.lua
function reduce.rows(o)
  rules.options("reduce.rows", o, "op " .. rows.OPTIONS)
  local op, plan = reduce_tensor.op(o.op), rows.plan(o)
  return {plan = plan, block = plan.block,
          grid = function(m) return plan:grid(m, o.resident) end,
          kernel = cute.kernel("reduce_rows", function(X, Y)
    rows.check(plan, "reduce", X)
    local sources = plan:sources({X}, 0)
    plan:each(X.shape[1], sources, function(at)
      local v = plan:fragment(cute.f32)
      v:fill(op.init)
      plan:chunk(function(chunk)
        local x = mapped(op, sources[1]:get(at, chunk, "last"))
        v:store(op.of(v:load(), plan:only(x, op.init, chunk)))
      end)
      local all = plan:reduce(whole(op, v:load()), op.of, at.turn)
      plan:first(at, function()
        Y[at.row] = finish(op, all, o.n):to(Y.element_type)
      end)
    end)
  end)}
end

---------------------------------------------------------------------------
-- Reductions of all elements
---------------------------------------------------------------------------

local STEPS, BLOCK = 8, 512
-- The number of blocks that a launch has at least, if there is enough work.
local SPREAD = 132

-- Reduces a block's share of the elements. Each thread loads `steps` vectors at
-- once, reduces them to one vector, and combines this vector with its result so
-- far.
local function share(o, op, X, width)
  local tid, block = (cute.arch.thread_idx()), (cute.arch.block_idx())
  local reach, x = o.block * width, X.iterator
  local acc = cute.make_rmem_tensor({width}, cute.f32)
  acc:fill(op.init)
  local tile = reach * o.steps
  local layout = cute.make_layout({width, o.steps}, {1, reach})
  for t in cute.range(block, o.n // tile, o.grid) do
    local held = cute.make_rmem_tensor({width, o.steps}, X.element_type)
    cute.autovec_copy(cute.make_tensor(x + (t * tile + tid * width), layout),
                      held)
    local list = {}
    for s = 0, o.steps - 1 do
      list[s + 1] = mapped(op, held(cute._, s):load())
    end
    acc:store(op.of(acc:load(), folded(op, list)))
  end
  local value = whole(op, acc:load())
  -- The remaining elements do not fill a tile, so threads process them one by
  -- one.
  local rest = o.n - o.n % tile
  local most = o.n - rest
  if most > 0 then
    local v = cute.var(value)
    for i in cute.range(rest + block * o.block + tid, o.n,
                        o.grid * o.block) do
      local one = X.iterator + i
      local e = cute.make_tensor(one, cute.make_layout({1}))[0]:to(cute.f32)
      v.value = op.of(v.value, op.map and op.map(e) or e)
    end
    value = v.value
  end
  return value
end

-- Reduces the partial results of all blocks, in the block that finishes last.
local function last_of(o, plan, op, Y, Parts, Tickets, value)
  local tid, block = (cute.arch.thread_idx()), (cute.arch.block_idx())
  local last = cute.make_smem_tensor(cute.i32, cute.make_layout({1}))
  cute.when(cute.eq(tid, 0), function()
    cute.arch.store(Parts.iterator + block, value)
    local ticket = cute.arch.atomic_add(Tickets.iterator, 1,
      {sem = "acq_rel", scope = "gpu"})
    last[0] = cute.where(cute.eq(ticket, o.grid - 1), 1, 0)
  end)
  cute.arch.sync_threads()
  cute.when(cute.eq(last[0], 1), function()
    local v = cute.var(op.init, cute.f32)
    for i in cute.range(tid, o.grid, o.block) do
      v.value = op.of(v.value, Parts[i])
    end
    local all = plan:reduce(v.value, op.of)
    cute.when(cute.eq(tid, 0), function()
      Y[0] = finish(op, all, o.n):to(Y.element_type)
      Tickets[0] = 0
    end)
  end)
end

--- Makes a kernel that reduces n contiguous elements X, in any shape, to Y (1).
---@param o table {op: any, n: integer, dtype: any, grid: integer?,
-- block: integer?, steps: integer?}
function reduce.all(o)
  rules.options("reduce.all", o, "op n dtype grid block steps")
  local op = reduce_tensor.op(o.op)
  rules.given("reduce", o, "n", "dtype")
  rules.integers("reduce", o, {"block"}, 32, 1024, "power")
  rules.integers("reduce", o, {"steps", "grid"}, 1, 1 << 20)
  local width = 128 // o.dtype.bits
  local p = {n = o.n, block = o.block or BLOCK, steps = o.steps or STEPS}
  local tiles = (o.n + p.block * width * p.steps - 1)
    // (p.block * width * p.steps)
  p.grid = math.min(o.grid or 132 * (2048 // p.block), tiles)
  local plan = rows.plan {n = p.block * width, dtype = o.dtype,
                          threads = p.block}
  return {grid = p.grid, block = p.block,
          kernel = cute.kernel("reduce_all", function(X, Y, Parts, Tickets)
    rules.dense("reduce", "X", X, o.n)
    local parts = cute.size(Parts)
    rules.need(not math.type(parts) or parts >= p.grid, "reduce",
      "Parts has %s elements, but the grid has %d blocks", parts, p.grid)
    local value = plan:reduce(share(p, op, X, width), op.of)
    last_of(p, plan, op, Y, Parts, Tickets, value)
  end)}
end

---------------------------------------------------------------------------
-- Along columns
---------------------------------------------------------------------------

-- Returns the number of adjacent columns for each lane. It is the number of
-- elements in 16 bytes, or less if there would be too few blocks.
local function columns_width(o)
  local width = 128 // o.dtype.bits
  while o.n % width ~= 0 or width > 1 and o.n < 32 * width * SPREAD do
    width = width // 2
  end
  return width
end

--- Makes a kernel that reduces the columns of X (M,N) to Y (N). Each lane
-- reduces a few adjacent columns; the warps of a block divide the rows.
---@param o {op: any, m: integer, n: integer, dtype: any, warps: integer?}
function reduce.columns(o)
  rules.options("reduce.columns", o, "op m n dtype warps")
  local op = reduce_tensor.op(o.op)
  rules.given("reduce", o, "m", "n", "dtype")
  rules.integers("reduce", o, {"warps"}, 1, 32)
  local warps = o.warps or math.max(1, math.min(32, o.m // 4))
  local width = columns_width(o)
  local columns = 32 * width
  return {grid = (o.n + columns - 1) // columns, block = warps * 32,
          kernel = cute.kernel("reduce_columns", function(X, Y)
    rules.dense("reduce", "X", X, o.m * o.n)
    rules.dense("reduce", "Y", Y, o.n)
    local tid = (cute.arch.thread_idx())
    local warp, lane = tid // 32, tid % 32
    local at = ((cute.arch.block_idx()) * 32 + lane) * width
    local layout = cute.make_layout({width})
    local acc = cute.make_rmem_tensor({width}, cute.f32)
    acc:fill(op.init)
    cute.when(cute.lt(at, o.n), function()
      for row in cute.range(warp, o.m, warps, {unroll = 8}) do
        local held = cute.make_rmem_tensor({width}, X.element_type)
        cute.autovec_copy(cute.make_tensor(X.iterator + (row * o.n + at),
                                           layout), held)
        acc:store(op.of(acc:load(), mapped(op, held:load())))
      end
    end)
    local s = warps > 1 and cute.make_smem_tensor(cute.f32, cute.make_layout(
      {width, 32, warps}), 16)
    if s then
      cute.autovec_copy(acc, s(cute._, lane, warp))
      cute.arch.sync_threads()
    end
    cute.when(cute.eq(warp, 0) & cute.lt(at, o.n), function()
      for w = 1, warps - 1 do
        local held = cute.make_rmem_tensor({width}, cute.f32)
        cute.autovec_copy(s(cute._, lane, w), held)
        acc:store(op.of(acc:load(), held:load()))
      end
      local out = cute.make_rmem_tensor({width}, Y.element_type)
      out:store(finish(op, acc:load(), o.m):to(Y.element_type))
      cute.autovec_copy(out, cute.make_tensor(Y.iterator + at, layout))
    end)
  end)}
end

return sign.module("kernels.reduce", reduce)
-- SPDX-License-Identifier: MIT
