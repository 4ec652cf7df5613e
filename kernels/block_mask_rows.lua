--- Lists, for each tile of keys of attention's scores, the tiles of rows that a
-- mask does not hide. The gradients of attention iterate over these tiles.
--
--     local k = block_mask_rows {rows = S, keys = T, block = {128, 128},
--                                tile = {64, 80}}
--     k.kernel(blocks, lists, before):launch {grid = k.grid(H, B),
--                                             block = k.block}
--
-- `blocks` has the lists of kernels/block_mask.lua for blocks of `block` rows
-- and keys, with H heads and B sequences. `lists` and `before` are tensors
-- (B,H,n,1+m) of i32, for n tiles of keys and m tiles of rows. block[1] must be
-- a multiple of tile[1]. A list of `lists` begins with the number of its
-- entries. The entries follow in ascending order: one for each tile of rows
-- with a visible block that overlaps the tile of keys. The entry is 2 i, where
-- i is the index (from 0) of the tile of rows, or 2 i + 1 if the mask hides
-- some of the tile's scores. For each entry, `before` has a number at the same
-- position. It is one more than the index of the last earlier tile of keys
-- whose list has the same tile of rows, or 0 if there is no such tile.
--
-- A warp makes one list. Each lane handles one tile of rows at a time, and
-- searches the list of the block that contains the tile.
local cute = require "cute"
local rules = require "kernels.operand_rules"
local tiles = require "cute.tiles"

local WHAT, WARP = "block_mask_rows", 32

-- Returns the position in `list` of the first block of keys whose index is at
-- least `least`. If there is none, returns one more than the number of entries.
local function search(list, least)
  local low, high = 1, list[0] + 1
  cute.loop(function() return cute.lt(low, high) end, function()
    local middle = (low + high) // 2
    local below = cute.lt(list[middle] >> 1, least)
    low = cute.where(below, middle + 1, low)
    high = cute.where(below, high, middle)
  end)
  return low
end

-- Returns two numbers. The first is the entry of tile m of rows in the list of
-- tile n of keys, or -1 if it has none. The second is the number for `before`.
-- list: the visible blocks of the block of rows that contains tile m.
local function find(o, list, m, n)
  local N, BN = o.tile[2], o.block[2]
  local first = n * N // BN
  local last = cute.min(n * N + (N - 1), o.keys - 1) // BN
  local from, count = search(list, first), list[0]
  local at, partly = from, 0
  local function inside()
    return cute.le(at, count)
      & cute.le(list[cute.min(at, count)] >> 1, last)
  end
  cute.loop(inside, function()
    partly = partly | list[at] & 1
    at = at + 1
  end)
  local whole = cute.eq(at - from, last - first + 1) & cute.eq(partly, 0)
  local entry = cute.where(cute.gt(at, from),
                           2 * m + cute.where(whole, 0, 1), -1)
  -- One more than the index of the last tile of keys that overlaps the previous
  -- visible block of keys.
  local block = list[cute.max(from - 1, 1)] >> 1
  local before = cute.where(cute.gt(from, 1),
                            cute.min((block * BN + (BN - 1)) // N + 1, n), 0)
  -- If tile n begins inside the first visible block of keys, tile n - 1
  -- overlaps this block, too.
  if N % BN ~= 0 then
    local shared = cute.gt(at, from)
      & cute.eq(list[cute.min(from, count)] >> 1, first)
      & cute.gt(n * N, first * BN)
    before = cute.where(shared, n, before)
  end
  return entry, before
end

local function kernel(o, blocks, lists, befores)
  local n, h, b = cute.arch.block_idx()
  local lane = cute.arch.lane_idx()
  local total = tiles.count(o.rows, o.tile[1])
  local list, befores_of = lists(b, h, n, cute._), befores(b, h, n, cute._)
  local count = 0
  for base in cute.range(0, total, WARP) do
    local m, entry, before = base + lane, -1, 0
    cute.when(cute.lt(m, total), function()
      entry, before = find(o, blocks(b, h, m * o.tile[1] // o.block[1],
                                     cute._), m, n)
    end)
    local found = cute.ge(entry, 0)
    local lanes = cute.arch.vote_ballot_sync(found)
    cute.when(found, function()
      local at = count + 1
        + cute.arch.popc(lanes & cute.arch.lanemask_lt())
      list[at], befores_of[at] = entry, before
    end)
    count = count + cute.arch.popc(lanes)
  end
  cute.when(cute.eq(lane, 0), function() list[0], befores_of[0] = count, 0 end)
  -- Fills the rest of the list with zeros, although nothing reads them.
  for at in cute.range(count + 1 + lane, total + 1, WARP) do
    list[at], befores_of[at] = 0, 0
  end
end

--- Returns a kernel with arguments (blocks, lists, before), and its launch
-- parameters.
---@param o table {rows: integer, keys: integer, block: integer[],
-- tile: integer[]}
---@return {kernel: any, block: integer, grid: function, shape: function}
-- grid(H, B); shape(H, B) returns the shape of `lists` and `before`
return function(o)
  rules.options(WHAT, o, "rows keys block tile")
  rules.need(o.block[1] % o.tile[1] == 0, WHAT, "blocks of %d rows and tiles "
    .. "of %d; a multiple is needed", o.block[1], o.tile[1])
  local n = tiles.count(o.keys, o.tile[2])
  return {
    kernel = cute.kernel(WHAT, {block = WARP},
                         function(...) kernel(o, ...) end), block = WARP,
    grid = function(H, B) return {n, H, B} end,
    shape = function(H, B)
      return {B, H, n, 1 + tiles.count(o.rows, o.tile[1])}
    end,
  }
end
-- SPDX-License-Identifier: MIT
