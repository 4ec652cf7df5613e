--- RMSNorm and LayerNorm along rows, forward and backward.
--
--     local k = norm.rms {dtype = cute.bf16, n = 4096, weight = true}
--     k.kernel(X, W, Y, 1e-6):launch {grid = k.grid(m), block = k.block}
--
-- Forward, for rows h = x + r (r and h with residual = true, else h = x):
--   rms    y = h rstd w                rstd = 1 / sqrt(mean(h^2) + eps)
--   layer  y = (h - mean) rstd w + b   rstd = 1 / sqrt(variance(h) + eps)
-- The kernel's arguments are X, R, W, B, Y, H, Mean, Rstd, eps in this order,
-- without those that the options do not request. X, R, Y, H are (M,N), for M
-- rows of N elements; W (weight = true) and B (bias = true) are (N). Mean and
-- Rstd (save = true; Mean only for layer) are f32 (M).
--
-- Backward (norm.rms_backward, norm.layer_backward) has the arguments X (h
-- above), W, dY, Mean, Rstd, dH (residual = true: the gradient of h that
-- bypasses the norm), dX. With weight = true it also has Part, f32 (k.parts(m),
-- N): each row of Part has the sums of dW over the rows that one block
-- processed. With bias = true, as many rows with the sums of dB follow.
-- reduce.columns of kernels/reduce.lua adds the rows of Part, always in the
-- same order. If k.states(m) is not 0 (rows of more than 16384 elements), the
-- last argument is State, a vector of k.states(m) words of u64. These words are
-- 0 before the first launch and after each launch.
--
-- Sums are f32. The variance is computed from differences from the mean.
local cute = require "cute"
local rules = require "kernels.operand_rules"
local rows = require "kernels.rows"
local multiblock = require "kernels.multiblock_rows"
local sign = require "cute.lang.signature"

local norm = {}

-- Returns the names of a kernel's arguments, in order. In `list`, each name is
-- followed by whether the kernel has this argument: {"X", true, "W", o.weight}.
local function names(list)
  local out = {}
  for i = 1, #list, 2 do
    if list[i + 1] then out[#out + 1] = list[i] end
  end
  return out
end

-- The arguments whose rows have n elements: matrices (M,N), or one row (N).
local ROWS = {X = true, R = true, W = true, B = true, Y = true, H = true,
              dY = true, dH = true, dX = true, Part = true}

local function by_name(what, plan, list, ...)
  rules.need(select("#", ...) == #list, what, "%s are needed, not %d operands",
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

-- Returns h - mean for a thread's elements of a chunk. Elements beyond the end
-- of the row are 0.
local function centred(plan, h, mean, chunk)
  return plan:only(h - mean, 0, chunk)
end

-- Returns {W = vector, B = vector}: this thread's elements of W and of B for a
-- chunk. A field is nil if the kernel does not have that argument.
local function weights(plan, a, chunk)
  return {W = a.W and plan:load(a.W, nil, 0, chunk),
          B = a.B and plan:load(a.B, nil, 0, chunk)}
end

local function scaled(y, by)
  if by.W then y = y * by.W:to(cute.f32) end
  if by.B then y = y + by.B:to(cute.f32) end
  return y
end

-- Computes x / n, or 0 if n is 0.
local function over(n, x)
  return type(n) == "number" and x * (1 / n) or x / cute.max(n, 1)
end

-- Variances are computed in one pass (Chan, Golub and LeVeque, 1979). A set of
-- numbers is represented by its count `n`, its mean, and `m2`, the sum of
-- squared differences from the mean. Unlike the difference of two sums, this
-- loses no digits if the mean is large.

-- Returns the set {n =, mean =, m2 =} of a thread's numbers of a row. m2 is
-- computed from differences to the first number.
local function set_of(plan, h)
  local first = h(0)[{0, 0}]
  local sum, squares = cute.var(0, cute.f32), cute.var(0, cute.f32)
  plan:chunk(function(chunk)
    local d = centred(plan, h(chunk), first, chunk)
    sum.value = sum.value + rows.fold(d, "add", 0)
    squares.value = squares.value + rows.fold(d * d, "add", 0)
  end)
  local n = plan:count()
  local mean = over(n, sum.value)
  return {n = n, mean = first + mean, m2 = squares.value - sum.value * mean}
end

-- Merges the lanes' sets {n =, mean =, m2 =} into the set of all n numbers.
-- add(x) returns the sum of the lanes' x.
local function united(set, n, add)
  local mean = over(n, add(set.mean * set.n))
  local d = set.mean - mean
  return {n = n, mean = mean, m2 = add(set.m2 + d * d * set.n)}
end

-- Merges the sets of a row's threads into the set of the whole row.
local function set_of_row(plan, at, set)
  local function add(x) return plan:warp(x, rows.add) end
  local fixed = type(set.n) == "number"
  local s = united(set, fixed and set.n * plan:lanes() or add(set.n), add)
  local all, warps = plan:exchange({s.mean, s.m2, not fixed and s.n or nil},
                                   at.turn)
  if warps == 1 then return s end
  return united({n = all[3] or s.n, mean = all[1], m2 = all[2]}, plan.n,
    function(x) return cute.arch.warp_reduction(x, rows.add, warps) end)
end

-- Returns this thread's sum of the squares of a row.
local function squares_of(plan, h)
  local sum = cute.var(0, cute.f32)
  plan:chunk(function(chunk)
    local x = h(chunk)
    sum.value = sum.value + rows.fold(x * x, "add", 0)
  end)
  return sum.value
end

local function forward(plan, layer, a)
  if plan.pdl then cute.arch.griddepcontrol_wait() end
  local sources = plan:sources({a.X, a.R}, 0)
  plan:each(a.X.shape[1], sources, function(at)
    local function h(chunk, last)
      local x = sources[1]:get(at, chunk, last)
      return a.R and x + sources[2]:get(at, chunk, last) or x
    end
    local early = plan.pdl and plan.chunks == 1 and weights(plan, a, 0)
    local own = layer and set_of(plan, h) or squares_of(plan, h)
    -- The row has been loaded, so the loads of the next launch's blocks cannot
    -- delay it.
    if plan.pdl then cute.arch.griddepcontrol_launch_dependents() end
    -- For rows in shared memory, loads the weights of the first chunk before
    -- the threads wait for each other.
    early = early or plan.staged and weights(plan, a, 0)
    local mean, square
    if layer then
      local set = set_of_row(plan, at, own)
      mean, square = set.mean, set.m2
    else
      square = plan:sums({own}, at.turn)[1]
    end
    local rstd = cute.rsqrt(square * (1 / plan.n) + a.eps)
    plan:first(at, function()
      if a.Mean then a.Mean[at.row] = mean end
      if a.Rstd then a.Rstd[at.row] = rstd end
    end)
    plan:chunk(function(chunk)
      local x = h(chunk, "last")
      if a.H then plan:store(a.H, at, x, chunk) end
      if layer then x = x - mean end
      local by = early and (chunk or 0) == 0 and early
        or weights(plan, a, chunk)
      plan:store(a.Y, at, scaled(x * rstd, by), chunk)
    end)
  end)
end

-- Returns the plan of a forward kernel. It differs from the plan for softmax,
-- which does more arithmetic. The numbers in parentheses are times, or speeds
-- as fractions of a copy's speed, on an H200. Staged rows of 32768 elements use
-- half as many threads as for softmax (RMSNorm: 0.97 instead of 0.95).
-- LayerNorm halves a number of threads of 512 or more. It stages rows of 1024
-- threads (2048 rows of 16384 f16: 33.5 us; in the registers of 512 threads,
-- 37.6), unless there are few (o.pdl; one row: 2.8 us, in registers 2.6). If
-- only one block of 1024 threads fits, it processes twice as many elements at a
-- time (65536: 0.96 instead of 0.94).
local function spread(o, layer)
  local function plan(more)
    more.sources = o.residual and 2 or 1
    return rows.plan(setmetatable(more, {__index = o}))
  end
  local p = plan {}
  if o.threads or o.min_blocks then return p end
  if layer and p.chunks == 1 and p.threads >= 512 then
    local values = 2 * p.steps * p.width
    if (p.threads == 512 or o.pdl)
        and values <= rows.most(o.dtype, o.residual and 2) then
      return plan {threads = p.threads // 2, values = values}
    end
    p = plan {staged = true}
  end
  if p.min_blocks == 2 then
    return plan {threads = 512, min_blocks = false}
  elseif layer and p.staged and p.block == 1024 and not o.values then
    return plan {values = 512 // o.dtype.bits}
  end
  return p
end

local function maker(layer)
  return function(o)
    local name = layer and "layernorm" or "rmsnorm"
    rules.options(name, o, "weight bias residual save pdl " .. rows.OPTIONS)
    local plan = spread(o, layer)
    plan.pdl = o.pdl
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

--- Returns a kernel and its launch parameters, as a table; its field `args`
-- lists the names of the kernel's arguments.
---@param o table {n: integer, dtype: any, weight: boolean?, bias: boolean?,
-- residual: boolean?, save: boolean?, pdl: boolean?} and the options of
-- kernels/rows.lua. pdl: for dependent launches of few rows, whose weights are
-- loaded together with the row
norm.rms = maker(false)
norm.layer = maker(true)

---------------------------------------------------------------------------
-- Backward
---------------------------------------------------------------------------

-- Computes the gradients of rows: dX = rstd (g - mean(g) - xhat mean(g xhat)),
-- where g = dY w and xhat = (x - mean) rstd. For rms, xhat is x rstd and the
-- term mean(g) is absent. add(chunk, dy xhat, dy) receives a row's contribution
-- to dW and dB.
local function gradients(plan, a, w, add)
  local sources = plan:sources({a.X, a.dY}, 0)
  local function of(t, at)
    return t and t[at.inside and cute.where(at.inside, at.row, 0) or at.row]
  end
  -- Returns three fragments of a chunk: x - mean, dY and g.
  local function operands(at, mean, chunk, last)
    local x = sources[1]:get(at, chunk, last)
    if mean then x = centred(plan, x, mean, chunk) end
    local d = sources[2]:get(at, chunk, last)
    return x, d, w and d * w(chunk) or d
  end
  local function part(at)
    local rstd, mean = of(a.Rstd, at), of(a.Mean, at)
    local gx, g_sum = cute.var(0, cute.f32), cute.var(0, cute.f32)
    plan:chunk(function(chunk)
      local x, _, g = operands(at, mean, chunk)
      gx.value = gx.value + rows.fold(g * x, "add", 0)
      if mean then g_sum.value = g_sum.value + rows.fold(g, "add", 0) end
    end)
    return {gx.value * rstd, mean and g_sum.value}
  end
  local function use(at, sums)
    local rstd, mean = of(a.Rstd, at), of(a.Mean, at)
    local gx_mean = sums[1] * (1 / plan.n)
    plan:chunk(function(chunk)
      local x, d, g = operands(at, mean, chunk, "last")
      local xhat = x * rstd
      if add then add(chunk, d * xhat, d) end
      g = g - xhat * gx_mean
      if mean then g = g - sums[2] * (1 / plan.n) end
      g = g * rstd
      if a.dH then g = g + plan:load(a.dH, at, 0, chunk):to(cute.f32) end
      plan:store(a.dX, at, g, chunk)
    end)
  end
  multiblock.sweep(plan, a.X.shape[1], sources, a.Mean and 2 or 1, part, use)
end

-- Returns an object that sums vectors over this thread's rows: add(chunk,
-- vector) adds a vector to the sums of a chunk, and leave() stores all sums in
-- a row of Part. The sums are in registers, or in Part if there are too few
-- registers.
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
  plan = multiblock.join(plan, a.State)
  local kept = a.W and plan.chunks == 1 and plan:load(a.W, nil, 0)
  local function w(chunk)
    return (kept or plan:load(a.W, nil, 0, chunk)):to(cute.f32)
  end
  local mine, at_once = plan:walk()
  local dw = a.Part and sums_in(plan, a.Part, mine)
  local db = bias and sums_in(plan, a.Part, mine + at_once)
  gradients(plan, a, a.W and w, dw and function(chunk, dyx, dy)
    dw.add(chunk, dyx)
    if db then db.add(chunk, dy) end
  end)
  if dw then dw.leave() end
  if db then db.leave() end
end

-- Plans the distribution of rows for kernels that also sum along columns.
-- Blocks are persistent, and each multiprocessor has about ON_THE_WAY bytes of
-- rows in flight. If a row has more elements than a block can keep sums for,
-- several blocks share it, with at most SHARE bytes each. A block holds two
-- stages of two sources. The share of a block is a multiple of STEP bytes, so
-- that its threads have whole vectors.
local SMS, ON_THE_WAY, SHARE, STEP = 132, 48 << 10, 32 << 10, 8 << 10

local function blocks_for(o)
  local bits = o.dtype.bits
  local share = math.min(SHARE, (o.smem or math.huge) // (4 * STEP) * STEP)
  local blocks = math.tointeger((o.n * bits // 8 + share - 1) // share)
  -- Whether the accesses are narrower than 4 bytes, the smallest size of
  -- cp.async.
  local narrow = rules.widest(bits, o.n) * bits < 32
  if o.n <= rows.KEPT or narrow or blocks > multiblock.MOST then return 1 end
  return blocks
end

local function walking(o)
  local function plan(more)
    more.persistent, more.sources = true, 2
    more.min_blocks = o.min_blocks or false
    return rows.plan(setmetatable(more, {__index = o}))
  end
  local width, shared = 128 // o.dtype.bits, o.blocks or blocks_for(o)
  if shared > 1 then
    return plan {staged = true, values = o.values or width, blocks = shared,
      threads = o.threads or 512}, SMS
  end
  local threads = 1
  while threads < 1024
      and o.n > threads * (threads < 256 and 16 or 32) do
    threads = threads * 2
  end
  local p = plan {staged = true, threads = o.threads or threads,
                  values = o.values or width, block = o.block or 64}
  -- Rows cannot be staged if the vectors are too narrow for cp.async, or if
  -- rows are too long for shared memory.
  if not p.staged then p = plan {staged = false} end
  local bytes = p.rows * o.n * 2 * (o.dtype.bits // 8)
  local blocks = (ON_THE_WAY + bytes // 2) // bytes
  return p, SMS * math.max(1, math.min(blocks, 1024 // p.block))
end

local function backward_maker(layer)
  return function(o)
    local sums = o.weight or o.bias
    local name = layer and "layernorm_backward" or "rmsnorm_backward"
    rules.options(name, o, "weight bias residual " .. rows.OPTIONS)
    local plan, resident
    if sums then plan, resident = walking(o)
    else plan = rows.plan(setmetatable({sources = 2}, {__index = o})) end
    local args = names {"X", true, "W", o.weight, "dY", true, "Mean", layer,
      "Rstd", true, "dH", o.residual, "dX", true, "Part", sums,
      "State", plan.blocks > 1}
    local function grid(m) return plan:grid(m, o.resident or resident) end
    return {plan = plan, block = plan.block, args = args, grid = grid,
            parts = function(m) return grid(m) // plan.blocks * plan.rows end,
            states = function(m)
              return multiblock.states(plan, m, layer and 2 or 1)
            end,
            kernel = cute.kernel(name, {
              fastmath = true, min_blocks = plan.min_blocks}, function(...)
      backward(plan, by_name(name, plan, args, ...), o.bias)
    end)}
  end
end

norm.rms_backward = backward_maker(false)
norm.layer_backward = backward_maker(true)

return sign.module("kernels.norm", norm)
-- SPDX-License-Identifier: MIT
