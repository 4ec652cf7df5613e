--- Groups of rows whose sizes are read on the device, as for the experts of a
-- mixture-of-experts layer.
--
-- The form of groups describes their layout. With "rows", a matrix (M,K) holds
-- the rows of all groups consecutively; group g has rows offsets[g] to
-- offsets[g + 1] - 1. With "masked", there are G matrices (M,K,G), and group g
-- has the first counts[g] rows of matrix g. With "list", each group has
-- separate matrices of any extents; the tensor `shapes` (G,3) holds M, N and K
-- of each of the G groups.
--
-- offsets (G+1) and counts (G) are i32 or i64. An offset is clamped to the
-- range from the previous offset to M, and a count to the range from 0 to M.
-- Therefore no value causes accesses outside the operands.
--
-- Tiles of all groups are numbered consecutively. A search advances from group
-- to group until it finds the group of a tile number. The next search continues
-- there, so numbers must be passed in rising order.
--
--     local s = groups.search("rows", offsets, M, {rows = 128, across = 4})
--     s:find(place)
--     cute.when(s:has(place), function()
--       local mine = groups.view(A, s)   -- the group's rows of A, of which
--     end)                               -- tile place - s.before is computed
local cute = require "cute"
local sign = require "cute.lang.signature"
local tiles = require "cute.tiles"

local _, cpasync = cute._, cute.nvgpu.cpasync

local groups = {}

-- Returns x, an i32 or i64, as an i32 clamped to 0 to `most`.
local function bounded(x, most)
  if x.dtype == cute.i64 then
    x = cute.min(cute.max(x, 0), (1 << 31) - 1):to(cute.i32)
  end
  return cute.min(cute.max(x, 0), most)
end

local Search = {}
Search.__index = Search

--- Makes a search that starts before the first group. The search has these
-- fields, which describe the group found: `group`, its index; `first`, its
-- first row (0 if masked); `rows`, the number of its rows; `high`, the number
-- of tiles along them; `before`, the number of the group's first tile; `after`,
-- one more than the number of its last tile. For a list it also has `columns`
-- and `k`, the group's extents, and `across`, the number of tiles along N.
---@param form string
---@param where any offsets, counts or shapes
---@param most any rows of a matrix; nil for a list
---@param tile {rows: integer, across: any, columns: integer}
-- rows: rows of a tile; across: number of tiles along N; columns: columns of a
-- tile, for a list
function groups.search(form, where, most, tile)
  local s = {form = form, where = where, most = most, tile = tile,
             count = cute.size(where, 0), group = -1, before = 0, after = 0,
             first = 0, rows = 0, high = 0, across = tile.across}
  if form == "rows" then
    s.count, s.stop = s.count - 1, bounded(where[0], most)
  elseif form == "list" then
    s.columns, s.k, s.across = 0, 0, 0
  end
  return setmetatable(s, Search)
end

--- Advances the search to the group that contains tile number `place`.
function Search:find(place)
  cute.loop(function()
    return cute.ge(place, self.after) & cute.lt(self.group + 1, self.count)
  end, function()
    self.group = self.group + 1
    if self.form == "rows" then
      self.first = self.stop
      self.stop = cute.max(self.first,
                           bounded(self.where[self.group + 1], self.most))
      self.rows = self.stop - self.first
    elseif self.form == "list" then
      local function extent(i) return self.where[{self.group, i}] end
      self.rows, self.columns, self.k = extent(0), extent(1), extent(2)
      self.across = tiles.count(self.columns, self.tile.columns)
    else
      self.rows = bounded(self.where[self.group], self.most)
    end
    self.high = tiles.count(self.rows, self.tile.rows)
    self.before = self.after
    self.after = self.after + self.high * self.across
  end)
end

--- Reports whether tile number `place` exists. `place` must be the number that
-- was last passed to find.
function Search:has(place) return cute.lt(place, self.after) end

--- Returns a group's part of t, which is a matrix (M,N), or matrices (M,N,G).
---@param t any
---@param at {group: any, first: any, rows: any} such as a search
function groups.view(t, at)
  t = tiles.batch(t, at.group)
  return cute.make_tensor(groups.from(t, at).iterator,
    cute.make_layout({at.rows, t.shape[2]}, t.stride))
end

--- Returns a matrix, or a matrix's tensor of coordinates, shifted so that it
-- begins at the group's first row.
function groups.from(t, at)
  if math.type(at.first) then return t end  -- 0
  return cute.domain_offset(cute.rank(t) > 2 and {at.first, 0, 0}
    or {at.first, 0}, t)
end

--- Returns the address of the tensor map of a group (form "list"), for the
-- thread that issues TMA copies with this map. The atoms of all groups are
-- arguments of the kernel. When a new group begins, its tensor map is copied to
-- `maps` (16,G) of i64, global memory that only this thread uses.
---@param atoms any[] the atoms of each group
---@param maps any
---@param group any
---@param new any whether the group differs from the previous one
function groups.map(atoms, maps, group, new)
  local map = maps(_, group)
  cute.when(new, function()
    for g, atom in ipairs(atoms) do
      cute.when(cute.eq(group, g - 1), function()
        cpasync.copy_tensormap(atom, map)
      end)
    end
    cpasync.fence_tma_desc_release()
    cpasync.fence_tma_desc_acquire(map)
  end)
  return map
end

--- Returns `coords`, a matrix's tensor of coordinates, with extents of at least
-- 2^24. Only the tensor map then limits the accesses.
function groups.endless(coords)
  local shape = coords.shape
  for i, extent in ipairs(shape) do
    if type(extent) == "table" then extent[#extent] = 1 << 24
    else shape[i] = 1 << 28 end
  end
  return cute.make_tensor(coords.iterator,
                          cute.make_layout(shape, coords.stride))
end

--- Returns the largest possible number of tiles of `rows` rows. With form
-- "rows", m is the number of rows of all `count` groups together; with
-- "masked", the largest number of rows of each group.
function groups.most(form, m, count, rows)
  if form == "rows" then return tiles.count(m, rows) + count - 1 end
  return tiles.count(m, rows) * count
end

return sign.module("kernels.groups", groups)
-- SPDX-License-Identifier: MIT
