--- Problems for tests of kernels that process a matrix row by row, such as
-- softmax and norms. Each has a reference in plain Lua (cutelua.bench.lesson
-- describes the form). Each function takes the options of the function that
-- makes the kernel. With the second argument, another function (`maker`), or
-- the function of another module (`module`), makes the kernel.
local cute = require "cute"
local lib = require "cutelua.bench.lessonlib"

local rows = {}

local EPS = 1e-5

local function options(o, more)
  return setmetatable(more, {__index = o})
end

-- Returns row i of a buffer of n columns.
local function row_of(b, i, n)
  local list = {}
  for k = 1, n do list[k] = b[i * n + k - 1] end
  return list
end

local function lesson(fields)
  fields.dims = fields.dims or {{"m", "rows"}, {"n", "columns"}}
  fields.dtypes = {"f32", "bf16", "f16", "i32"}
  fields.pieces = fields.pieces or function(p) return p.m end
  fields.make = fields.make or function(p) return p.made end
  return fields
end

-- Returns the reference function of scripts/`name`.lua for the options o.
local function reference(name, o)
  local f = assert(lib.script_spec(("scripts/%s.lua"):format(name),
    "cutelua.bench.harness", "run")).reference
  return function(p, i)
    p.opt = o
    return f(p, i)
  end
end

-- ---- softmax ----

--- Returns a lesson of softmax. o.fill gives the values of the input X.
function rows.softmax(o, maker)
  maker = maker or require "kernels.softmax"
  return lesson {
    operands = function(p)
      p.made = maker(options(o, {dtype = cute[p.dtype], n = p.n}))
      return {{"x", {p.m, p.n}, fill = o.fill},
              {"y", {p.m, p.n}, out = true}}
    end,
    reference = reference("softmax", o)}
end

function rows.softmax_backward(o, maker)
  maker = maker or require "kernels.softmax"
  return lesson {
    operands = function(p)
      p.made = maker(options(o, {dtype = cute[p.dtype], n = p.n,
                                 backward = true}))
      return {{"y", {p.m, p.n}}, {"dy", {p.m, p.n}},
              {"dx", {p.m, p.n}, out = true}}
    end,
    tolerance = {bf16 = 8e-3, f16 = 2e-3, f32 = 3e-5},
    reference = reference("softmax_backward", o)}
end

-- ---- norms ----

-- Returns the operands of a norm, in the order of its kernel's parameters.
local function norm_operands(p, o)
  local all, one, some = {p.m, p.n}, {p.n}, {p.m}
  local back, k = o.backward, p.made
  local parts = k.parts and {k.parts(p.m) * (o.bias and 2 or 1), p.n}
  local of = {
    X = {all, false, nil, o.fill}, R = {all}, W = {one}, B = {one},
    Y = {all, true}, H = {all, true}, Mean = {some, not back, "f32"},
    Rstd = {some, not back, "f32"}, dY = {all}, dH = {all}, dX = {all, true},
    Part = {parts, true, "f32"},
    State = {k.states and {k.states(p.m)}, true, "u64", "zero"}}
  local list = {}
  for _, name in ipairs(k.args) do
    local d = of[name]
    if d then
      list[#list + 1] = {name, d[1], out = d[2], dtype = d[3], fill = d[4]}
    end
  end
  return list
end

local function forward_row(p, o, i)
  local n, h, mean, var, y = p.n, row_of(p.X, i, p.n), 0, 0, {}
  for k = 1, n do h[k] = h[k] + (p.R and p.R[i * n + k - 1] or 0) end
  for k = 1, n do mean = mean + (o.layer and h[k] / n or 0) end
  for k = 1, n do var = var + (h[k] - mean) ^ 2 / n end
  local rstd = 1 / math.sqrt(var + EPS)
  for k = 1, n do
    y[k] = (h[k] - mean) * rstd * (p.W and p.W[k - 1] or 1)
      + (p.B and p.B[k - 1] or 0)
  end
  return {Y = y, H = p.H and h, Mean = p.Mean and {mean},
          Rstd = p.Rstd and {rstd}}
end

-- Returns the gradient dX of row i, and the row's contributions to dW (dY xhat)
-- and to dB (dY).
local function backward_row(p, o, i)
  local n, mean, rstd = p.n, p.Mean and p.Mean[i] or 0, p.Rstd[i]
  local xhat, dy, g = row_of(p.X, i, n), row_of(p.dY, i, n), {}
  local g_mean, gx_mean, dx, dyx = 0, 0, {}, {}
  for k = 1, n do
    xhat[k] = (xhat[k] - mean) * rstd
    g[k] = dy[k] * (p.W and p.W[k - 1] or 1)
    dyx[k] = dy[k] * xhat[k]
    if o.layer then g_mean = g_mean + g[k] / n end
    gx_mean = gx_mean + g[k] * xhat[k] / n
  end
  for k = 1, n do
    dx[k] = rstd * (g[k] - g_mean - xhat[k] * gx_mean)
      + (p.dH and p.dH[i * n + k - 1] or 0)
  end
  return dx, dyx, dy
end

-- Returns the expected partial sums of dW and dB. Only the sum of each column
-- matters, not how the blocks divide it. The expected rows are those that the
-- kernel wrote, but the first one is changed so that the sums are right.
local function parts_of(p, o)
  local n, parts = p.n, p.made.parts(p.m)
  local want = {at = 0}
  for half = 0, o.bias and 1 or 0 do
    for k = 1, n do want[half * parts * n + k] = 0 end
  end
  for i = 0, p.m - 1 do
    local _, dyx, dy = backward_row(p, o, i)
    for k = 1, n do
      want[k] = want[k] + dyx[k]
      if o.bias then
        want[parts * n + k] = want[parts * n + k] + dy[k]
      end
    end
  end
  for half = 0, o.bias and 1 or 0 do
    for r = 1, parts - 1 do
      for k = 1, n do
        local at = (half * parts + r) * n + k
        want[at] = p.Part[at - 1]
        want[half * parts * n + k] = want[half * parts * n + k] - want[at]
      end
    end
  end
  return want
end

--- Returns a lesson of a norm. Options: o.layer, o.backward, o.fill (the values
-- of X), o.tolerance, and the maker's options.
function rows.norm(o, module)
  local norm = module or require "kernels.norm"
  local maker = norm[(o.layer and "layer" or "rms")
    .. (o.backward and "_backward" or "")]
  return lesson {
    tolerance = o.tolerance or {bf16 = 8e-3, f16 = 2e-3, f32 = 1e-4},
    operands = function(p)
      p.made = maker(options(o, {dtype = cute[p.dtype], n = p.n}))
      return norm_operands(p, o)
    end,
    make = function(p)
      local args = table.move(p.made.args, 1, #p.made.args, 1, {})
      if args[#args] == "eps" then args[#args] = EPS end
      return {kernel = p.made.kernel, grid = p.made.grid,
              block = p.made.block, args = args}
    end,
    reference = function(p, i)
      if not o.backward then return forward_row(p, o, i) end
      local state
      if i == 0 and p.State then  -- the kernel must leave 0 in State
        state = {at = 0}
        for k = 1, #p.State do state[k] = 0 end
      end
      return {dX = (backward_row(p, o, i)), State = state,
              Part = i == 0 and p.Part and parts_of(p, o) or nil}
    end}
end

-- ---- the others ----

--- Returns a lesson of argmax. Options: o.smallest; o.fill, the values of X.
function rows.argmax(o, maker)
  maker = maker or require "kernels.argmax"
  return lesson {
    operands = function(p)
      p.made = maker(options(o, {dtype = cute[p.dtype], n = p.n}))
      return {{"x", {p.m, p.n}, fill = o.fill},
              {"i", {p.m}, dtype = "i32", out = true}}
    end,
    reference = reference("argmax", o)}
end

local PLAIN = {
  sum = function(a, b) return a + b end,
  prod = function(a, b) return a * b end, max = math.max, min = math.min}

-- Reduces a list by an operation of kernels/reduce.lua, in plain Lua.
local function folded(op, n, get)
  local map = type(op) == "table" and op.plain or function(x) return x end
  local f = PLAIN[op] or PLAIN.sum
  local a = map(get(0))
  for i = 1, n - 1 do a = f(a, map(get(i))) end
  return a
end

--- Returns a lesson that reduces every row by o.op. With o.along = "columns" it
-- reduces every column, with "all" all elements together.
function rows.reduce(o, module)
  local reduce = module or require "kernels.reduce"
  local along = o.along or "rows"
  local lessons = {}
  local function made(p, more)
    p.made = reduce[along](options(o, more))
    return {"x", {p.m, p.n}, fill = o.fill or {-9, 9}}
  end
  function lessons.rows()
    return lesson {
      operands = function(p)
        return {made(p, {dtype = cute[p.dtype], n = p.n}),
                {"y", {p.m}, dtype = "f32", out = true}}
      end,
      reference = function(p, i)
        return {y = {folded(o.op, p.n, function(k)
          return p.x[i * p.n + k]
        end)}}
      end}
  end
  function lessons.columns()
    return lesson {
      pieces = function(p) return p.n end,
      operands = function(p)
        return {made(p, {dtype = cute[p.dtype], m = p.m, n = p.n}),
                {"y", {p.n}, dtype = "f32", out = true}}
      end,
      reference = function(p, i)
        return {y = {folded(o.op, p.m, function(k)
          return p.x[k * p.n + i]
        end)}}
      end}
  end
  function lessons.all()
    return lesson {
      pieces = function() return 1 end,
      operands = function(p)
        local x = made(p, {dtype = cute[p.dtype], n = p.m * p.n})
        return {x, {"y", {1}, dtype = "f32", out = true},
                {"parts", {p.made.grid}, dtype = "f32", scratch = true},
                {"tickets", {1}, dtype = "u32", out = true, fill = "zero"}}
      end,
      reference = function(p)
        return {y = {folded(o.op, p.m * p.n, function(k) return p.x[k] end)},
                tickets = {0}}
      end}
  end
  return lessons[along]()
end

--- Returns a lesson of rotary embeddings with the sizes (tokens, heads,
-- elements, positions).
function rows.rope(o, maker)
  maker = maker or require "kernels.rope"
  return lesson {
    dims = {{"m", "tokens"}, {"h", "heads"}, {"d", "elements"},
            {"q", "positions"}},
    operands = function(p)
      p.made = maker(options(o, {dtype = cute[p.dtype], m = p.m, heads = p.h,
                                 d = p.d, positions = p.q}))
      local all, angles = {p.m, p.h, p.d}, {p.q, p.d // 2}
      return {{"x", all}, {"cos", angles, dtype = "f32"},
              {"sin", angles, dtype = "f32"}, {"y", all, out = true},
              o.at and {"at", {p.m}, dtype = "i32", fill = {0, p.q - 1}}
                or nil}
    end,
    pieces = function(p) return p.m * p.h end,
    reference = reference("rope", o)}
end

return rows
-- SPDX-License-Identifier: MIT
