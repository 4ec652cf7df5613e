--- Scale factors of blocks of K in kernels/gemm_sm90: they multiply the
-- accumulators of a tile along K before these are added to the sums.
local cute = require "cute"
local groups = require "kernels.groups"
local tiles = require "cute.tiles"

-- The largest number of column factors that a thread loads one tile ahead. More
-- of them would need too many registers.
local AHEAD = 4

--- Returns a table of three functions for the scale factors of a tile. begin()
-- is called before the loop along K, and step(k, count) before the products of
-- tile k of `count` tiles. by(i) returns the factors of tile k for this
-- warpgroup's i-th 64 rows (from 0, see out.row), as a fragment with the layout
-- of acc. If a thread has few factors, those of tile k arrive during the
-- products of tile k - 1, otherwise during the products of tile k.
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
  -- The number of groups of 64 rows that this warpgroup computes.
  local parts = o.tile[1] // 64 // (o.pingpong and 1 or o.consumers)
  -- `columns` lists the columns whose factors this thread needs, relative to
  -- the lane's first column. `place` maps each such column to its index in the
  -- list.
  local columns, place = {}, {}
  local function column_of(e)
    local n = e // 4 * 8 + e % 2
    return o.blocks == 1 and n or n // 128 * 128
  end
  for e = 0, cute.size(acc) - 1 do
    local n = column_of(e)
    if not place[n] then
      place[n], columns[#columns + 1] = #columns, n
    end
  end
  local lanes = o.blocks == 1 and lane % 4 * 2 or 0
  local function held()
    return {rows = SA and cute.make_rmem_tensor({2, parts}, o.acc),
            columns = SB and cute.make_rmem_tensor({#columns}, o.acc)}
  end
  local ahead = not SB or #columns <= AHEAD
  local taken, asked = held(), ahead and held()
  local factors = {}

  local function load(list, k)
    for i = 0, SA and parts - 1 or -1 do
      for v = 0, 1 do
        local row = (tile[1] * (o.tile[1] // 64) + out.row(i)) * 64
          + warp * 16 + lane // 4 + 8 * v
        list.rows[{v, i}] = SA[{cute.min(row, M - 1), k}]:to(o.acc)
      end
    end
    for j, n in ipairs(SB and columns or {}) do
      list.columns[j - 1] = SB[{cute.min(first + n + lanes, N - 1), k}]
        :to(o.acc)
    end
  end

  function factors.begin()
    if ahead then load(asked, 0) end
  end

  function factors.step(k, count)
    if not ahead then return load(taken, k) end
    for _, name in ipairs {"rows", "columns"} do
      if asked[name] then taken[name]:store(asked[name]:load()) end
    end
    load(asked, cute.min(k + 1, count - 1))
  end

  function factors.by(i)
    local by = cute.make_fragment_like(acc)
    for e = 0, cute.size(acc) - 1 do
      local x = SA and taken.rows[{e // 2 % 2, i}]
      local y = SB and taken.columns[place[column_of(e)]]
      by[e] = x and y and x * y or x or y
    end
    return by
  end
  return factors
end
-- SPDX-License-Identifier: MIT
