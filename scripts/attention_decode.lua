-- Attention with one query per sequence, as in text generation.
--
-- Reading the keys and values takes nearly all of the time. With one block per
-- head, most of a GPU would be idle, so the keys of all heads are divided
-- equally among the blocks. Each block stores weighted sums of values and the
-- scale of the weights. A second kernel combines these. Heads that share keys
-- are rows of one tile, so that shared keys are read once.
--   cutelua scripts/attention_decode.lua --help
local oracle = require "cutelua.bench.oracle"
local decode = require "kernels.attention_decode"

-- Returns the kernels, and a plan with the numbers of blocks and parts.
local function made(p)
  local k = decode {head = p.d, group = p.h // p.g}
  return k, k.plan(p.t, 1, p.h, p.b)
end

require "cutelua.bench.harness".run(arg, {
  about = "Attention of one query to many keys.",
  dims = {{"b", "sequences"}, {"t", "keys"}, {"h", "heads of q"},
          {"g", "heads of k and v, a divisor of h"},
          {"d", "elements of a head: 32, 64, 96, 128, 192, 256"}},
  dtypes = {"bf16", "f16"},
  sim = {{2, 300, 4, 2, 64}},
  gpu = {{1, 65536, 32, 8, 128}, {16, 8192, 32, 8, 128},
         {64, 4096, 32, 32, 128}},
  operands = function(p)
    local q, k, l, n = {p.b, 1, p.h, p.d}, {p.b, p.t, p.g, p.d}, made(p)
    return {{"q", q}, {"k", k}, {"v", k}, {"o", q, out = true},
            {"lse", {p.b, p.h, 1}, dtype = "f32", out = true},
            -- The kernel does not write all elements, so the tensor is filled
            -- first.
            {"parts", {n.slots, l.rows, p.d}, dtype = "f32", fill = "zero",
             scratch = true},
            {"logs", {n.slots, l.rows}, dtype = "f32", fill = "zero",
             scratch = true}}
  end,
  make = function(p)
    local k, n = made(p)
    local launches = {}
    for i, l in ipairs(k) do
      launches[i] = {kernel = l.kernel, grid = l.grid(n, 1, p.h, p.b),
        block = l.block, args = {"q", "k", "v", "o", "lse", "parts", "logs",
                                 1 / math.sqrt(p.d)}}
    end
    return launches
  end,
  pieces = function(p) return p.b * p.h end,
  look = 1 << 10,
  tolerance = {bf16 = 2e-2, f16 = 3e-3, f32 = 1e-5},
  reference = function(p, i) return oracle.attention(p, i) end,
})
-- SPDX-License-Identifier: MIT
