-- A histogram: blocks count in shared memory, and add their counts at the end.
--
-- Atomics on one address are serialized. Therefore, each block has several
-- tables in shared memory, and only their sums are added in global memory.
--   cutelua scripts/histogram.lua --help
local cute = require "cute"
local histogram = require "kernels.histogram"

local BINS = 256

require "cutelua.bench.harness".run(arg, {
  about = "The number of occurrences of each byte.",
  dims = {{"n", "bytes"}},
  dtypes = {"u8"},
  sim = {{100000}},
  gpu = {{1 << 25}},
  operands = function(p)
    return {{"x", {p.n}, fill = {0, BINS - 1}},
            {"h", {BINS}, dtype = "i32", fill = "zero", out = true}}
  end,
  make = function(p)
    return histogram {dtype = cute[p.dtype], n = p.n, bins = BINS}
  end,
  pieces = function() return 1 end,
  reference = function(p)
    local h, x = {}, p.x
    for b = 1, BINS do h[b] = p.was.h[b - 1] end
    for i = 0, p.n - 1 do h[x[i] + 1] = h[x[i] + 1] + 1 end
    return {h = h}
  end,
})
-- SPDX-License-Identifier: MIT
