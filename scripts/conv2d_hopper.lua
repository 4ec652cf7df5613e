-- Convolution for Hopper: TMA performs im2col.
--
-- In conv2d.lua threads compute an address and a predicate for each 16 bytes of
-- the input that they copy. Here a tensor map in im2col mode does both. One
-- thread passes the first pixel of a tile and a position in the filter. TMA
-- loads the tile's pixels and writes zeros for the padding. The rest of the
-- kernel is that of gemm_hopper.lua.
--   cutelua scripts/conv2d_hopper.lua --help
local conv2d = require "kernels.conv2d_sm90"
local convolution = require "cutelua.bench.convolution"
local cute = require "cute"

-- Returns the kernel arguments: the maps of x, f and y with their coordinates,
-- and the numbers of tiles.
local function arguments(p, conv)
  local t = p.tensors
  local function of(x, f, y, i)
    return (select(i, table.unpack(conv.arguments(x, f, y))))
  end
  local list = {n = 9}
  for i = 1, 2 do
    list[i] = {"x", function(x) return of(x, t.f, t.y, i) end}
    list[2 + i] = {"f", function(f) return of(t.x, f, t.y, 2 + i) end}
    list[4 + i] = {"y", function(y) return of(t.x, t.f, y, 4 + i) end}
  end
  for i = 7, 9 do list[i] = of(t.x, t.f, t.y, i) end
  return list
end

local function make(p)
  local y, taps, o = p.tensors.y.shape, convolution.options(p)
  o.dtype = cute[p.dtype]
  local conv = conv2d(conv2d.choose(y[1] * y[2] * y[3], p.k, p.c * taps * taps,
                                    o))
  return {kernel = conv.kernel, grid = conv.grid(p.tensors.y),
          block = conv.block, cluster = conv.cluster, args = arguments(p, conv)}
end

require "cutelua.bench.harness".run(arg, convolution.lesson(
  "2-D convolution on wgmma, with im2col tensor maps (sm_90a).", make))
-- SPDX-License-Identifier: MIT
