-- The gradients of attention: intermediate results are recomputed.
--
-- The forward pass stores lse for each row, the logarithm of the row's sum of
-- exponentials. The backward pass computes the weights P from it:
--   P = e^(QK^T scale - lse), dV = P^T dO, dS = P (dO V^T - delta),
--   dQ = dS K, dK = dS^T Q.
-- One kernel sums dQ over keys. Another kernel sums dK and dV over rows. So
-- each sum belongs to one block, no atomics are needed, and the results are
-- deterministic.
--   cutelua scripts/attention_backward.lua --help
local attention_bwd = require "kernels.attention_bwd"
local oracle = require "cutelua.bench.oracle"

-- Fills a buffer with a number close to the logarithm of a row's sum of t
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
    return oracle.gradients(p, i, p.opt.causal)
  end,
  flops = function(p)
    local all = 10.0 * p.b * p.h * p.s * p.t * p.d
    return p.opt.causal and all / 2 or all
  end,
})
-- SPDX-License-Identifier: MIT
