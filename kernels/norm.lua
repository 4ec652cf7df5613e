--- RMSNorm and LayerNorm along rows, forward and backward.
--
--     local k = norm.rms {dtype = cute.bf16, n = 4096, weight = true}
--     k.kernel(X, W, Y, 1e-6):launch {grid = k.grid(m), block = k.block}
--
-- Forward, of rows h = x + r (r and h with residual = true, else h = x):
--   rms    y = h rstd w          rstd = 1 / sqrt(mean(h^2) + eps)
--   layer  y = (h - mean) rstd w + b, rstd of the variance
-- Arguments in this order, those that are not asked for left out: X, R, W, B,
-- Y, H, Mean, Rstd, eps. X, R, Y, H are (M,N); W (weight = true) and B (bias =
-- true) are (N); Mean and Rstd (save = true, Mean of layer) are f32 (M).
--
-- Backward (norm.rms_backward, norm.layer_backward) of X (h of above), W, dY,
-- Mean, Rstd, dH (residual = true: what comes to h past the norm), dX, and with
-- weight = true Part, (k.parts(m), N) or with bias = true twice as many rows,
-- f32: sums of dW, then of dB, over the rows that one block walked. norm.sums
-- adds them up, always in the same order.
--
-- Sums are f32. The variance is that of differences from the mean.
local cute = require "cute"
local check = require "kernels.check"
local rows = require "kernels.rows"

local norm = {}

-- Names of a kernel's arguments, in order: {"X", true, "W", o.weight, ...}.
local function names(list)
  local out = {}
  for i = 1, #list, 2 do
    if list[i + 1] then out[#out + 1] = list[i] end
  end
  return out
end

-- Which of them are rows, or one row.
local ROWS = {X = true, R = true, W = true, B = true, Y = true, H = true,
              dY = true, dH = true, dX = true, Part = true}

local function by_name(what, plan, list, ...)
  check.need(select("#", ...) == #list, what, "%s are needed, not %d operands",
             table.concat(list, ", "), select("#", ...))
  local t, of_rows = {}, {}
  for i, name in ipairs(list) do
    t[name] = (select(i, ...))
    if ROWS[name] then of_rows[#of_rows + 1] = t[name] end
  end
  rows.check(plan, what, table.unpack(of_rows))
  return t
end

---------------------------------------------------------------------------
-- Forward
---------------------------------------------------------------------------

-- Differences from the mean, zero where there is no element.
local function centred(plan, h, mean, chunk)
  return plan:only(h - mean, 0, chunk)
end

local function scaled(plan, a, y, chunk)
  if a.W then y = y * plan:load(a.W, nil, 0, chunk):to(cute.f32) end
  if a.B then y = y + plan:load(a.B, nil, 0, chunk):to(cute.f32) end
  return y
end

-- The mean of f(chunk), vectors, over all elements of a row.
local function mean_of(plan, at, f)
  local sum = cute.var(0, cute.f32)
  plan:chunk(function(chunk)
    sum.value = sum.value + rows.fold(f(chunk), "add", 0)
  end)
  return plan:reduce(sum.value, rows.add, at.turn) * (1 / plan.n)
end

local function forward(plan, layer, a)
  local sources = plan:sources({a.X, a.R}, 0)
  local function h(at, chunk, last)
    local x = sources[1]:get(at, chunk, last)
    return a.R and x + sources[2]:get(at, chunk, last) or x
  end
  plan:each(a.X.shape[1], sources, function(at)
    local mean = layer and mean_of(plan, at, function(chunk)
      return h(at, chunk)
    end)
    local rstd = cute.rsqrt(mean_of(plan, at, function(chunk)
      local x = h(at, chunk)
      if layer then x = centred(plan, x, mean, chunk) end
      return x * x
    end) + a.eps)
    plan:first(at, function()
      if a.Mean then a.Mean[at.row] = mean end
      if a.Rstd then a.Rstd[at.row] = rstd end
    end)
    plan:chunk(function(chunk)
      local x = h(at, chunk, "last")
      if a.H then plan:store(a.H, at, x, chunk) end
      if layer then x = x - mean end
      plan:store(a.Y, at, scaled(plan, a, x * rstd, chunk), chunk)
    end)
  end)
end

-- Rows that are staged want half as many threads as a softmax does, which has
-- more to compute: 0.97 of a copy instead of 0.95 at 32768 elements of bf16.
local function spread(o)
  local function plan(more)
    more.sources = o.residual and 2 or 1
    return rows.plan(setmetatable(more, {__index = o}))
  end
  local p = plan {}
  if p.min_blocks == 2 and not (o.min_blocks or o.threads) then
    p = plan {threads = 512, min_blocks = false}
  end
  return p
end

local function maker(layer)
  return function(o)
    local plan, name = spread(o), layer and "layernorm" or "rmsnorm"
    local args = names {"X", true, "R", o.residual, "W", o.weight, "B", o.bias,
      "Y", true, "H", o.residual, "Mean", o.save and layer, "Rstd", o.save,
      "eps", true}
    return {plan = plan, block = plan.block, args = args,
            grid = function(m) return plan:grid(m, o.resident) end,
            kernel = cute.kernel(name, {
              fastmath = true, min_blocks = plan.min_blocks}, function(...)
              forward(plan, layer, by_name(name, plan, args, ...))
            end)}
  end
end

--- Kernels and what their launch needs; args: names of the arguments.
---@param o {n: integer, dtype: any, weight: boolean?, bias: boolean?,
-- residual: boolean?, save: boolean?} and what kernels/rows.lua takes
norm.rms = maker(false)
norm.layer = maker(true)

---------------------------------------------------------------------------
-- Backward
---------------------------------------------------------------------------

-- The gradient of a row: with g = dY w and xhat the normalised row,
-- dX = rstd (g - mean(g) - xhat mean(g xhat)), without mean(g) for rms.
-- add(chunk, dy xhat, dy) takes what the row adds to dW and dB.
local function gradient(plan, a, at, x, dy, w, add)
  local row = at.inside and cute.where(at.inside, at.row, 0) or at.row
  local rstd = a.Rstd[row]
  local mean = a.Mean and a.Mean[row]
  local function both(chunk, last)
    local xhat = x:get(at, chunk, last)
    if mean then xhat = centred(plan, xhat, mean, chunk) end
    local d = dy:get(at, chunk, last)
    return xhat * rstd, d, w and d * w(chunk) or d
  end
  local g_mean = mean and mean_of(plan, at, function(chunk)
    return (select(3, both(chunk)))
  end)
  local gx_mean = mean_of(plan, at, function(chunk)
    local xhat, _, g = both(chunk)
    return g * xhat
  end)
  plan:chunk(function(chunk)
    local xhat, d, g = both(chunk, "last")
    if add then add(chunk, d * xhat, d) end
    g = g - xhat * gx_mean
    if mean then g = g - g_mean end
    g = g * rstd
    if a.dH then g = g + plan:load(a.dH, at, 0, chunk):to(cute.f32) end
    plan:store(a.dX, at, g, chunk)
  end)
end

-- Sums over the rows of this thread, which end in a row of Part: add(chunk,
-- vector), and leave() at the end. In registers, or where these are too few in
-- Part itself.
local function sums_in(plan, Part, row)
  local at = {row = row}
  if not plan:fits() then
    plan:chunk(function(chunk)
      local zero = plan:fragment(cute.f32)
      zero:fill(0)
      plan:store(Part, at, zero:load(), chunk)
    end)
    return {leave = function() end, add = function(chunk, v)
      plan:store(Part, at, plan:load(Part, at, 0, chunk) + v, chunk)
    end}
  end
  local list = {}
  for chunk = 0, plan.chunks - 1 do
    list[chunk] = plan:fragment(cute.f32)
    list[chunk]:fill(0)
  end
  return {add = function(chunk, v)
    list[chunk or 0]:store(list[chunk or 0]:load() + v)
  end, leave = function()
    for chunk = 0, plan.chunks - 1 do
      plan:store(Part, at, list[chunk]:load(), chunk)
    end
  end}
end

local function backward(plan, a, bias)
  local kept = a.W and plan.chunks == 1 and plan:load(a.W, nil, 0)
  local function w(chunk)
    return (kept or plan:load(a.W, nil, 0, chunk)):to(cute.f32)
  end
  local mine = (cute.arch.block_idx()) * plan.rows + plan:row()
  local dw = a.Part and sums_in(plan, a.Part, mine)
  local db = bias and sums_in(plan, a.Part,
    mine + (cute.arch.grid_dim()) * plan.rows)
  local sources = plan:sources({a.X, a.dY}, 0)
  plan:each(a.X.shape[1], sources, function(at)
    gradient(plan, a, at, sources[1], sources[2], a.W and w, dw and
      function(chunk, dyx, dy)
        dw.add(chunk, dyx)
        if db then db.add(chunk, dy) end
      end)
  end)
  if dw then dw.leave() end
  if db then db.leave() end
end

-- How rows are spread whose sums down the columns are kept, too: blocks walk,
-- and have about 48 KiB of rows on their way to each multiprocessor.
local SMS, ON_THE_WAY = 132, 48 << 10

local function walking(o)
  local threads = 1
  while threads < 1024
      and o.n > threads * (threads < 256 and 16 or 32) do
    threads = threads * 2
  end
  local plan = rows.plan(setmetatable({
    persistent = true, staged = true, threads = o.threads or threads,
    values = o.values or 128 // o.dtype.bits, block = o.block or 64,
    sources = 2, min_blocks = o.min_blocks or false}, {__index = o}))
  if not plan.staged then  -- elements too narrow for copies, or rows too long
    plan = rows.plan(setmetatable({persistent = true, sources = 2,
      staged = false}, {__index = o}))
  end
  local bytes = plan.rows * o.n * 2 * (o.dtype.bits // 8)
  local blocks = (ON_THE_WAY + bytes // 2) // bytes
  return plan, SMS * math.max(1, math.min(blocks, 1024 // plan.block))
end

local function backward_maker(layer)
  return function(o)
    local sums = o.weight or o.bias
    local name = layer and "layernorm_backward" or "rmsnorm_backward"
    local plan, resident
    if sums then plan, resident = walking(o)
    else plan = rows.plan(setmetatable({sources = 2}, {__index = o})) end
    local args = names {"X", true, "W", o.weight, "dY", true, "Mean", layer,
      "Rstd", true, "dH", o.residual, "dX", true, "Part", sums}
    local function grid(m) return plan:grid(m, o.resident or resident) end
    return {plan = plan, block = plan.block, args = args, grid = grid,
            parts = function(m) return grid(m) * plan.rows end,
            kernel = cute.kernel(name, {
              fastmath = true, min_blocks = plan.min_blocks}, function(...)
      backward(plan, by_name(name, plan, args, ...), o.bias)
    end)}
  end
end

norm.rms_backward = backward_maker(false)
norm.layer_backward = backward_maker(true)

return norm
