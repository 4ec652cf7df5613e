-- The sum of all elements, bitwise reproducible.
--
-- The grid has as many blocks as fit on the GPU. They read the tensor with
-- 16-byte loads, several in flight at once, and each block stores one partial
-- sum. An atomic counter determines the last block. The atomic has acquire and
-- release semantics, so the last block sees all partial sums. It adds them in
-- the order of the blocks, so the sum is deterministic. The speed is 1.07 of
-- the driver's copy, which also writes, on an H200.
--   cutelua scripts/reduce.lua --help
local core = require "cute.core"
local cute = require "cute"
local reduce = require "kernels.reduce"

local function sum(p)
  return reduce.all {op = "sum", n = p.n, dtype = cute[p.dtype]}
end

-- Computes the sum in double precision, by matrix-vector products: each piece
-- of x, as a matrix, times a vector of ones.
local function in_double(x)
  local m, k, total = 1024, 4096, 0
  local piece, ones = core.buffer(x.dtype, m * k), core.buffer(x.dtype, k)
  local sums, whole = core.buffer("f64", m), #x - #x % (m * k)
  ones:fill(1)
  for at = 0, whole - 1, m * k do
    piece:copy(x, 0, at, m * k)
    core.gemm_reference(piece, ones, sums, m, 1, k)
    for i = 0, m - 1 do total = total + sums[i] end
  end
  for i = whole, #x - 1 do total = total + x[i] end
  return total
end

require "cutelua.bench.harness".run(arg, {
  about = "The sum of all elements of a tensor.",
  dims = {{"n", "elements"}},
  dtypes = {"f32", "bf16", "f16"},
  sim = {{100000}}, gpu = {{1 << 30}},
  operands = function(p)
    return {{"x", {p.n}}, {"y", {1}, dtype = "f32", out = true},
            {"parts", {sum(p).grid}, dtype = "f32", scratch = true},
            {"tickets", {1}, dtype = "u32", scratch = true, fill = "zero"}}
  end,
  make = sum,
  -- The sum of n normally distributed numbers is about sqrt(n), which is small
  -- compared with the sum of their magnitudes.
  tolerance = {f32 = 1e-3},
  reference = function(p)
    p.sum = p.sum or in_double(p.x)
    return {y = {p.sum}}
  end,
})
-- SPDX-License-Identifier: MIT
