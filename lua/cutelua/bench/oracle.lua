--- Reference results that several lessons share, computed on buffers, in plain
-- Lua and double precision: rows of products, rows of attention.
local sign = require "cute.lang.signature"
local oracle = {}

--- Returns n elements of a buffer, starting at index `at`, as a list indexed
-- from 0.
---@param b any
---@param at integer
---@param n integer
function oracle.run(b, at, n)
  local list = {}
  for i = 0, n - 1 do list[i] = b[at + i] end
  return list
end

--- Returns the dot product of a list, indexed from 0, and as many elements of
-- buffer b, starting at index `at`.
function oracle.dot(list, b, at)
  local sum = 0.0
  for i = 0, #list do sum = sum + list[i] * b[at + i] end
  return sum
end

--- Number of columns in a piece of a row. References compute matrices C = A B^T
-- piece by piece.
oracle.PIECE = 32

--- Returns the number of pieces of a matrix (m,n).
function oracle.pieces(m, n)
  return m * ((n + oracle.PIECE - 1) // oracle.PIECE)
end

--- Returns piece i of C (m,n) = A (m,k) B^T: a list of elements, whose field
-- `at` is the index of the first one in C. The rows of B (n,k) that belong to
-- a row of C begin at element from(row). If f is given, f(sum, row, column)
-- takes the place of each sum.
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

--- Returns row i of attention, of b * h * s rows, for operands q (b,s,h,d) and
-- k, v (b,t,g,d); s is 1 when absent. The results are o and lse, the logarithm
-- of the sum of e^(q k / sqrt(d)).
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
    local v = key(j) - 1
    w[j] = math.exp(w[j] - most)
    sum = sum + w[j]
    for c = 1, d do o[c] = o[c] + w[j] * p.v[v + c] end
  end
  for c = 1, d do o[c] = sum > 0 and o[c] / sum or 0.0 end
  return {o = o, lse = {most + math.log(sum)}}
end

return sign.module("cutelua.bench.oracle", oracle)
-- SPDX-License-Identifier: MIT
