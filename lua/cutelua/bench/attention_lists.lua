--- Computes attention and its gradients by their formulas, in double precision,
-- on lists indexed from 0. ops.reference and the specs use it. gemm_reference
-- computes matrix products on the host; plain Lua computes everything else.
--
-- The fields of a problem p:
-- b, s, t       the numbers of batches, rows of Q and keys
-- h, g, d       the numbers of heads of Q, heads of K and V, and elements of a
--               head
-- q, k, v, go   lists of the elements of Q (b,s,h,d), K, V (b,t,g,d) and dO
-- scale         the factor of the scores
-- left, right   the numbers of keys that a row sees before and after its own
--               position; nil: all
-- modify        optional: modify(score, batch, head, row, key) returns the
--               score to use instead
-- sinks         optional: a list of one number for each head; e^number is added
--               to the sum of each row of the head
local core = require "cute.core"

local lists = {}

-- Returns the first and last key that row i attends to.
local function sees(p, i)
  local at = i + p.t - p.s
  return math.max(0, p.left and at - p.left or 0),
         math.min(p.t - 1, p.right and at + p.right or p.t - 1)
end

-- Returns the index of row s of head h in batch b. Each batch has `rows` rows
-- of n heads.
local function place(rows, n, b, s, h) return (b * rows + s) * n + h end

-- Returns a list of n zeros, indexed from 0.
local function zeros(n)
  local list = {}
  for i = 0, n - 1 do list[i] = 0.0 end
  return list
end

-- Returns A B^T (m,n) as a list. A (m,k) and B (n,k) are lists. All three are
-- indexed from 1.
local function product(a, b, m, n, k, strides)
  return core.gemm_reference(core.buffer_from("f64", a),
    core.buffer_from("f64", b), core.buffer("f64", m * n), m, n, k,
    strides):list()
end

-- Reports whether a list has an infinity or NaN.
local function has_odd(list)
  for _, v in ipairs(list) do
    if v - v ~= 0 then return true end
  end
  return false
end

-- Adds W X to m rows of the list `to`; row i begins at index at(i). W (m,n) and
-- X (n,d) are lists indexed from 1; if `turned` is true, `w` is the transpose
-- of W. A zero in W adds nothing, even if its row of X contains infinities or
-- NaN.
local function add_product(to, at, w, x, m, n, d, turned)
  local strides = {a = turned and {1, m} or nil, b = {1, d}}
  local sums, odd = product(w, x, m, d, n, strides), {}
  if has_odd(sums) then
    local finite = table.move(x, 1, #x, 1, {})
    for i, v in ipairs(x) do
      if v - v ~= 0 then odd[#odd + 1], finite[i] = i, 0.0 end
    end
    sums = product(w, finite, m, d, n, strides)
  end
  for i = 0, m - 1 do
    local row, from = at(i), i * d + 1
    for e = 0, d - 1 do to[row + e] = to[row + e] + sums[from + e] end
    for _, o in ipairs(odd) do
      local r, e = (o - 1) // d, (o - 1) % d
      local factor = w[turned and r * m + i + 1 or i * n + r + 1]
      if factor ~= 0 then to[row + e] = to[row + e] + factor * x[o] end
    end
  end
end

local STEP = 1e-5  -- step of the difference quotients of p.modify
local ROWS = 128   -- rows of Q in a block; limits the memory for weights

-- Returns the slope of p.modify at score x of row i of head h, and key j.
local function slope(p, x, b, h, i, j)
  return (p.modify(x + STEP, b, h, i, j) - p.modify(x - STEP, b, h, i, j))
    / 2 / STEP
end

-- Replaces the scores of row i of head h by weights: w[base + j] belongs to key
-- j. If p.modify and `slopes` are given, stores the slopes of p.modify in
-- `slopes`. Returns the row's LSE, the logarithm of the sum of exponentials.
local function weigh(p, w, slopes, base, b, h, i)
  local first, last = sees(p, i)
  local sink = p.sinks and p.sinks[h + 1] or -math.huge
  local most, sum, exp = sink, 0.0, math.exp
  for j = base, base + first - 1 do w[j] = 0.0 end
  for j = base + last + 1, base + p.t - 1 do w[j] = 0.0 end
  first, last = base + first, base + last
  for j = first, p.modify and last or first - 1 do
    local x = w[j]
    w[j] = p.modify(x, b, h, i, j - base)
    if slopes then slopes[j] = slope(p, x, b, h, i, j - base) end
  end
  for j = first, last do
    if w[j] > most then most = w[j] end
  end
  for j = first, last do
    local x = most > -math.huge and exp(w[j] - most) or 0.0
    w[j], sum = x, sum + x
  end
  if sink > -math.huge then sum = sum + exp(sink - most) end
  for j = first, last do w[j] = sum > 0 and w[j] / sum or 0.0 end
  return most + math.log(sum)
end

-- Calls f once for each block of rows of a head of Q, with a table of these
-- fields:
--   m           the number of rows
--   number      the index of the first row in LSE
--   w           weights (m,t), a list from 1
--   slopes      slopes of p.modify (m,t), if the argument `slopes` is true
--   lse         the rows' LSE, a list from 0
--   at(i)       the index of row i in Q
--   key(j)      the index of key j in K
--   rows(list)  returns the block's rows of a list ordered like Q, from 1
--   keys(list)  returns the head's keys of a list ordered like K, from 1
local function each_block(p, slopes, f)
  local d = p.d
  local function taken(list, n, index)
    local rows = {}
    for i = 0, n - 1 do
      local from = index(i)
      table.move(list, from, from + d - 1, i * d + 1, rows)
    end
    return rows
  end
  for b = 0, p.b - 1 do
    for h = 0, p.h - 1 do
      local g = h // (p.h // p.g)
      local function key(j) return place(p.t, p.g, b, j, g) * d end
      for first = 0, p.s - 1, ROWS do
        local m = math.min(ROWS, p.s - first)
        local function at(i) return place(p.s, p.h, b, first + i, h) * d end
        local o = {m = m, w = {}, lse = {}, slopes = slopes and p.modify and {},
          number = (b * p.h + h) * p.s + first, at = at, key = key,
          rows = function(list) return taken(list, m, at) end,
          keys = function(list) return taken(list, p.t, key) end}
        local scores = product(o.rows(p.q), o.keys(p.k), m, p.t, d)
        for i, x in ipairs(scores) do o.w[i] = x * p.scale end
        for i = 0, m - 1 do
          o.lse[i] = weigh(p, o.w, o.slopes, i * p.t + 1, b, h, first + i)
        end
        f(o)
      end
    end
  end
end

--- Returns O and LSE as lists indexed from 0, in the order of the tensors.
function lists.forward(p)
  local out, lse = zeros(p.b * p.s * p.h * p.d), {}
  each_block(p, false, function(o)
    table.move(o.lse, 0, o.m - 1, o.number, lse)
    add_product(out, o.at, o.w, o.keys(p.v), o.m, p.t, p.d)
  end)
  return out, lse
end

-- Returns the gradients of a block's scores, without the factor p.scale, as a
-- list indexed from 1. A score of weight 0 has gradient 0.
local function score_gradients(p, o, go)
  local dp, ds, w = product(go, o.keys(p.v), o.m, p.t, p.d), {}, o.w
  for i = 0, o.m - 1 do
    local base, mean = i * p.t + 1, 0.0
    for j = base, base + p.t - 1 do
      if w[j] ~= 0 then mean = mean + w[j] * dp[j] end
    end
    for j = base, base + p.t - 1 do
      ds[j] = w[j] ~= 0 and w[j] * (dp[j] - mean)
        * (o.slopes and o.slopes[j] or 1.0) or 0.0
    end
  end
  return ds
end

--- Returns the gradients of sum(O dO) with respect to Q, K and V, as lists
-- indexed from 0.
function lists.backward(p)
  local n, keys, d = p.b * p.s * p.h * p.d, p.b * p.t * p.g * p.d, p.d
  local dq, dk, dv = zeros(n), zeros(keys), zeros(keys)
  each_block(p, true, function(o)
    local go = o.rows(p.go)
    local ds = score_gradients(p, o, go)
    for i, x in ipairs(ds) do ds[i] = x * p.scale end
    add_product(dv, o.key, o.w, go, p.t, o.m, d, true)
    add_product(dq, o.at, ds, o.keys(p.k), o.m, p.t, d)
    add_product(dk, o.key, ds, o.rows(p.q), p.t, o.m, d, true)
  end)
  return dq, dk, dv
end

return lists
-- SPDX-License-Identifier: MIT
