-- Attention: the scores never leave the registers.
--
-- Scores are a matrix as large as the square of the sequence; written out and
-- read again they would cost more than their products. A block keeps those of
-- 128 rows and 64 keys at a time, and three numbers a row: what powers are
-- counted from, their sum, and (in the accumulators) the sum of their values.
-- The accumulators of one product lie in a warp as the left operand of the
-- next wants them, so powers go from one to the other without shared memory.
--   cutelua scripts/attention.lua --help
local attention = require "kernels.attention"

-- The row of a matrix (b,s,h,d) in memory that is at (b,s,h).
local function row(buffer, shape, b, s, h)
  local list, d = {}, shape[4]
  local at = ((b * shape[2] + s) * shape[3] + h) * d
  for i = 0, d - 1 do list[i] = buffer[at + i] end
  return list, at
end

local function dot(a, b)
  local sum = 0.0
  for i = 0, #a do sum = sum + a[i] * b[i] end
  return sum
end

-- Row s of head h in batch b: what it sees, weighed.
local function reference(p, i)
  local b, h, s = i // (p.h * p.s), i // p.s % p.h, i % p.s
  local g, qs, ks = h // (p.h // p.g), p.operands.q.shape, p.operands.k.shape
  local q, at = row(p.q, qs, b, s, h)
  local last = p.opt.causal and s + p.t - p.s or p.t - 1
  local most, x = -math.huge, {}
  for j = 0, last do
    x[j] = dot(q, row(p.k, ks, b, j, g)) / math.sqrt(p.d)
    most = math.max(most, x[j])
  end
  local sum, o = 0.0, {at = at}
  for d = 1, p.d do o[d] = 0.0 end
  for j = 0, last do
    local v, w = row(p.v, ks, b, j, g), math.exp(x[j] - most)
    sum = sum + w
    for d = 1, p.d do o[d] = o[d] + w * v[d - 1] end
  end
  for d = 1, p.d do o[d] = sum > 0 and o[d] / sum or 0.0 end
  return {o = o, lse = {most + math.log(sum)}}
end

require "cute.bench.harness".run(arg, {
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
  reference = reference,
  look = 1 << 12,
  tolerance = {bf16 = 2e-2, f16 = 3e-3, f32 = 1e-5},
  flops = function(p)
    local all = 4.0 * p.b * p.h * p.s * p.t * p.d
    return p.opt.causal and all / 2 or all
  end,
})
