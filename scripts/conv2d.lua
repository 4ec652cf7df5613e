-- Convolution as a matrix product: im2col as a layout, without a copy.
--
-- A row is a pixel (q,p,n) of the output, and a column is a tap (c,s,r) of the
-- filter. The layout ((Q,P,N),(C,S,R)) maps each pair to the address of its
-- input element, so a GEMM reads the input in place. cp.async writes 0 for a
-- tap outside the input, where its predicate is false. If C is a multiple of
-- the number of columns of a tile, all columns of the tile belong to one tap.
-- Its rows are then contiguous, as in an ordinary matrix. Taps of the same
-- channels are consecutive, so that they share data in L1.
--   cutelua scripts/conv2d.lua --help
local conv2d = require "kernels.conv2d"
local convolution = require "cutelua.bench.convolution"

local MMA = {bf16 = "SM80_16x8x16_F32BF16BF16F32_TN",
             f16 = "SM80_16x8x16_F32F16F16F32_TN"}

-- Larger tiles read 25 % less data. They are used for filters with several taps
-- if each of 132 SMs gets at least two tiles.
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
