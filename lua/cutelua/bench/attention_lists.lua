--- Attention and its gradients by their formulas, in plain Lua and double
-- precision, on lists from 0: for ops.reference, and for specs.
--
-- A problem p has the extents b (batches), s (rows), t (keys), h (heads of Q),
-- g (heads of K and V) and d (elements of a head); the elements of Q (b,s,h,d),
-- K and V (b,t,g,d) as lists q, k, v, and of dO as go; `scale`, the factor of
-- the scores; left and right, the number of keys that a row sees before and
-- after its own position (nil: all). A problem may have modify(score, batch,
-- head, row, key), which returns another score, and `sinks`, a list of numbers,
-- one for each head, whose powers are added to the sums of rows.
local oracle = require "cutelua.bench.oracle"

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

-- Returns rows of d elements as lists from 1. Row 0 has the first d elements of
-- `list`, whose indices begin at 0.
local function rows_of(list, d)
  local rows = {}
  for r = 0, (#list + 1) // d - 1 do
    rows[r] = table.move(list, r * d, r * d + d - 1, 1, {})
  end
  return rows
end

-- Returns n rows of d zeros.
local function zeros(n, d)
  local rows = {}
  for r = 0, n - 1 do
    rows[r] = {}
    for i = 1, d do rows[r][i] = 0.0 end
  end
  return rows
end

-- Returns the elements of n rows as a list from 0.
local function joined(rows, n, d)
  local list = {}
  for r = 0, n - 1 do table.move(rows[r], 1, d, r * d, list) end
  return list
end

local STEP = 1e-5  -- step of the difference quotients of p.modify

-- Calls f for each row of Q with the row's number, its index in Q, its weights
-- by key, its first and last key, a function that returns a key's index in K,
-- the row's LSE and, if `slopes` is true, the slopes of p.modify by key.
local function each_row(p, slopes, f)
  local q, k = rows_of(p.q, p.d), rows_of(p.k, p.d)
  local dot = oracle.products(p.d)
  for b = 0, p.b - 1 do
    for h = 0, p.h - 1 do
      local g = h // (p.h // p.g)
      local function key(j) return place(p.t, p.g, b, j, g) end
      for i = 0, p.s - 1 do
        local at, first, last = place(p.s, p.h, b, i, h), sees(p, i)
        local sink = p.sinks and p.sinks[h + 1] or -math.huge
        local most, w, slope, sum = sink, {}, {}, 0.0
        for j = first, last do
          local x = dot(q[at], k[key(j)]) * p.scale
          w[j] = p.modify and p.modify(x, b, h, i, j) or x
          if slopes and p.modify then
            slope[j] = (p.modify(x + STEP, b, h, i, j)
                        - p.modify(x - STEP, b, h, i, j)) / 2 / STEP
          end
          most = math.max(most, w[j])
        end
        for j = first, last do
          w[j] = most > -math.huge and math.exp(w[j] - most) or 0.0
          sum = sum + w[j]
        end
        if sink > -math.huge then sum = sum + math.exp(sink - most) end
        for j = first, last do w[j] = sum > 0 and w[j] / sum or 0.0 end
        f((b * p.h + h) * p.s + i, at, w, first, last, key,
          most + math.log(sum), slope)
      end
    end
  end
end

--- Returns O and LSE as lists from 0, in the order of the tensors.
function lists.forward(p)
  local n, v, lse = p.b * p.s * p.h, rows_of(p.v, p.d), {}
  local o, _, add = zeros(n, p.d), oracle.products(p.d)
  each_row(p, false, function(r, at, w, first, last, key, log)
    lse[r] = log
    for j = first, last do
      if w[j] ~= 0 then add(o[at], w[j], v[key(j)]) end
    end
  end)
  return joined(o, n, p.d), lse
end

--- Returns the gradients of sum(O dO) with respect to Q, K and V, as lists
-- from 0.
function lists.backward(p)
  local n, m, d = p.b * p.s * p.h, p.b * p.t * p.g, p.d
  local q, k, v = rows_of(p.q, d), rows_of(p.k, d), rows_of(p.v, d)
  local go, dq, dk, dv = rows_of(p.go, d), zeros(n, d), zeros(m, d), zeros(m, d)
  local dot, add = oracle.products(d)
  each_row(p, true, function(_, at, w, first, last, key, _, slopes)
    local dp, mean = {}, 0.0
    for j = first, last do
      if w[j] ~= 0 then
        dp[j] = dot(go[at], v[key(j)])
        mean = mean + w[j] * dp[j]
        add(dv[key(j)], w[j], go[at])
      end
    end
    for j = first, last do
      if w[j] ~= 0 then
        local ds = w[j] * (dp[j] - mean) * p.scale
        if p.modify then ds = ds * slopes[j] end
        add(dq[at], ds, k[key(j)])
        add(dk[key(j)], ds, q[at])
      end
    end
  end)
  return joined(dq, n, d), joined(dk, m, d), joined(dv, m, d)
end

return lists
-- SPDX-License-Identifier: MIT
