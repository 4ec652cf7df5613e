--- Softmax along rows, forward and backward.
--
--     local k = softmax {dtype = cute.bf16, n = 4096}
--     k.kernel(X, Y):launch {grid = k.grid(m), block = k.block}
--
-- Y = softmax(X), both (M,N) and row-major. With backward = true the kernel is
-- one of (Y, dY, dX): dX = Y (dY - sum(Y dY)). Sums are f32.
local cute = require "cute"
local rows = require "kernels.rows"

local LOG2E = math.log(math.exp(1), 2)
local LEAST = -math.huge
local NUMERICS = {fastmath = true, fmad = false}

-- What is taken from exponents: a maximum of nothing but -inf is none. It is
-- rounded once, and the same everywhere: hence no sum that becomes an FMA by
-- itself (fmad = false).
local function base(m) return cute.where(cute.eq(m, LEAST), 0, m) end

-- The largest of a row and its sum of 2^(x - largest), of those of a thread's
-- warp.
local function of_row(plan, m, s, turn)
  local all, warps = plan:exchange({m, s}, turn)
  if warps == 1 then return m, s end
  local most = cute.arch.warp_reduction_max(all[1], warps)
  return most, cute.arch.warp_reduction_sum(
    all[2] * cute.exp2(all[1] - base(most)), warps)
end

-- The row in registers: each warp's exponentials are of its own maximum, so
-- that the row's warps meet once.
local function held(plan, X, Y)
  plan:each(X.shape[1], function(row, inside, turn)
    local x = plan:load(X, row, inside, LEAST):to(cute.f32)        -- (W,S)
    local m = plan:warp(rows.fold(x, "max", LEAST), cute.max) * LOG2E
    local e = cute.exp2(cute.fma(x, LOG2E, -base(m)))
    local most, s = of_row(plan, m, plan:warp(rows.fold(e, "add", 0),
                                              rows.add), turn)
    plan:store(Y, row, inside, e * (cute.exp2(m - base(most)) / s))
  end)
end

-- The row in pieces, read twice.
local function walked(plan, X, Y)
  plan:each(X.shape[1], function(row, inside, turn)
    local m, s = cute.var(LEAST, cute.f32), cute.var(0, cute.f32)
    for chunk in cute.range(plan.chunks) do
      local x = plan:load(X, row, inside, LEAST, chunk):to(cute.f32)
      local most = cute.max(m.value, rows.fold(x, "max", LEAST) * LOG2E)
      s.value = s.value * cute.exp2(m.value - base(most))
        + rows.fold(cute.exp2(cute.fma(x, LOG2E, -base(most))), "add", 0)
      m.value = most
    end
    local most = plan:warp(m.value, cute.max)
    local sum = plan:warp(s.value * cute.exp2(m.value - base(most)), rows.add)
    most, sum = of_row(plan, most, sum, turn)
    for chunk in cute.range(plan.chunks) do
      local x = plan:load(X, row, inside, LEAST, chunk):to(cute.f32)
      local e = cute.exp2(cute.fma(x, LOG2E, -base(most)))
      plan:store(Y, row, inside, e * (1 / sum), chunk)
    end
  end)
end

-- dX = Y (dY - sum(Y dY)).
local function backward(plan, Y, dY, dX)
  plan:each(Y.shape[1], function(row, inside, turn)
    local function load(t, chunk)
      return plan:load(t, row, inside, 0, chunk):to(cute.f32)
    end
    if plan.chunks == 1 then
      local y, dy = load(Y), load(dY)
      local dot = plan:reduce(rows.fold(y * dy, "add", 0), rows.add, turn)
      return plan:store(dX, row, inside, y * (dy - dot))
    end
    local sum = cute.var(0, cute.f32)
    for chunk in cute.range(plan.chunks) do
      sum.value = sum.value
        + rows.fold(load(Y, chunk) * load(dY, chunk), "add", 0)
    end
    local dot = plan:reduce(sum.value, rows.add, turn)
    for chunk in cute.range(plan.chunks) do
      plan:store(dX, row, inside, load(Y, chunk) * (load(dY, chunk) - dot),
                 chunk)
    end
  end)
end

--- A kernel of (X, Y), or of (Y, dY, dX), and what its launch needs.
---@param o {n: integer, dtype: any, backward: boolean?, values: integer?,
-- threads: integer?, block: integer?, persistent: boolean?}
-- dtype: the widest of the operands; the rest: see kernels/rows.lua
---@return {kernel: any, grid: fun(m: integer): integer, block: integer}
return function(o)
  local plan = rows.plan(o)
  local name = o.backward and "softmax_backward" or "softmax"
  return {plan = plan, block = plan.block,
          grid = function(m) return plan:grid(m, o.resident) end,
          kernel = cute.kernel(name, NUMERICS, function(...)
    rows.check(plan, ...)
    if o.backward then backward(plan, ...)
    elseif plan.chunks > 1 then walked(plan, ...)
    else held(plan, ...) end
  end)}
end
