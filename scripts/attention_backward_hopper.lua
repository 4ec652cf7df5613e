-- The gradients of attention for Hopper: five products instead of seven.
--
-- In attention_backward.lua two kernels recompute the weights, one for dQ and
-- one for dK and dV. Here one kernel computes all three, and each block has a
-- tile of keys. Blocks add their parts of dQ to sums in global memory, by TMA.
-- The blocks that add to the same rows do so in a fixed order, so the results
-- are deterministic.
--   cutelua scripts/attention_backward_hopper.lua --help
local attention_bwd = require "kernels.attention_bwd_sm90"
local oracle = require "cutelua.bench.oracle"

-- Fills a buffer with a number close to the logarithm of a row's sum of t
-- exponentials.
local function like_lse(p)
  return function(b) return b:fill(math.log(p.t) + 0.5) end
end

local function kernels(p)
  local o = {head = p.d, causal = p.opt.causal, dtype = p.dtype,
             deterministic = not p.opt["any-order"], splits = p.opt.splits}
  if p.opt["by-size"] then
    o.rows, o.keys, o.heads, o.group = p.s, p.t, p.g * p.b, p.h // p.g
    o.sms = 132
  end
  return attention_bwd(o)
end

-- For each launch, the operands from which its kernel arguments are created.
local NAMES = {{"o", "dout", "lse", "logs", "delta", "sums", "turns"},
  {"q", "q", "k", "k", "v", "v", "dout", "dout", "dk", "dk", "dv", "dv", "sums",
   "sums", "sums", "sums", "logs", "delta", "logs", "logs", "turns", "parts"},
  {"sums", "dq", "sums"}, {"parts", "dk", "dv", "parts"}}

-- Returns the list of kernel arguments of launch i. Each is an operand's name,
-- and a function that creates the argument from the operand.
local function arguments(p, k, i)
  local function all()
    local t = p.tensors
    return k.arguments(i, {Q = t.q, K = t.k, V = t.v, O = t.o, dO = t.dout,
      LSE = t.lse, dQ = t.dq, dK = t.dk, dV = t.dv}, 1 / math.sqrt(p.d), t)
  end
  local list = {n = all().n}
  for j = 1, list.n do
    local name = NAMES[i][j]
    -- Without --splits, there is no operand "parts".
    if p.tensors[name] then
      list[j] = {name, function() return all()[j] end}
    end
  end
  return list
end

require "cutelua.bench.harness".run(arg, {
  about = "Attention backward on wgmma and TMA (sm_90a): dq, dk and dv.",
  dims = {{"b", "batches"}, {"s", "rows of q"}, {"t", "keys"},
          {"h", "heads of q"}, {"g", "heads of k and v, a divisor of h"},
          {"d", "elements of a head: 64, 96, 128, 192, 256"}},
  dtypes = {"bf16", "f16"},
  options = {{"--causal", "flag", help = "a row sees the keys up to its own"},
             {"--any-order", "flag", help = "blocks add to dQ in any order"},
             {"--splits", "int", min = 1,
              help = "blocks that share the heads of q of a head of k"},
             {"--by-size", "flag",
              help = "chooses the tile and --splits for an H200"}},
  sim = {{1, 70, 80, 2, 1, 64}},
  gpu = {{4, 4096, 4096, 32, 32, 64}, {4, 4096, 4096, 16, 16, 128},
         {4, 4096, 4096, 8, 8, 256}},
  operands = function(p)
    local q, k = {p.b, p.s, p.h, p.d}, {p.b, p.t, p.g, p.d}
    local n = kernels(p).sizes(p.s, p.t, p.h, p.g, p.b)
    local list = {{"q", q}, {"k", k}, {"v", k}, {"o", q}, {"dout", q},
            {"lse", {p.b, p.h, p.s}, dtype = "f32", fill = like_lse(p)},
            {"sums", {n.sums}, dtype = "f32", scratch = true},
            {"logs", {n.logs}, dtype = "f32", scratch = true},
            {"delta", {n.delta}, dtype = "f32", scratch = true},
            {"turns", {n.turns}, dtype = "i32", scratch = true},
            {"dq", q, out = true}, {"dk", k, out = true},
            {"dv", k, out = true}}
    if n.parts > 0 then
      list[#list + 1] = {"parts", {n.parts}, dtype = "f32", scratch = true}
    end
    return list
  end,
  make = function(p)
    local k, launches = kernels(p), {}
    for i, s in ipairs(k.launches(p.s, p.t, p.h, p.g, p.b)) do
      launches[i] = {kernel = s.kernel, block = s.block, grid = s.grid,
                     args = arguments(p, k, i)}
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
