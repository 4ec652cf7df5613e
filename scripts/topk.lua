-- The largest elements of rows: a sorted list over the lanes of a warp.
--
-- Most elements are not among the k largest. One comparison with the k-th
-- largest element so far rejects them. The others are sorted 32 at a time by
-- exchanges between lanes, and merged into the list, all in registers.
--   cutelua scripts/topk.lua --help
local cute = require "cute"
local topk = require "kernels.topk"

local K = 8

require "cutelua.bench.harness".run(arg, {
  about = "The " .. K .. " largest elements of each row, and their indices.",
  dims = {{"rows", "rows of x"}, {"n", "elements of a row"}},
  dtypes = {"bf16", "f16", "f32"},
  sim = {{5, 3000}},
  gpu = {{131072, 1024}, {16384, 8192}, {2048, 65535}},
  operands = function(p)
    return {{"x", {p.rows, p.n}}, {"y", {p.rows, K}, out = true},
            {"i", {p.rows, K}, dtype = "i32", out = true}}
  end,
  make = function(p) return topk {dtype = cute[p.dtype], n = p.n, k = K} end,
  pieces = function(p) return p.rows end,
  look = 1 << 12,
  reference = function(p, row)
    local x, at = {}, {}
    for j = 0, p.n - 1 do x[j], at[j + 1] = p.x[row * p.n + j], j end
    table.sort(at, function(a, b)
      return x[a] > x[b] or x[a] == x[b] and a < b
    end)
    local y, i = {}, table.move(at, 1, K, 1, {})
    for j = 1, K do y[j] = x[i[j]] end
    return {y = y, i = i}
  end,
})
-- SPDX-License-Identifier: MIT
