-- Argmax: the index of each row's largest element.
--
-- A maximum alone needs one instruction, but each exchange between lanes or
-- warps must also pass the index of the maximum. Numbers are mapped to integers
-- that have the same order, so NaN and -0 need no branch. NaN is the largest
-- number, and -0 equals 0. The smallest index is chosen among equal elements,
-- so the result does not depend on how a row is distributed.
--   cutelua scripts/argmax.lua --help
local cute = require "cute"
local argmax = require "kernels.argmax"

require "cutelua.bench.harness".run(arg, {
  about = "The index of each row's largest (or smallest) element.",
  dims = {{"rows", "rows of x"}, {"n", "elements of a row"}},
  dtypes = {"bf16", "f16", "f32"},
  options = {{"--smallest", "flag", help = "finds the smallest elements"}},
  sim = {{16, 1000}},
  gpu = {{262144, 1024}, {65536, 4096}, {32768, 8192}, {4096, 65536}},
  operands = function(p)
    return {{"x", {p.rows, p.n}}, {"i", {p.rows}, dtype = "i32", out = true}}
  end,
  make = function(p)
    return argmax {dtype = cute[p.dtype], n = p.n, smallest = p.opt.smallest}
  end,
  pieces = function(p) return p.rows end,
  look = 1 << 9,  -- number of rows to check
  reference = function(p, row)
    local best, at
    for k = 0, p.n - 1 do
      local v = p.x[row * p.n + k]
      if p.opt.smallest then v = -v end
      if not best or v > best or v ~= v and best == best then
        best, at = v, k
      end
    end
    return {i = {at}}
  end,
})
-- SPDX-License-Identifier: MIT
