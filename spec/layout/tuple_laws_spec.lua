-- Tests every function of IntTuples against plain Lua, with random tuples. Some
-- tuples are nested, contain empty tuples, or have zeros and negative numbers.
-- The same cases then run with some numbers traced, and one thread of the
-- simulator must compute the same values.
local cute = require "cute"
local oracle = require "spec.layout.oracle"

-- ---- plain Lua ----

local function is(t) return type(t) == "table" end
local leaves, size = oracle.leaves, oracle.size

local function map(f, t, u)
  if not is(t) then return f(t, u) end
  local list = {}
  for i, x in ipairs(t) do list[i] = map(f, x, is(u) and u[i] or u) end
  return list
end

local function fold(f, t)
  local list = leaves(t)
  local v = list[1]
  for i = 2, #list do v = f(v, list[i]) end
  return v
end

local function gcd(a, b)
  a, b = math.abs(a), math.abs(b)
  while b ~= 0 do a, b = b, a % b end
  return a
end

local function modes(t) return is(t) and t or {t} end

local function depth(t)
  if not is(t) then return 0 end
  local n = 0
  for _, x in ipairs(t) do n = math.max(n, depth(x)) end
  return n + 1
end

-- Returns the modes of t, where the further arguments replace modes `at` to at
-- + drop - 1, counted from 0.
local function splice(t, at, drop, ...)
  local list = table.move(modes(t), 1, at, 1, {})
  for _, x in ipairs {...} do list[#list + 1] = x end
  return table.move(modes(t), at + drop + 1, #modes(t), #list + 1, list)
end

local function ceil(a, b) return (a + b - 1) // b end

-- Divides tuple t by n, leaf by leaf from the left. Each leaf is divided by n,
-- and n is divided by the leaf for the next leaves. All quotients are rounded
-- up.
local function divide(t, n)
  if not is(t) then return ceil(t, n) end
  local list = {}
  for i, x in ipairs(t) do
    list[i] = divide(x, n)
    n = ceil(n, size(x))
  end
  return list
end

local function divide_each(t, u)
  if not is(t) then return ceil(t, size(u)) end
  if not is(u) then return divide(t, u) end
  local list = {}
  for i, x in ipairs(t) do list[i] = divide_each(x, u[i] or 1) end
  return list
end

local function product_like(t, guide)
  if not is(guide) then return size(t) end
  local list = {}
  for i, x in ipairs(t) do list[i] = product_like(x, guide[i]) end
  return list
end

local function compatible(a, b)
  if not is(a) then return a == size(b) end
  if not is(b) or #a ~= #b then return false end
  for i, x in ipairs(a) do
    if not compatible(x, b[i]) then return false end
  end
  return true
end

local function congruent(a, b, weakly)
  if not is(a) then return weakly or not is(b) end
  if not is(b) or #a ~= #b then return false end
  for i, x in ipairs(a) do
    if not congruent(x, b[i], weakly) then return false end
  end
  return true
end

-- ---- random arguments ----

local function any(r, deep)  -- Returns integers from -3 to 8 in random nesting.
  if deep == 0 or r:below(4) == 0 then return r:below(12) - 3 end
  local t = {}
  for i = 1, r:below(4) do t[i] = any(r, deep - 1) end
  return t
end

local function positive(r, deep)
  return map(function(x) return math.abs(x) + 1 end, any(r, deep))
end

local function tuple(r, deep)
  local t = any(r, deep)
  return is(t) and t or {t}
end

-- Returns a random tuple with at least one leaf.
local function filled(r, deep)
  local t = any(r, deep)
  return #leaves(t) > 0 and t or filled(r, deep)
end

-- Returns a copy of the tuple t in which random subtuples, and all leaves, are
-- replaced by 1. The result is a profile that t refines.
local function coarse(r, t)
  if not is(t) or r:below(3) == 0 then return 1 end
  local list = {}
  for i, x in ipairs(t) do list[i] = coarse(r, x) end
  return list
end

-- ---- the laws: arguments, and the result in plain Lua ----

local law = {}
-- Adds a law about the function `name`. args(r) returns random arguments, and
-- `want` computes the expected result in plain Lua. `numbers` lists the indices
-- of the arguments that may be traced.
local function add(name, numbers, args, want)
  law[#law + 1] = {name = name, numbers = numbers, args = args, want = want}
end

local function one(gen) return function(r) return {gen(r, 3)} end end
-- Returns a generator of pairs of tuples with the same profile.
local function like(gen)
  return function(r)
    local t = gen(r, 3)
    return {t, map(function() return gen(r, 0) end, t)}
  end
end

add("rank", {1}, one(any), function(t) return #modes(t) end)
add("depth", {1}, one(any), depth)
add("size", {1}, one(any), size)
add("flatten", {1}, one(any), function(t) return is(t) and leaves(t) or t end)
add("flatten_to_tuple", {1}, one(any), leaves)
add("get_leaves", {1}, one(any), leaves)
add("unflatten", {1}, function(r)
  local t = any(r, 3)
  return {leaves(t), t, keep = t}
end, function(_, t) return t end)
add("product_each", {1}, one(any), function(t)
  local list = {}
  for i, x in ipairs(modes(t)) do list[i] = size(x) end
  return list
end)
add("product_like", {1}, function(r)
  local t = any(r, 3)
  return {t, coarse(r, t)}
end, product_like)
add("coalesce", {}, one(positive), size)
add("sum", {1}, one(any), function(t)
  return fold(function(a, b) return a + b end, t) or 0
end)
add("max", {1}, one(filled), function(t) return fold(math.max, t) end)
add("min", {1}, one(filled), function(t) return fold(math.min, t) end)
add("gcd", {}, one(any), function(t) return fold(gcd, {0, 0, t}) end)
add("wrap", {1}, one(any), modes)
add("unwrap", {1}, one(any), function(t)
  while is(t) and #t == 1 do t = t[1] end
  return t
end)
add("reverse", {1}, one(any), function(t)
  if not is(t) then return t end
  local list = {}
  for i, x in ipairs(t) do list[#t + 1 - i] = x end
  return list
end)
add("append", {1, 2}, function(r) return {any(r, 2), any(r, 2)} end,
    function(t, x) return splice(t, #modes(t), 0, x) end)
add("prepend", {1, 2}, function(r) return {any(r, 2), any(r, 2)} end,
    function(t, x) return splice(t, 0, 0, x) end)
add("append", {1, 2}, function(r)
  local t = any(r, 2)
  return {t, any(r, 1), #modes(t) + 1 + r:below(3)}
end, function(t, x, n)
  while #modes(t) < n do t = splice(t, #modes(t), 0, x) end
  return t
end)
add("insert", {1, 3}, function(r)
  local t = tuple(r, 2)
  return {t, r:below(#t + 1), any(r, 2)}
end, function(t, i, x) return splice(t, i, 0, x) end)
add("remove", {1}, function(r)
  local t = splice(tuple(r, 2), 0, 0, any(r, 1))
  return {t, r:below(#t)}
end, function(t, i) return splice(t, i, 1) end)
add("replace", {1, 3}, function(r)
  local t = splice(tuple(r, 2), 0, 0, any(r, 1))
  return {t, r:below(#t), any(r, 2)}
end, function(t, i, x) return splice(t, i, 1, x) end)
add("take", {1}, function(r)
  local t = tuple(r, 2)
  local b = r:below(#t + 1)
  return {t, b, b + r:below(#t - b + 1)}
end, function(t, b, e) return table.move(t, b + 1, e, 1, {}) end)
add("group", {1}, function(r)
  local t = splice(tuple(r, 2), 0, 0, any(r, 1))
  local b = r:below(#t)
  return {t, b, b + 1 + r:below(#t - b)}
end, function(t, b, e)
  return splice(t, b, e - b, table.move(t, b + 1, e, 1, {}))
end)
add("select", {1}, function(r)
  local t = splice(tuple(r, 2), 0, 0, any(r, 1))
  return {t, r:below(#t), r:below(#t)}
end, function(t, i, j) return {t[i + 1], t[j + 1]} end)
add("get", {1}, function(r)
  local t = splice(tuple(r, 2), 0, 0, {any(r, 1), any(r, 1)})
  return {t, 0, r:below(2)}
end, function(t, i, j) return t[i + 1][j + 1] end)
add("tuple_cat", {1, 2, 3}, function(r)
  return {any(r, 2), any(r, 1), any(r, 2)}
end, function(a, b, c)
  local t = splice(a, #modes(a), 0, table.unpack(modes(b)))
  return splice(t, #t, 0, table.unpack(modes(c)))
end)
add("repeat_like", {2}, function(r) return {tuple(r, 3), any(r, 0)} end,
    function(t, x) return map(function() return x end, t) end)
add("repeat_as_tuple", {1}, function(r) return {any(r, 2), r:below(4)} end,
    function(x, n)
      local t = {}
      for i = 1, n do t[i] = x end
      return t
    end)
add("zip", {1, 2, 3}, function(r)
  local t, n = {}, 1 + r:below(3)
  for i = 1, 2 + r:below(2) do
    t[i] = {}
    for j = 1, n do t[i][j] = any(r, 1) end
  end
  return t
end, function(...)
  local t, list = {...}, {}
  for j in ipairs(t[1]) do
    list[j] = {}
    for i in ipairs(t) do list[j][i] = t[i][j] end
  end
  return list
end)
add("elem_scale", {1, 2}, like(any), function(a, b)
  return map(function(x, y) return x * size(y) end, a, b)
end)
add("inner_product", {1, 2}, like(any), function(a, b)
  local sum, x, y = 0, leaves(a), leaves(b)
  for i in ipairs(x) do sum = sum + x[i] * y[i] end
  return sum
end)
add("ceil_div", {1, 2}, like(positive), divide_each)
add("ceil_div", {1}, function(r) return {positive(r, 3), 1 + r:below(9)} end,
    divide_each)
add("round_up", {1, 2}, like(positive), function(a, b)
  return map(function(x, y) return ceil(x, y) * y end, a, b)
end)
add("filter_zeros", {2}, like(any), function(g, t)
  return map(function(x, y) return x == 0 and 1 or y end, g, t)
end)
add("transform_leaf", {2, 3}, function(r)
  local t = like(any)(r)
  return {function(x, y) return 2 * x - y end, t[1], t[2]}
end, function(f, t, u) return map(f, t, u) end)
add("congruent", {}, function(r) return {any(r, 1), any(r, 1)} end,
    function(a, b) return congruent(a, b) end)
add("weakly_congruent", {}, function(r) return {any(r, 2), any(r, 2)} end,
    function(a, b) return congruent(a, b, true) end)
add("compatible", {}, function(r)
  local t = positive(r, 3)
  return r:below(2) == 0 and {product_like(t, coarse(r, t)), t}
         or {t, positive(r, 2)}
end, compatible)
add("compact_col_major", {}, one(positive), function(t)
  local n = 1
  return map(function(s)
    local d = s == 1 and 0 or n
    n = n * s
    return d
  end, t)
end)
add("crd2crd", {1}, function(r)
  local shape = positive(r, 2)
  return {r:below(size(shape)), shape, positive(r, 2)}
end, function(i, _, dst) return oracle.coord(dst, i) end)
add("idx2crd", {1, 2}, function(r)
  return {r:below(200) - 100, positive(r, 3)}
end, function(i, shape) return oracle.coord(shape, i) end)
add("crd2idx", {1, 2}, function(r)
  local shape = positive(r, 3)
  return {oracle.coord(shape, r:below(200) - 100), shape}
end, function(c, shape)
  local n, sum, s = 1, 0, leaves(shape)
  for i, x in ipairs(leaves(c)) do sum, n = sum + x * n, n * s[i] end
  return sum
end)

-- ---- execution ----

local function text(x) return tostring(is(x) and cute.tuple(x) or x) end

local function complain(l, args, got, want)
  local list = {}
  for i, x in ipairs(args) do list[i] = text(x) end
  error(("%s(%s) is %s, not %s"):format(l.name, table.concat(list, ", "),
                                        text(got), text(want)), 2)
end

describe("laws of tuples:", function()
  for k, l in ipairs(law) do
    it(l.name .. " " .. k, function()
      local r = oracle.random(k)
      for _ = 1, 150 do
        local args = l.args(r)
        local got, want = cute[l.name](table.unpack(args)),
                          l.want(table.unpack(args))
        if text(got) ~= text(want) then complain(l, args, got, want) end
      end
    end)
  end

  -- Traced numbers are arguments of the kernel.
  it("the same with traced numbers", function()
    local LOW, HIGH = -3, 9
    local cases, pool = {}, {}
    for v = LOW, HIGH do pool[#pool + 1] = v end
    for k, l in ipairs(law) do
      local r = oracle.random(100 + k)
      for _ = 1, l.numbers[1] and 12 or 0 do
        local args = l.args(r)
        cases[#cases + 1] = {l = l, args = args, seed = r:below(1000),
                             want = leaves(l.want(table.unpack(args)))}
      end
    end
    local n = 0
    for _, c in ipairs(cases) do n = n + #c.want end
    local out = cute.zeros({n}, cute.i32)
    cute.kernel("laws", function(mOut, ...)
      local traced, at = {...}, 0
      for _, c in ipairs(cases) do
        local r, args = oracle.random(c.seed), {table.unpack(c.args)}
        for _, i in ipairs(c.l.numbers) do
          args[i] = args[i] and map(function(x)
            local v = x <= HIGH and traced[x - LOW + 1]
            return v and r:below(3) > 0 and v or x
          end, args[i])
        end
        local got = leaves(cute[c.l.name](table.unpack(args)))
        if #got ~= #c.want then complain(c.l, c.args, #got, #c.want) end
        for _, v in ipairs(got) do
          mOut[at] = v
          at = at + 1
        end
      end
    end)(out, table.unpack(pool)):launch {grid = 1, block = 1,
                                          device = "sim:sm_90a"}
    local at = 0
    for _, c in ipairs(cases) do
      for _, w in ipairs(c.want) do
        if out[at] ~= w then complain(c.l, c.args, out[at], w) end
        at = at + 1
      end
    end
  end)
end)
-- SPDX-License-Identifier: MIT
