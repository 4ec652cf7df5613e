--- Groups of rows whose numbers are read on the device, as the experts of a
-- mixture have them. How they lie is their form:
--
--   "rows"    a matrix (M,K) holds the rows of all groups one behind the other:
--             group g has those from offsets[g] to offsets[g + 1] - 1
--   "masked"  matrices (M,K,G): of group g the first counts[g] rows
--
-- offsets (G+1) and counts (G) are i32 or i64. Offsets below the one before
-- count as that one, those past M as M, counts are from 0 to M: nobody leaves
-- the operands, whatever is there.
--
-- Tiles of all groups are numbered one behind the other. A search counts groups
-- until a number is among theirs, and goes on where the one before ended:
-- numbers are asked for in rising order.
--
--     local s = groups.search("rows", offsets, M, {rows = 128, across = 4})
--     s:find(place)
--     cute.when(s:has(place), function()
--       local mine = groups.view(A, s)   -- tile place - s.before of it
--     end)
local cute = require "cute"
local tiles = require "cute.tiles"

local groups = {}

-- x, of either type, as an i32 from 0 to `most`.
local function bounded(x, most)
  if x.dtype == cute.i64 then
    x = cute.min(cute.max(x, 0), (1 << 31) - 1):to(cute.i32)
  end
  return cute.min(cute.max(x, 0), most)
end

local Search = {}
Search.__index = Search

--- A search in front of all groups. Fields of what it found: group, its first
-- row (`first`, 0 where they are masked) and its `rows`, `high` tiles along
-- them; `before`: the number of its first tile, `after`: that behind its last.
---@param form string
---@param where any offsets or counts
---@param most any rows of a matrix
---@param tile {rows: integer, across: any} rows of a tile, tiles beside it
function groups.search(form, where, most, tile)
  local s = {form = form, where = where, most = most, tile = tile,
             count = cute.size(where), group = -1, before = 0, after = 0,
             first = 0, rows = 0, high = 0}
  if form == "rows" then
    s.count, s.stop = s.count - 1, bounded(where[0], most)
  end
  return setmetatable(s, Search)
end

--- Counts groups until the place is in front of the last one's end.
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
    else
      self.rows = bounded(self.where[self.group], self.most)
    end
    self.high = tiles.count(self.rows, self.tile.rows)
    self.before = self.after
    self.after = self.after + self.high * self.tile.across
  end)
end

--- Is there a tile of this number? Of the last one that was searched.
function Search:has(place) return cute.lt(place, self.after) end

--- What of a matrix (M,N), or of matrices (M,N,G), is a group's.
---@param t any
---@param at {group: any, first: any, rows: any} such as a search
function groups.view(t, at)
  t = tiles.batch(t, at.group)
  return cute.make_tensor(groups.from(t, at).iterator,
    cute.make_layout({at.rows, t.shape[2]}, t.stride))
end

--- A matrix, or its coordinates, from a group's first row on.
function groups.from(t, at)
  if math.type(at.first) then return t end  -- 0
  return cute.domain_offset(cute.rank(t) > 2 and {at.first, 0, 0}
    or {at.first, 0}, t)
end

--- Tiles of `rows` rows that groups of m rows in all ("rows"), or of m at most
-- each ("masked"), can have.
function groups.most(form, m, count, rows)
  if form == "rows" then return tiles.count(m, rows) + count - 1 end
  return tiles.count(m, rows) * count
end

return groups
