-- Attention: the scores stay in registers.
--
-- The matrix of scores has S x T elements. Its memory traffic would cost more
-- time than the products. Therefore, a block holds only the scores of 128 rows
-- and 64 keys at a time. For each row it also holds the base and the sum of the
-- exponentials. The accumulators hold the weighted sum of the values. A warp's
-- accumulators have the layout of the next product's left operand, so the
-- exponentials do not pass through shared memory.
--   cutelua scripts/attention.lua --help
local oracle = require "cutelua.bench.oracle"
local attention = require "kernels.attention"

require "cutelua.bench.harness".run(arg, {
  about = "Attention forward (FlashAttention 2) on mma.sync.",
  dims = {{"b", "batches"}, {"s", "rows of q"}, {"t", "keys"},
          {"h", "heads of q"}, {"g", "heads of k and v, a divisor of h"},
          {"d", "elements of a head: 32, 64, 96, 128, 192, 256"}},
  dtypes = {"bf16", "f16"},
  options = {{"--causal", "flag", help = "a row sees the keys up to its own"}},
  sim = {{1, 130, 130, 2, 1, 64}},
  gpu = {{4, 4096, 4096, 32, 32, 64}, {4, 4096, 4096, 16, 16, 128},
         {4, 4096, 4096, 8, 8, 256}},
  operands = function(p)
    local q, k = {p.b, p.s, p.h, p.d}, {p.b, p.t, p.g, p.d}
    return {{"q", q}, {"k", k}, {"v", k}, {"o", q, out = true},
            {"lse", {p.b, p.h, p.s}, dtype = "f32", out = true}}
  end,
  make = function(p)
    local k = attention {head = p.d, causal = p.opt.causal}
    return {kernel = k.kernel, grid = k.grid(p.s, p.h, p.b), block = k.block,
            args = {"q", "k", "v", "o", "lse", 1 / math.sqrt(p.d)}}
  end,
  pieces = function(p) return p.b * p.h * p.s end,
  reference = function(p, i) return oracle.attention(p, i, p.opt.causal) end,
  look = 1 << 12,
  tolerance = {bf16 = 2e-2, f16 = 3e-3, f32 = 1e-5},
  flops = function(p)
    local all = 4.0 * p.b * p.h * p.s * p.t * p.d
    return p.opt.causal and all / 2 or all
  end,
})
-- SPDX-License-Identifier: MIT
