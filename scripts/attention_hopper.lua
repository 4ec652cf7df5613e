-- Attention for Hopper: softmax runs in parallel with the tensor cores.
--
-- In attention.lua a warp either multiplies or computes exponentials. Here
-- wgmma multiplies asynchronously. A warpgroup issues two products: the scores
-- of the next keys, and the product of finished exponentials with V. It
-- computes exponentials at the same time. Two or three warpgroups alternate, so
-- that the tensor cores are always busy. One thread loads keys and values by
-- TMA.
--   cutelua scripts/attention_hopper.lua --help
local attention = require "kernels.attention_sm90"
local oracle = require "cutelua.bench.oracle"

-- Returns the kernel arguments. q, k, v and o are passed as TMA atoms with
-- tensors of coordinates.
local function arguments(p, k)
  local list = {n = 11}
  for i, name in ipairs {"q", "k", "v", "o"} do
    local function atom(t) return (k.map(name, t)) end
    local function coords(t) return select(2, k.map(name, t)) end
    list[2 * i - 1], list[2 * i] = {name, atom}, {name, coords}
  end
  list[9], list[10] = "lse", 1 / math.sqrt(p.d)
  list[11] = {"counter", function(counter)
    return k.share(p.tensors.q, p.tensors.k, counter)
  end}
  return list
end

require "cutelua.bench.harness".run(arg, {
  about = "Attention forward on wgmma and TMA (sm_90a).",
  dims = {{"b", "batches"}, {"s", "rows of q"}, {"t", "keys"},
          {"h", "heads of q"}, {"g", "heads of k and v, a divisor of h"},
          {"d", "elements of a head: 64, 96, 128, 192, 256"}},
  dtypes = {"bf16", "f16"},
  options = {{"--causal", "flag", help = "a row sees the keys up to its own"}},
  sim = {{1, 130, 130, 2, 1, 64}},
  gpu = {{4, 4096, 4096, 32, 32, 64}, {4, 4096, 4096, 16, 16, 128},
         {4, 4096, 4096, 8, 8, 256}},
  operands = function(p)
    local q, k = {p.b, p.s, p.h, p.d}, {p.b, p.t, p.g, p.d}
    return {{"q", q}, {"k", k}, {"v", k}, {"o", q, out = true},
            {"lse", {p.b, p.h, p.s}, dtype = "f32", out = true},
            {"counter", {1}, dtype = "i32", fill = "zero", scratch = true}}
  end,
  make = function(p)
    local k = attention {head = p.d, causal = p.opt.causal, dtype = p.dtype,
                         rows = p.s}
    return {kernel = k.kernel, grid = k.grid(p.s, p.h, p.b), block = k.block,
            args = arguments(p, k)}
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
