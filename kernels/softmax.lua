--- Softmax along rows, forward and backward, and the cross entropy of rows.
--
--     local k = softmax {dtype = cute.bf16, n = 4096}
--     k.kernel(X, Y):launch {grid = k.grid(m), block = k.block}
--
-- Y = softmax(X), where X and Y are row-major matrices of M rows and N columns.
-- With backward = true the kernel's arguments are (Y, dY, dX), and the kernel
-- computes dX = Y (dY - sum(Y dY)). With loss = true the arguments are (X, T,
-- Loss, Lse, ignore), and the kernel computes Lse = log(sum(e^X)) and Loss =
-- Lse - X[T], both f32, for each row. T has the index of each row's target (i32
-- or i64). The loss is 0 where T is `ignore`, and NaN where T is not an index
-- of the row. Sums are f32. Mask elements with -inf.
local cute = require "cute"
local rules = require "kernels.operand_rules"
local rows = require "kernels.rows"

local LOG2E = math.log(math.exp(1), 2)
local LEAST = -math.huge

-- A limit for the exponents of a row. Beyond it, the product of a number and
-- log2 e has a rounding error of 128 or more, too large for an exponent of 2.
-- Different numbers of this size differ by 256 or more. Therefore 2^((x - m)
-- scale(m)) is 0 for x < m, even if scale(m) is 1.
local FAR = 2.0 ^ 31

local function scale(m)
  return cute.where(cute.gt(cute.abs(m), FAR), 1, LOG2E)
end

-- Returns the base that is subtracted from the exponents of a row with maximum
-- m: m * scale(m), or 0 if the row has only -inf. All uses must round this
-- product in the same way, so the product must not become part of an FMA (fmad
-- = false).
local function base(m)
  return cute.where(cute.eq(m, LEAST), 0, m * scale(m))
end

-- powers(x, m) returns the exponentials e^(x - m) of the elements x of a row
-- with maximum m. power(x, m) returns the factor by which to scale a sum if the
-- maximum rises from x to m.
local function powers(x, m)
  return cute.exp2(cute.fma(x, scale(m), -base(m)))
end
local function power(x, m) return cute.exp2(x * scale(x) - base(m)) end

-- Returns the maximum of a row, and the row's sum of e^(x - maximum). m and s
-- are the maximum and the sum that this thread's warp has computed for its
-- part.
local function of_row(plan, m, s, turn)
  local function combined(all, count)
    if count == 1 then return all end
    local most = cute.arch.warp_reduction_max(all[1], count)
    return {most, cute.arch.warp_reduction_sum(all[2] * power(all[1], most),
                                               count)}
  end
  local of_block = combined(plan:exchange({m, s}, turn))
  return table.unpack(combined(plan:exchange_blocks(of_block)))
end

-- Stores a row's log of the sum of exponentials, and its loss.
local function store_loss(plan, o, at, most, sum)
  plan:first(at, function()
    local t = o.T[at.row]
    local lse, loss = most + cute.log(sum), cute.var(0, cute.f32)
    cute.when(cute.ne(t, o.ignore), function()
      loss.value = 0 / 0
      cute.when(cute.ge(t, 0) & cute.lt(t, plan.n), function()
        loss.value = lse - o.X[{at.row, t}]:to(cute.f32)
      end)
    end)
    o.Loss[at.row], o.Lse[at.row] = loss.value, lse
  end)
end

-- Processes a row that stays in registers. Each warp computes exponentials
-- relative to its own maximum, so that the row's warps synchronize only once.
local function held(plan, X, Y, loss)
  local sources = plan:sources({X}, LEAST)
  plan:each(X.shape[1], sources, function(at)
    local x = sources[1]:get(at, nil, "last")                      -- (W,S)
    local m = plan:warp(rows.fold(x, "max", LEAST), cute.max)
    local e = powers(x, m)
    local most, s = of_row(plan, m, plan:warp(rows.fold(e, "add", 0),
                                              rows.add), at.turn)
    if loss then store_loss(plan, loss, at, most, s)
    else plan:store(Y, at, e * (power(m, most) / s)) end
  end)
end

-- Processes a row in chunks. A single first pass computes both the maximum and
-- the sum.
local function pieces(plan, X, Y, loss)
  local sources = plan:sources({X}, LEAST)
  plan:each(X.shape[1], sources, function(at)
    local m, s = cute.var(LEAST, cute.f32), cute.var(0, cute.f32)
    plan:chunk(function(chunk)
      local x = sources[1]:get(at, chunk)
      local most = cute.max(m.value, rows.fold(x, "max", LEAST))
      s.value = s.value * power(m.value, most)
        + rows.fold(powers(x, most), "add", 0)
      m.value = most
    end)
    local most = plan:warp(m.value, cute.max)
    local sum = plan:warp(s.value * power(m.value, most), rows.add)
    most, sum = of_row(plan, most, sum, at.turn)
    if loss then
      store_loss(plan, loss, at, most, sum)
      return
    end
    plan:chunk(function(chunk)
      local x = sources[1]:get(at, chunk, "last")
      plan:store(Y, at, powers(x, most) * (1 / sum), chunk)
    end)
  end)
end

-- Computes dX = Y (dY - sum(Y dY)).
local function backward(plan, Y, dY, dX)
  local sources = plan:sources({Y, dY}, 0)
  local y, dy = sources[1], sources[2]
  plan:each(Y.shape[1], sources, function(at)
    local sum = cute.var(0, cute.f32)
    plan:chunk(function(chunk)
      sum.value = sum.value
        + rows.fold(y:get(at, chunk) * dy:get(at, chunk), "add", 0)
    end)
    local dot = plan:reduce(sum.value, rows.add, at.turn)
    plan:chunk(function(chunk)
      plan:store(dX, at,
        y:get(at, chunk, "last") * (dy:get(at, chunk, "last") - dot), chunk)
    end)
  end)
end

local OPERANDS = {forward = "X, Y", backward = "Y, dY, dX",
                  loss = "X, T, Loss, Lse, ignore"}
local COUNT = {forward = 2, backward = 3, loss = 5}

--- Returns a kernel with arguments (X, Y), (Y, dY, dX) or (X, T, Loss, Lse,
-- ignore), and its launch parameters.
---@param o table {n: integer, dtype: any, backward: boolean?, loss: boolean?,
-- values: integer?, threads: integer?, block: integer?, persistent: boolean?,
-- cluster: integer?} dtype: the widest of the operands; the rest: see
-- kernels/rows.lua
---@return table {kernel: any, grid: fun(m: integer): integer, block: integer,
-- cluster: integer[]?}
return function(o)
  rules.options("softmax", o, "backward loss " .. rows.OPTIONS)
  rules.need(not (o.backward and o.loss), "softmax",
             "backward = true cannot be combined with loss = true")
  local plan = rows.plan(setmetatable({sources = o.backward and 2 or 1},
                                      {__index = o}))
  local way = o.backward and "backward" or o.loss and "loss" or "forward"
  local name = ({forward = "softmax", backward = "softmax_backward",
                 loss = "cross_entropy"})[way]
  return {plan = plan, block = plan.block,
          grid = function(m) return plan:grid(m, o.resident) end,
          cluster = plan.cluster > 1 and {plan.cluster, 1, 1} or nil,
          kernel = cute.kernel(name, {fastmath = true, fmad = false,
            min_blocks = plan.min_blocks}, function(...)
    local got = select("#", ...)
    rules.need(got == COUNT[way], name, "%s are needed, not %d operands",
               OPERANDS[way], got)
    local X, Y, third, fourth, fifth = ...
    if o.backward then
      rows.check(plan, name, X, Y, third)
      backward(plan, X, Y, third)
      return
    end
    if o.loss then rows.check(plan, name, X)
    else rows.check(plan, name, X, Y) end
    local loss = o.loss and {X = X, T = Y, Loss = third, Lse = fourth,
                             ignore = fifth} or nil
    if plan.chunks > 1 then pieces(plan, X, Y, loss)
    else held(plan, X, Y, loss) end
  end)}
end
-- SPDX-License-Identifier: MIT
