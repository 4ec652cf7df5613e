--- Computes reference results that several lessons share: rows of products, of
-- attention and of gradients. It uses buffers, plain Lua and double precision.
local sign = require "cute.lang.signature"
local oracle = {}

--- Returns n elements of a buffer, starting at index `at`, as a list indexed
-- from 0.
---@param b any
---@param at integer
---@param n integer
function oracle.run(b, at, n)
  local list = b:list(at, n)
  table.move(list, 1, n, 0)
  list[n] = nil
  return list
end

--- Returns the dot product of a list, indexed from 0, and as many elements of
-- buffer b, starting at index `at`.
function oracle.dot(list, b, at)
  local sum, other = 0.0, b:list(at, #list + 1)
  for i = 0, #list do sum = sum + list[i] * other[i + 1] end
  return sum
end

local products = {}

--- Returns two functions on lists of d numbers: dot(x, y) returns a dot
-- product, and add(to, w, x) adds w x to `to`. References spend most of their
-- time in these two functions, so their loops are unrolled.
---@param d integer
---@return fun(x: number[], y: number[]): number dot
---@return fun(to: number[], w: number, x: number[]) add
function oracle.products(d)
  if not products[d] then
    local terms, sums = {}, {}
    for i = 1, d do
      terms[i] = ("s = s + x[%d] * y[%d]"):format(i, i)
      sums[i] = ("to[%d] = to[%d] + w * x[%d]"):format(i, i, i)
    end
    products[d] = table.pack(load(("return function(x, y) local s = 0 %s "
      .. "return s end, function(to, w, x) %s end"):format(
        table.concat(terms, "\n"), table.concat(sums, "\n")))())
  end
  return table.unpack(products[d])
end

--- Number of columns in a piece of a row. References compute matrices C = A B^T
-- piece by piece.
oracle.PIECE = 32

--- Returns the number of pieces of a matrix (m,n).
function oracle.pieces(m, n)
  return m * ((n + oracle.PIECE - 1) // oracle.PIECE)
end

--- Returns piece i of C (m,n) = A (m,k) B^T as a list of elements. The list's
-- field `at` is the index of its first element in C. B has n rows of k
-- elements; with `from`, row r of C uses the rows of B from element from(r) on.
-- With f, each sum is replaced by f(sum, row, column).
---@param p {a: any, b: any, n: integer, k: integer}
---@param i integer
---@param f? fun(sum: number, row: integer, column: integer): number
---@param from? fun(row: integer): integer
function oracle.product(p, i, f, from)
  local along = oracle.pieces(1, p.n)
  local row, first = i // along, i % along * oracle.PIECE
  local a, c = oracle.run(p.a, row * p.k, p.k), {at = row * p.n + first}
  local base = from and from(row) or 0
  for j = first, math.min(first + oracle.PIECE, p.n) - 1 do
    local sum = oracle.dot(a, p.b, base + j * p.k)
    c[#c + 1] = f and f(sum, row, j) or sum
  end
  return c
end

--- Returns row i, counted from 0, of the b * h * s rows of attention. The
-- operands are q (b,s,h,d) and k, v (b,t,g,d); s is 1 when absent. The row has
-- two results: o, and lse, the logarithm of the sum of e^(q k / sqrt(d)).
---@param p table
---@param i integer
---@param causal? boolean the row attends only to keys up to its own position
function oracle.attention(p, i, causal)
  local s, d, w = p.s or 1, p.d, {}
  local b, h = i // (p.h * s), i // s % p.h
  local g, at = h // (p.h // p.g), ((b * s + i % s) * p.h + h) * d
  local q, last = oracle.run(p.q, at, d), p.t - 1
  if causal then last = math.min(last, i % s + p.t - s) end
  local function key(j) return ((b * p.t + j) * p.g + g) * d end
  local most, sum, o = -math.huge, 0.0, {at = at}
  for j = 0, last do
    w[j] = oracle.dot(q, p.k, key(j)) / math.sqrt(d)
    most = math.max(most, w[j])
  end
  for c = 1, d do o[c] = 0.0 end
  for j = 0, last do
    local v = p.v:list(key(j), d)
    w[j] = math.exp(w[j] - most)
    sum = sum + w[j]
    for c = 1, d do o[c] = o[c] + w[j] * v[c] end
  end
  for c = 1, d do o[c] = sum > 0 and o[c] / sum or 0.0 end
  return {o = o, lse = {most + math.log(sum)}}
end

-- Returns the weight P and its gradient dS for row i of head h and key j,
-- computed from p.o and p.lse. Also returns the offsets of the row in q and of
-- the key in k.
local function pair(p, causal, b, h, i, j)
  local row = ((b * p.s + i) * p.h + h) * p.d
  local key = ((b * p.t + j) * p.g + h // (p.h // p.g)) * p.d
  if causal and j > i + p.t - p.s then return 0.0, 0.0, row, key end
  local score, dp, delta = 0.0, 0.0, 0.0
  local q, o, dout = p.q:list(row, p.d), p.o:list(row, p.d),
                     p.dout:list(row, p.d)
  local k, v = p.k:list(key, p.d), p.v:list(key, p.d)
  for d, x in ipairs(dout) do
    score = score + q[d] * k[d]
    dp = dp + x * v[d]
    delta = delta + x * o[d]
  end
  local w = math.exp(score / math.sqrt(p.d) - p.lse[(b * p.h + h) * p.s + i])
  return w, w * (dp - delta) / math.sqrt(p.d), row, key
end

local function add(sum, w, x, at)
  for d = 1, #sum do sum[d] = sum[d] + w * x[at + d - 1] end
end

local function zeros(p, at)
  local list = {at = at}
  for d = 1, p.d do list[d] = 0.0 end
  return list
end

-- of_query returns dq of a row. of_key returns dk and dv of a key, which are
-- sums over the rows of all heads that share the key.
local function of_query(p, n, causal)
  local b, h, i = n // (p.h * p.s), n // p.s % p.h, n % p.s
  local dq = zeros(p, ((b * p.s + i) * p.h + h) * p.d)
  for j = 0, p.t - 1 do
    local _, ds, _, key = pair(p, causal, b, h, i, j)
    add(dq, ds, p.k, key)
  end
  return dq
end

local function of_key(p, n, causal)
  local b, g, j = n // (p.g * p.t), n // p.t % p.g, n % p.t
  local at, heads = ((b * p.t + j) * p.g + g) * p.d, p.h // p.g
  local dk, dv = zeros(p, at), zeros(p, at)
  for h = g * heads, (g + 1) * heads - 1 do
    for i = 0, p.s - 1 do
      local w, ds, row = pair(p, causal, b, h, i, j)
      add(dk, ds, p.q, row)
      add(dv, w, p.dout, row)
    end
  end
  return dk, dv
end

--- Returns gradients of attention: dq of one row, dk and dv of one key. Index i
-- selects the row and the key. p has the operands of oracle.attention, its
-- results o and lse, and dout, the gradient of o.
---@param p table
---@param i integer
---@param causal? boolean
function oracle.gradients(p, i, causal)
  local dk, dv = of_key(p, i % (p.b * p.t * p.g), causal)
  return {dq = of_query(p, i % (p.b * p.s * p.h), causal), dk = dk, dv = dv}
end

return sign.module("cutelua.bench.oracle", oracle)
-- SPDX-License-Identifier: MIT
