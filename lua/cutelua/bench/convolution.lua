--- Defines the problem of the lessons about convolutions: sizes, operands and
-- reference.
local core = require "cute.core"
local convolution = {}

--- Returns the taps of a problem's filters, and a table with the kernel's
-- stride, dilation and padding.
function convolution.options(p)
  local o = p.opt
  local taps = o.taps or 3
  return taps, {stride = o.stride or 1, dilation = o.dilation or 1,
                padding = o.padding or taps // 2}
end

--- Returns the height and the width of the output.
function convolution.extents(p)
  local taps, o = convolution.options(p)
  local function extent(n)
    return (n + 2 * o.padding - o.dilation * (taps - 1) - 1) // o.stride + 1
  end
  return extent(p.h), extent(p.w)
end

--- Returns the description of a lesson for the harness.
---@param about string
---@param make fun(p: table): table
---@return table
function convolution.lesson(about, make)
  return {
    about = about,
    make = make,
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
      local taps, P, Q = convolution.options(p), convolution.extents(p)
      return {{"x", {p.n, p.h, p.w, p.c}}, {"f", {p.k, taps, taps, p.c}},
              {"y", {p.n, P, Q, p.k}, out = true}}
    end,
    flops = function(p)
      local taps, P, Q = convolution.options(p), convolution.extents(p)
      return 2.0 * p.n * P * Q * p.k * p.c * taps * taps
    end,
    look = 1 << 13,
    pieces = function(p)  -- the pixels of y, checked one by one
      local P, Q = convolution.extents(p)
      return p.n * P * Q
    end,
    reference = function(p, pixel)
      local taps, o = convolution.options(p)
      local P, Q = convolution.extents(p)
      local n, i, j = pixel // (P * Q), pixel // Q % P, pixel % Q
      -- a row of the matrix whose product with the filters is y
      local width = taps * taps * p.c
      local row = core.buffer("f64", width):fill(0)
      for r = 0, taps - 1 do
        for s = 0, taps - 1 do
          local h = i * o.stride + r * o.dilation - o.padding
          local w = j * o.stride + s * o.dilation - o.padding
          if h >= 0 and h < p.h and w >= 0 and w < p.w then
            row:copy(p.x, (r * taps + s) * p.c,
                     ((n * p.h + h) * p.w + w) * p.c, p.c)
          end
        end
      end
      local y = core.gemm_reference(row, p.f, core.buffer("f64", p.k), 1, p.k,
                                    width):list()
      return {y = y}
    end,
  }
end

return convolution
-- SPDX-License-Identifier: MIT
