-- Convolution as a matrix product: im2col as a layout, not as a copy.
--
-- A pixel (q,p,n) of the output is a row, a tap (c,s,r) of the filter a column.
-- The input element of each pair is at strides, ((Q,P,N),(C,S,R)), so a GEMM
-- reads it in place. A tap outside the input is a 0, which cp.async writes
-- where its predicate is false. If C is a multiple of the tile's columns, a
-- tile has one tap, and its rows are contiguous like those of a plain operand.
-- Taps of the same channels are consecutive, so that L1 still holds the data
-- they share.
--   cutelua scripts/conv2d.lua --help
local conv2d = require "kernels.conv2d"

local MMA = {bf16 = "SM80_16x8x16_F32BF16BF16F32_TN",
             f16 = "SM80_16x8x16_F32F16F16F32_TN"}

local function of(p)
  local o = p.opt
  local taps = o.taps or 3
  return taps, {stride = o.stride or 1, dilation = o.dilation or 1,
                padding = o.padding or taps // 2}
end

-- Larger tiles read a quarter less, and are used for more than one tap, if
-- there are two tiles for each of 132 multiprocessors.
local LARGE = {tile = {256, 128, 64}, atoms = {4, 2, 1},
               permutation = {64, 32, 16}}

-- Returns the height and the width of the output.
local function out(p)
  local taps, o = of(p)
  local function extent(n)
    return (n + 2 * o.padding - o.dilation * (taps - 1) - 1) // o.stride + 1
  end
  return extent(p.h), extent(p.w)
end

require "cutelua.bench.harness".run(arg, {
  about = "2-D convolution, channels last, as an implicit GEMM.",
  dims = {{"n", "images"}, {"h", "rows of an image"}, {"w", "columns"},
          {"c", "channels"}, {"k", "filters"}},
  dtypes = {"bf16", "f16"},
  options = {
    {"--taps", "int", min = 1, help = "rows and columns of a filter (3)"},
    {"--stride", "int", min = 1, help = "stride (1)"},
    {"--padding", "int", min = 0, help = "padding (half of the taps)"},
    {"--dilation", "int", min = 1, help = "dilation (1)"}},
  sim = {{1, 8, 9, 64, 136}},
  gpu = {{32, 56, 56, 128, 128}, {128, 56, 56, 128, 128},
         {32, 28, 28, 256, 256}},
  operands = function(p)
    local taps, P, Q = of(p), out(p)
    return {{"x", {p.n, p.h, p.w, p.c}}, {"f", {p.k, taps, taps, p.c}},
            {"y", {p.n, P, Q, p.k}, out = true}}
  end,
  make = function(p)
    local taps, o = of(p)
    local P, Q = out(p)
    o.mma, o.rows = MMA[p.dtype], true
    if taps > 1 and p.n * P * Q * p.k >= 2 * 132 * 256 * 128 then
      for k, v in pairs(LARGE) do o[k] = v end
    end
    local conv = conv2d(o)
    return {kernel = conv.kernel, grid = conv.grid(p.tensors.y),
            block = conv.block}
  end,
  flops = function(p)
    local taps, P, Q = of(p), out(p)
    return 2.0 * p.n * P * Q * p.k * p.c * taps * taps
  end,
  look = 1 << 13,
  pieces = function(p)  -- a piece to check is one pixel of y
    local P, Q = out(p)
    return p.n * P * Q
  end,
  reference = function(p, pixel)
    local taps, o = of(p)
    local P, Q = out(p)
    local n, i, j = pixel // (P * Q), pixel // Q % P, pixel % Q
    local y = {}
    for k = 1, p.k do y[k] = 0.0 end
    for r = 0, taps - 1 do
      for s = 0, taps - 1 do
        local h = i * o.stride + r * o.dilation - o.padding
        local w = j * o.stride + s * o.dilation - o.padding
        local inside = h >= 0 and h < p.h and w >= 0 and w < p.w
        local at = ((n * p.h + h) * p.w + w) * p.c
        for c = 0, inside and p.c - 1 or -1 do
          local x = p.x[at + c]
          for k = 0, p.k - 1 do
            y[k + 1] = y[k + 1]
              + x * p.f[((k * taps + r) * taps + s) * p.c + c]
          end
        end
      end
    end
    return {y = y}
  end,
})
-- SPDX-License-Identifier: MIT
