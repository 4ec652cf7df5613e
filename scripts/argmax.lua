-- Argmax: the index of each row's largest element travels with its value.
--
-- A maximum alone is one instruction, but every exchange between lanes or warps
-- must also pass the maximum's index. Numbers are mapped to integers with the
-- same order, so that NaN (the largest) and -0 (equal to 0) need no branch.
-- Among equal elements the smallest index wins, so the result does not depend
-- on the distribution of a row.
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
  look = 1 << 9,  -- rows
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
