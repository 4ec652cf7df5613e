-- LayerNorm of rows: y = (x - mean) / sqrt(variance + eps) * w + b.
--
-- The formula mean(x^2) - mean^2 for the variance is inaccurate if the mean is
-- large. Here each thread sums the differences from its first number, and their
-- squares. Then the threads' means and squares are merged without loss of
-- accuracy. A row is read only once, and memory traffic determines the time.
--   cutelua scripts/layernorm.lua --help
local cute = require "cute"
local norm = require "kernels.norm"

local EPS = 1e-5

require "cutelua.bench.harness".run(arg, {
  about = "LayerNorm along the rows of a matrix.",
  dims = {{"rows", "rows of x"}, {"n", "elements of a row"}},
  dtypes = {"bf16", "f16", "f32"},
  sim = {{16, 1000}},
  gpu = {{262144, 1024}, {65536, 4096}, {32768, 8192}, {4096, 65536}},
  operands = function(p)
    return {{"x", {p.rows, p.n}}, {"w", {p.n}}, {"b", {p.n}},
            {"y", {p.rows, p.n}, out = true}}
  end,
  make = function(p)
    local k = norm.layer {dtype = cute[p.dtype], n = p.n, weight = true,
                          bias = true}
    return {kernel = k.kernel, grid = k.grid, block = k.block,
            args = {"x", "w", "b", "y", EPS}}
  end,
  pieces = function(p) return p.rows end,
  tolerance = {bf16 = 8e-3, f16 = 2e-3, f32 = 1e-4},
  reference = function(p, row)
    local x, y, at, mean, var = p.x, {}, row * p.n - 1, 0, 0
    for i = 1, p.n do mean = mean + x[at + i] / p.n end
    for i = 1, p.n do var = var + (x[at + i] - mean) ^ 2 / p.n end
    local rstd = 1 / math.sqrt(var + EPS)
    for i = 1, p.n do
      y[i] = (x[at + i] - mean) * rstd * p.w[i - 1] + p.b[i - 1]
    end
    return {y = y}
  end,
})
-- SPDX-License-Identifier: MIT
