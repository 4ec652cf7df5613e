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
local lists = {}

-- Returns the first and last key that row i attends to.
local function sees(p, i)
  local at = i + p.t - p.s
  return math.max(0, p.left and at - p.left or 0),
         math.min(p.t - 1, p.right and at + p.right or p.t - 1)
end

-- Returns the offset of row s of head h in batch b, if each batch has `rows`
-- rows of n heads.
local function place(p, rows, n, b, s, h)
  return ((b * rows + s) * n + h) * p.d
end

local function dot(x, at, y, from, d)
  local sum = 0.0
  for i = 0, d - 1 do sum = sum + x[at + i] * y[from + i] end
  return sum
end

local function add(to, at, w, x, from, d)
  for i = 0, d - 1 do to[at + i] = to[at + i] + w * x[from + i] end
end

local function zeros(n)
  local list = {}
  for i = 0, n - 1 do list[i] = 0.0 end
  return list
end

local STEP = 1e-5  -- step of the difference quotients of p.modify

-- Calls f for each row of Q with the row's number, its offset in Q, its weights
-- by key, its first and last key, a function that returns a key's offset in K,
-- the row's LSE, and the slopes of p.modify by key.
local function each_row(p, f)
  local d = p.d
  for b = 0, p.b - 1 do
    for h = 0, p.h - 1 do
      local g = h // (p.h // p.g)
      local function key(j) return place(p, p.t, p.g, b, j, g) end
      for i = 0, p.s - 1 do
        local at, first, last = place(p, p.s, p.h, b, i, h), sees(p, i)
        local sink = p.sinks and p.sinks[h + 1] or -math.huge
        local most, w, slopes, sum = sink, {}, {}, 0.0
        for j = first, last do
          w[j] = dot(p.q, at, p.k, key(j), d) * p.scale
          if p.modify then
            local function changed(s) return p.modify(s, b, h, i, j) end
            slopes[j] = (changed(w[j] + STEP) - changed(w[j] - STEP)) / 2 / STEP
            w[j] = changed(w[j])
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
          most + math.log(sum), slopes)
      end
    end
  end
end

--- Returns O and LSE as lists from 0, in the order of the tensors.
function lists.forward(p)
  local o, lse = zeros(#p.q + 1), {}
  each_row(p, function(r, at, w, first, last, key, log)
    lse[r] = log
    for j = first, last do add(o, at, w[j], p.v, key(j), p.d) end
  end)
  return o, lse
end

--- Returns the gradients of sum(O dO) with respect to Q, K and V, as lists
-- from 0.
function lists.backward(p)
  local dq, dk, dv = zeros(#p.q + 1), zeros(#p.k + 1), zeros(#p.k + 1)
  each_row(p, function(_, at, w, first, last, key, _, slopes)
    local dp, mean = {}, 0.0
    for j = first, last do
      dp[j] = dot(p.go, at, p.v, key(j), p.d)
      mean = mean + w[j] * dp[j]
      add(dv, key(j), w[j], p.go, at, p.d)
    end
    for j = first, last do
      local ds = w[j] * (dp[j] - mean) * p.scale
      if p.modify and w[j] ~= 0 then ds = ds * slopes[j] end
      add(dq, at, ds, p.k, key(j), p.d)
      add(dk, key(j), ds, p.q, at, p.d)
    end
  end)
  return dq, dk, dv
end

return lists
-- SPDX-License-Identifier: MIT
