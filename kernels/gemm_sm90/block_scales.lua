--- Factors of blocks of K in kernels/gemm_sm90: they scale the accumulators of
-- a tile along K before they are added.
local cute = require "cute"
local groups = require "kernels.groups"
local tiles = require "cute.tiles"

--- Returns a function (i, k) for the factors of a tile. The function returns a
-- fragment of factors with the layout of acc, for this warpgroup's i-th 64 rows
-- (from 0, see out.row) and tile k along K. It is called before the products of
-- tile k, so that loads overlap.
---@param o table options
---@param out table {D, thread, row}
---@param w table work tile
---@param SA any (M,k), or nil
---@param SB any (N,k), or nil; of groups (N,k,G)
return function(o, out, acc, w, SA, SB)
  local tile, M, N = w.tile_idx, out.D.shape[1], out.D.shape[2]
  if o.groups then
    M = w.rows
    SA, SB = SA and groups.view(SA, w), SB and tiles.batch(SB, tile[3])
  end
  local first = tile[2] * o.tile[2]
  local lane, warp = out.thread % 32, out.thread // 32
  return function(i, k)
    local by = cute.make_fragment_like(acc)
    local f = {}
    for v = 0, 1 do
      local row = (tile[1] * (o.tile[1] // 64) + out.row(i)) * 64 + warp * 16
        + lane // 4 + 8 * v
      f[v] = SA and SA[{cute.min(row, M - 1), k}]:to(o.acc)
    end
    local known = {}
    -- Returns the factors of the tile's columns n + lanes.
    local function column(n, lanes)
      if known[n] == nil then
        known[n] = SB[{cute.min(first + n + lanes, N - 1), k}]:to(o.acc)
      end
      return known[n]
    end
    for e = 0, cute.size(acc) - 1 do
      local v0, v1, n = e % 2, e // 2 % 2, e // 4 * 8
      local x = f[v1]
      if SB then
        local y = o.blocks == 1 and column(n + v0, lane % 4 * 2)
          or column(n // 128 * 128, 0)
        x = x and x * y or y
      end
      by[e] = x
    end
    return by
  end
end
-- SPDX-License-Identifier: MIT
