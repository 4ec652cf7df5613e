--- Helpers for specs of attention: they make problems, and compute attention
-- and its gradients in plain Lua, in double precision.
local core = require "cute.core"
local cute = require "cute"
local support = require "spec.support"

local attention = {}

local text = {}

-- Returns kernels/`file`.lua with the nth `from` replaced by `to`, as a chunk.
local function changed_chunk(file, from, nth, to)
  local path = ("kernels/%s.lua"):format(file)
  text[path] = text[path] or support.read(path)
  return assert(load(support.change(text[path], from, nth, to or ""),
                     "@" .. path))
end

--- Returns the function that kernels/`user`.lua exports, after the nth `from`
-- in kernels/`file`.lua is replaced by `to`.
function attention.changed(user, file, from, nth, to)
  local name, kept = "kernels." .. file:gsub("/", "."), {}
  local function is_changed(module)
    return module == "kernels.flash" or module:find("kernels." .. user, 1, true)
  end
  for module, it in pairs(package.loaded) do
    if is_changed(module) then kept[module] = it end
  end
  for module in pairs(kept) do package.loaded[module] = nil end
  package.preload[name] = changed_chunk(file, from, nth, to)
  local ok, make = pcall(require, "kernels." .. user)
  package.preload[name] = nil
  for module in pairs(package.loaded) do
    if is_changed(module) then package.loaded[module] = kept[module] end
  end
  for module, it in pairs(kept) do package.loaded[module] = it end
  return assert(ok and make, make)
end

--- Describes a text change for a test's title.
function attention.title(f)
  return ("%s: %s (%d)%s"):format(f[1], f[2], f[3],
                                  f[4] and " is " .. f[4] or " left out")
end

-- Returns a tensor of normal numbers, and its elements as a list from 0.
local function normal(shape, dtype, seed)
  local t = cute.zeros(shape, dtype)
  local b = core.param_memory(t):fill_normal(seed)
  local list = {}
  for i = 0, #b - 1 do list[i] = b[i] end
  return t, list
end

--- Returns the tensors of a problem: Q, O, dO, dQ (b,s,h,d), K, V, dK, dV
-- (b,t,g,d), LSE and delta (b,h,s); and the elements of the inputs as lists.
---@param o {b: integer?, s: integer, t: integer?, h: integer?, g: integer?,
-- d: integer, dtype: any?, left: integer?, right: integer?, seed: integer?}
-- The field `modify` of the result may be set to a function (score, batch,
-- head, row, key) that returns another score, `sinks` to a list of numbers, one
-- for each head, whose powers are added to the sums of rows.
function attention.problem(o)
  local p = {b = o.b or 1, s = o.s, t = o.t or o.s, h = o.h or 1,
             g = o.g or o.h or 1, d = o.d, left = o.left, right = o.right,
             scale = 1 / math.sqrt(o.d), dtype = o.dtype or cute.bf16}
  local rows, keys = {p.b, p.s, p.h, p.d}, {p.b, p.t, p.g, p.d}
  local seed = o.seed or 1
  p.Q, p.q = normal(rows, p.dtype, seed)
  p.K, p.k = normal(keys, p.dtype, seed + 1)
  p.V, p.v = normal(keys, p.dtype, seed + 2)
  p.dO, p.go = normal(rows, p.dtype, seed + 3)
  p.dQ, p.dK = cute.full(rows, 0 / 0, p.dtype), cute.full(keys, 0 / 0, p.dtype)
  p.dV = cute.full(keys, 0 / 0, p.dtype)
  p.delta = cute.full({p.b, p.h, p.s}, 0 / 0, cute.f32)
  p.O = cute.full(rows, 0 / 0, p.dtype)
  p.LSE = cute.full({p.b, p.h, p.s}, 0 / 0, cute.f32)
  return p
end

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
function attention.forward(p)
  local o, lse = zeros(#p.q + 1), {}
  each_row(p, function(r, at, w, first, last, key, log)
    lse[r] = log
    for j = first, last do add(o, at, w[j], p.v, key(j), p.d) end
  end)
  return o, lse
end

--- Returns the gradients of sum(O dO) with respect to Q, K and V.
function attention.backward(p)
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

--- Returns two measures of how a tensor differs from a list: the RMS of the
-- difference relative to the RMS of the list, and the largest difference of an
-- element. Infinities must be equal; a NaN makes both infinite.
function attention.distance(t, want)
  local b = core.param_memory(t)
  local off, all, most = 0.0, 0.0, 0.0
  for i = 0, #want do
    local got, x = b[i], want[i]
    if got ~= x then
      local e = math.abs(got - x)
      if e ~= e or e == math.huge then return math.huge, math.huge end
      off, most = off + e * e, math.max(most, e)
    end
    if math.abs(x) < math.huge then all = all + x * x end
  end
  if off == 0 then return 0, 0 end
  return math.sqrt(off / all), most / math.sqrt(all / (#want + 1))
end

return attention
-- SPDX-License-Identifier: MIT
