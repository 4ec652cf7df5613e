-- The gradients of attention: intermediate results are recomputed.
--
-- The forward pass stores one number for each row, the logarithm of its sum of
-- powers. The weights follow from it and the scores: P = e^(QK^T scale - lse).
-- Then dV = P^T dO, dS = P (dO V^T - delta), dQ = dS K, dK = dS^T Q. dQ sums
-- over keys, dK and dV over rows: with a kernel for each, every sum has one
-- owner, no atomics are needed, and results are the same each time.
--   cutelua scripts/attention_backward.lua --help
local attention_bwd = require "kernels.attention_bwd"

-- Returns the weight P and dS of row i of head h and key j, with O and lse as
-- given; also the position of the row in q and of the key in k.
local function pair(p, b, h, i, j)
  local row = ((b * p.s + i) * p.h + h) * p.d
  local key = ((b * p.t + j) * p.g + h // (p.h // p.g)) * p.d
  if p.opt.causal and j > i + p.t - p.s then return 0.0, 0.0, row, key end
  local score, dp, delta = 0.0, 0.0, 0.0
  for d = 0, p.d - 1 do
    local dout = p.dout[row + d]
    score = score + p.q[row + d] * p.k[key + d]
    dp = dp + dout * p.v[key + d]
    delta = delta + dout * p.o[row + d]
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

-- Returns dq of a row, or dk and dv of a key. dk and dv are sums over the rows
-- of all heads that share the key.
local function of_query(p, n)
  local b, h, i = n // (p.h * p.s), n // p.s % p.h, n % p.s
  local dq = zeros(p, ((b * p.s + i) * p.h + h) * p.d)
  for j = 0, p.t - 1 do
    local _, ds, _, key = pair(p, b, h, i, j)
    add(dq, ds, p.k, key)
  end
  return dq
end

local function of_key(p, n)
  local b, g, j = n // (p.g * p.t), n // p.t % p.g, n % p.t
  local at, heads = ((b * p.t + j) * p.g + g) * p.d, p.h // p.g
  local dk, dv = zeros(p, at), zeros(p, at)
  for h = g * heads, (g + 1) * heads - 1 do
    for i = 0, p.s - 1 do
      local w, ds, row = pair(p, b, h, i, j)
      add(dk, ds, p.q, row)
      add(dv, w, p.dout, row)
    end
  end
  return dk, dv
end

-- Fills a buffer with a number near the logarithm of a row's sum of t
-- exponentials.
local function like_lse(p)
  return function(b) return b:fill(math.log(p.t) + 0.5) end
end

require "cutelua.bench.harness".run(arg, {
  about = "Attention backward: dq, dk and dv.",
  dims = {{"b", "batches"}, {"s", "rows of q"}, {"t", "keys"},
          {"h", "heads of q"}, {"g", "heads of k and v, a divisor of h"},
          {"d", "elements of a head: 32, 64, 96, 128, 192, 256"}},
  dtypes = {"bf16", "f16"},
  options = {{"--causal", "flag", help = "a row sees the keys up to its own"}},
  sim = {{1, 70, 80, 2, 1, 64}},
  gpu = {{4, 4096, 4096, 32, 32, 64}, {4, 4096, 4096, 16, 16, 128},
         {4, 4096, 4096, 8, 8, 256}},
  operands = function(p)
    local q, k = {p.b, p.s, p.h, p.d}, {p.b, p.t, p.g, p.d}
    local rows = {p.b, p.h, p.s}
    return {{"q", q}, {"k", k}, {"v", k}, {"o", q}, {"dout", q},
            {"lse", rows, dtype = "f32", fill = like_lse(p)},
            {"delta", rows, dtype = "f32", scratch = true},
            {"dq", q, out = true}, {"dk", k, out = true},
            {"dv", k, out = true}}
  end,
  make = function(p)
    local launches = {}
    for i, k in ipairs(attention_bwd {head = p.d, causal = p.opt.causal}) do
      launches[i] = {kernel = k.kernel, block = k.block,
        grid = k.grid(p.s, p.t, p.h, p.g, p.b),
        args = {"q", "k", "v", "o", "dout", "lse", "delta", "dq", "dk", "dv",
                1 / math.sqrt(p.d)}}
    end
    return launches
  end,
  pieces = function(p) return p.b * math.max(p.s * p.h, p.t * p.g) end,
  look = 1 << 11,
  tolerance = {bf16 = 3e-2, f16 = 5e-3},
  reference = function(p, i)
    local dk, dv = of_key(p, i % (p.b * p.t * p.g))
    return {dq = of_query(p, i % (p.b * p.s * p.h)), dk = dk, dv = dv}
  end,
  flops = function(p)
    local all = 10.0 * p.b * p.h * p.s * p.t * p.d
    return p.opt.causal and all / 2 or all
  end,
})
-- SPDX-License-Identifier: MIT
