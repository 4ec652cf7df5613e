-- Convolution as a matrix product: im2col as a layout, not as a copy.
--
-- A pixel (q,p,n) of the output is a row, a tap (c,s,r) of the filter a column.
-- The layout ((Q,P,N),(C,S,R)) gives the address of each pair's input element,
-- so a GEMM reads it in place. A tap outside the input is a 0, which cp.async
-- writes where its predicate is false. If C is a multiple of the tile's
-- columns, a tile has one tap, and its rows are contiguous like those of a
-- plain operand. Taps of the same channels are consecutive, so that L1 still
-- holds the data they share.
--   cutelua scripts/conv2d.lua --help
local conv2d = require "kernels.conv2d"
local convolution = require "cutelua.bench.convolution"

local MMA = {bf16 = "SM80_16x8x16_F32BF16BF16F32_TN",
             f16 = "SM80_16x8x16_F32F16F16F32_TN"}

-- Larger tiles read a quarter less. They are used for filters of several taps,
-- if each of 132 multiprocessors gets at least two tiles.
local LARGE = {tile = {256, 128, 64}, atoms = {4, 2, 1},
               permutation = {64, 32, 16}}

local function make(p)
  local taps, o = convolution.options(p)
  local P, Q = convolution.extents(p)
  o.mma, o.rows = MMA[p.dtype], true
  if taps > 1 and p.n * P * Q * p.k >= 2 * 132 * 256 * 128 then
    for k, v in pairs(LARGE) do o[k] = v end
  end
  local conv = conv2d(o)
  return {kernel = conv.kernel, grid = conv.grid(p.tensors.y),
          block = conv.block}
end

require "cutelua.bench.harness".run(arg, convolution.lesson(
  "2-D convolution, channels last, as an implicit GEMM.", make))
-- SPDX-License-Identifier: MIT
