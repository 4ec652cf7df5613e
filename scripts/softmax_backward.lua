-- Softmax backward: dx = y (dy - sum(y dy)). The input is y, not x.
--
-- Each y depends on all x of its row, but the gradient needs no matrix: all
-- elements of a row share one sum. Two tensors are read and one is written,
-- each once. The rows of y and dy stay in registers until the sum is complete.
--   cutelua scripts/softmax_backward.lua --help
local cute = require "cute"
local softmax = require "kernels.softmax"

require "cutelua.bench.harness".run(arg, {
  about = "The gradient of softmax along rows.",
  dims = {{"rows", "rows of y"}, {"n", "elements of a row"}},
  dtypes = {"bf16", "f16", "f32"},
  sim = {{16, 1000}},
  gpu = {{262144, 1024}, {65536, 4096}, {32768, 8192}},
  operands = function(p)
    local all = {p.rows, p.n}
    return {{"y", all}, {"dy", all}, {"dx", all, out = true}}
  end,
  make = function(p)
    return softmax {dtype = cute[p.dtype], n = p.n, backward = true}
  end,
  pieces = function(p) return p.rows end,
  tolerance = {bf16 = 8e-3, f16 = 2e-3, f32 = 3e-5},
  reference = function(p, row)
    local y, dy, dx, at, dot = p.y, p.dy, {}, row * p.n - 1, 0
    for i = 1, p.n do dot = dot + y[at + i] * dy[at + i] end
    for i = 1, p.n do dx[i] = y[at + i] * (dy[at + i] - dot) end
    return {dx = dx}
  end,
})
-- SPDX-License-Identifier: MIT
