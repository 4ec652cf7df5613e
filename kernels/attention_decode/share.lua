--- Divides the keys of all sequences among the blocks of
-- kernels/attention_decode.
--
-- A row of work is a tile of rows of Q together with all keys that these rows
-- see. Each sequence has `per` rows of work. The key tiles of all rows of work
-- form one list, in order, and each block processes `each` consecutive tiles of
-- the list. For sequences of any lengths, a block therefore processes the end
-- of one row of work, some whole rows of work, and the beginning of another
-- one.
--
-- If sequences have almost equal lengths, a block processes a part of a single
-- row of work instead: each row is divided into parts of `each` tiles. This
-- takes less time if `each` grows by at most share.SLACK tiles.
--
-- With o.chunk, a part has o.chunk tiles and begins at a multiple of o.chunk.
-- The parts of a sequence then do not depend on the lengths of the other
-- sequences.
local cute = require "cute"

local share = {}

local Share = {}
Share.__index = Share

-- The time that a block needs to go from one row of work to the next, in units
-- of the time for a tile. The block stores results, loads Q, and waits for the
-- first keys.
share.SLACK = 2

local function at_least(x, n) return (x + (n - 1)) // n end

-- Returns the sum of x over this lane and the lanes below it.
local function scan(x)
  local lane = cute.arch.lane_idx()
  for i = 0, 4 do
    local below = cute.arch.shuffle_sync_up(x, 1 << i)
    x = x + cute.where(cute.ge(lane, 1 << i), below, 0)
  end
  return x
end

--- Makes an object that divides B sequences among `blocks` blocks. All lanes of
-- a warp must call this function and the object's methods together.
---@param o {tile: integer[], chunk: integer?, least: integer}
---@param T any the number of keys of a sequence without `lengths`
---@param lengths any? the number of keys of each sequence, (B) of i32
---@param per integer rows of work (tiles of rows of Q) of a sequence
function share.new(o, T, lengths, B, per, blocks)
  local self = setmetatable({o = o, T = T, lengths = lengths, B = B, per = per},
                            Share)
  self.chunk = o.chunk
  local total, longest = self:count(true)
  self.each = o.chunk or cute.max(at_least(total * per, blocks), o.least)
  local parts = not o.chunk and blocks // (B * per)
  if math.type(parts) and parts > 0 then
    local each = cute.max(at_least(longest, parts), o.least)
    local even = cute.le(each, self.each + share.SLACK)
    self.chunk = cute.where(even, each, 1)
    self.each = cute.where(even, each, self.each)
    total = self:count()
  end
  self.total = total * per
  self.items = at_least(self.total, self.each)
  return self
end

-- Returns two numbers: the sum of Share:padded over all sequences and, if
-- `longest` is set, the largest padded number of tiles of a sequence.
function Share:count(longest)
  local n = self:tiles(0)
  if not self.lengths then return self.B * self:padded(n), n end
  local total, most = 0, 0
  self:each_lane(function(_, padded)
    total = total + padded
    if longest then most = cute.max(most, padded) end
  end)
  return cute.arch.warp_reduction(total, cute.add),
    longest and cute.arch.warp_reduction(most, cute.max)
end

--- Returns the number of keys of sequence b.
function Share:keys(b) return self.lengths and self.lengths[b] or self.T end

--- Returns the number of tiles of keys of sequence b.
function Share:tiles(b) return at_least(self:keys(b), self.o.tile[2]) end

--- Returns the number of tiles that a row of work with n tiles occupies in the
-- list. With o.chunk, this is n rounded up to a multiple of o.chunk.
function Share:padded(n)
  local chunk = self.chunk
  return chunk and at_least(n, chunk) * chunk or n
end

-- Calls f(b, n) for all sequences, 32 at a time: each lane handles one sequence
-- b. n is the padded number of tiles of sequence b, or 0 if b is after the last
-- sequence.
function Share:each_lane(f)
  local lane, B = cute.arch.lane_idx(), self.B
  local function call(first)
    local b = first + lane
    local n = self:padded(self:tiles(cute.min(b, B - 1)))
    f(b, cute.where(cute.lt(b, B), n, 0))
  end
  if B <= 32 then return call(0) end
  for first in cute.range(0, B, 32) do call(first) end
end

--- Returns the sequence that contains tile `at` of the list of all tiles. Also
-- returns how many tiles of the list the preceding sequences have for one row
-- of work.
function Share:find(at)
  if not self.lengths then
    local n = self:padded(self:tiles(0))
    local b = at // (n * self.per)
    return b, b * n
  end
  local b, before, carry = 0, 0, 0
  self:each_lane(function(i, n)
    local sum = scan(n) + carry
    local ends = cute.le(sum * self.per, at) & cute.lt(i, self.B)
    b = b + cute.arch.popc(cute.arch.vote_ballot_sync(ends)):to(cute.i32)
    before = cute.max(before, cute.arch.warp_reduction(
      cute.where(ends, sum, 0), cute.max))
    carry = cute.arch.shuffle_sync(sum, 31)
  end)
  return b, before
end

--- Returns the number of tiles of the list that the sequences before sequence b
-- have for one row of work.
function Share:before(b)
  if not self.lengths then return b * self:padded(self:tiles(0)) end
  local sum = 0
  self:each_lane(function(i, n)
    sum = sum + cute.where(cute.lt(i, b), n, 0)
  end)
  return cute.arch.warp_reduction(sum, cute.add)
end

--- Calls f(b, row, first, last, place) for each part of block `item`: the tiles
-- `first` to last - 1 of row of work `row` of sequence b. place: the index at
-- which the part's results are stored, which is different for each part.
function Share:walk(item, f)
  local uniform = cute.arch.make_warp_uniform
  local per, at = self.per, item * self.each
  local stop = cute.min(at + self.each, self.total)
  local b, before = self:find(at)
  b = uniform(b)
  local from = uniform(at - before * per)
  cute.loop(function() return cute.lt(at, stop) end, function()
    local tiles = self:tiles(b)
    local n = self:padded(tiles)
    cute.when(cute.ge(from, n * per), function()
      b, from = b + 1, 0
    end, function()
      local row, first = from // n, from % n
      local count = cute.min(n - first, stop - at)
      f(b, row, first, cute.min(first + count, tiles), item + b * per + row)
      from, at = from + count, at + count
    end)
  end)
end

--- Returns the range of indices where the results of row of work `row` of
-- sequence b are stored: the first index, and one more than the last one.
function Share:places(b, row)
  local n = self:padded(self:tiles(b))
  local first = self:before(b) * self.per + row * n
  local place = b * self.per + row
  return first // self.each + place, cute.where(cute.gt(n, 0),
    (first + n - 1) // self.each + 1, first // self.each) + place
end

return share
-- SPDX-License-Identifier: MIT
