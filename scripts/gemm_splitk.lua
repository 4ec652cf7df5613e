-- A GEMM with few tiles and a long K: several blocks divide K.
--
-- A product of 512x512 has 16 tiles, but a GPU has more than 100 SMs. Here each
-- block computes a part of K. A counter determines the last block of a tile.
-- This block adds the parts in a fixed order, so the result is deterministic.
-- No second kernel is needed. The last block resets the counter for the next
-- launch.
--   cutelua scripts/gemm_splitk.lua --help
local cute = require "cute"
local oracle = require "cutelua.bench.oracle"
local gemm_splitk = require "kernels.gemm_splitk"

local MMA = {bf16 = "SM80_16x8x16_F32BF16BF16F32_TN",
             f16 = "SM80_16x8x16_F32F16F16F32_TN"}

-- Divides K so that the grid has about one block per SM of an H200.
local function made(p)
  local tiles = ((p.m + 127) // 128) * ((p.n + 127) // 128)
  local splits = p.opt.splits or math.max(2, math.min(16, 132 // tiles))
  return gemm_splitk {splits = splits, mma = MMA[p.dtype], rows = true}
end

require "cutelua.bench.harness".run(arg, {
  about = "C = A B^T, K divided among several blocks.",
  dims = {{"m", "rows of A and C"}, {"n", "rows of B, columns of C"},
          {"k", "columns of A and B"}},
  dtypes = {"bf16", "f16"},
  options = {{"--splits", "int", min = 1, max = 64, help = "parts of K"}},
  sim = {{136, 72, 400}},
  gpu = {{512, 512, 16384}, {1024, 512, 8192}, {128, 4096, 8192}},
  operands = function(p)
    local work, turns = made(p).scratch(p.m, p.n)
    return {{"a", {p.m, p.k}}, {"b", {p.n, p.k}}, {"c", {p.m, p.n}, out = true},
            {"work", {cute.size(work)}, dtype = "f32", scratch = true},
            {"turns", {cute.size(turns)}, dtype = "i32", fill = "zero",
             scratch = true}}
  end,
  make = function(p)
    local k = made(p)
    return {kernel = k.kernel, grid = k.grid(p.m, p.n, p.k), block = k.block}
  end,
  flops = function(p) return 2.0 * p.m * p.n * p.k end,
  look = 1 << 10,
  pieces = function(p) return oracle.pieces(p.m, p.n) end,
  reference = function(p, i) return {c = oracle.product(p, i)} end,
})
-- SPDX-License-Identifier: MIT
