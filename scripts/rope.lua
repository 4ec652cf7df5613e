-- Rotary position embedding: rotates pairs of each head's elements by angles
-- that are proportional to the token's position.
--
-- A thread rotates a vector of pairs. It loads 16 bytes from each half of a
-- head (or of adjacent elements with --interleaved), and the cosines and sines
-- of the angles. The cosines and sines of all angles are a small table that
-- stays in the caches. The mapping of vectors to threads is computed from
-- numbers that are known at trace time.
--   cutelua scripts/rope.lua --help
local cute = require "cute"
local rope = require "kernels.rope"

-- Returns a function that fills a buffer with f(angle) for every position and
-- pair.
local function table_of(p, f)
  local half = p.d // 2
  return function(b)
    for i = 0, #b - 1 do b[i] = f(i // half * 10000.0 ^ -(i % half / half)) end
    return b
  end
end

require "cutelua.bench.harness".run(arg, {
  about = "Rotary position embedding of heads.",
  dims = {{"m", "tokens"}, {"h", "heads"}, {"d", "elements of a head"},
          {"q", "positions; token i is at i % q"}},
  dtypes = {"bf16", "f16", "f32"},
  options = {{"--interleaved", "flag", help = "rotates pairs of neighbours"},
             {"--inverse", "flag", help = "rotates back"},
             {"--at", "flag", help = "positions come from a list"}},
  sim = {{60, 4, 64, 40}},
  gpu = {{65536, 32, 128, 4096}, {65536, 64, 64, 8192}},
  operands = function(p)
    local all, angles = {p.m, p.h, p.d}, {p.q, p.d // 2}
    return {{"x", all},
            {"cos", angles, dtype = "f32", fill = table_of(p, math.cos)},
            {"sin", angles, dtype = "f32", fill = table_of(p, math.sin)},
            {"y", all, out = true},
            p.opt.at and {"at", {p.m}, dtype = "i32", fill = {0, p.q - 1}}
              or nil}
  end,
  make = function(p)
    return rope {dtype = cute[p.dtype], m = p.m, heads = p.h, d = p.d,
                 positions = p.q, interleaved = p.opt.interleaved,
                 inverse = p.opt.inverse, at = p.opt.at}
  end,
  pieces = function(p) return p.m * p.h end,
  reference = function(p, i)
    local half, y = p.d // 2, {}
    local token = i // p.h
    local place = p.at and p.at[token] or token % p.q
    for j = 0, half - 1 do
      local a, b = j, j + half
      if p.opt.interleaved then a, b = 2 * j, 2 * j + 1 end
      local c, s = p.cos[place * half + j], p.sin[place * half + j]
      if p.opt.inverse then s = -s end
      local u, v = p.x[i * p.d + a], p.x[i * p.d + b]
      y[a + 1], y[b + 1] = u * c - v * s, v * c + u * s
    end
    return {y = y}
  end,
})
-- SPDX-License-Identifier: MIT
