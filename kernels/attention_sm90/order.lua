--- The tiles of rows of a block of kernels/attention_sm90, and their order.
--
-- Some options give tiles different amounts of work. Then the tiles with the
-- most work come first, and an idle block draws the next tile from a counter.
-- Heads are divided into sections, whose keys and values fit into L2 together.
-- Within a section, the tiles of all heads with the same rows are consecutive.
-- Without such options, all tiles take the same time: block i takes tiles i, i
-- + grid and so on, head by head.
local cute = require "cute"
local flash = require "kernels.flash"
local tiles = require "cute.tiles"

local pipeline, utils = cute.pipeline, cute.utils

local order = {}

-- The maximum number of bytes that the keys and values of a section take.
local L2 = 32 << 20

--- Returns the number of heads of Q in a section, which may belong to several
-- batches.
---@param group integer the heads of Q that share one of K
function order.section(o, T, group)
  local bytes = math.max(T * (o.head + o.value) * o.dtype.bits // 8, 1)
  return math.max(L2 // bytes, 1) * group
end

-- Returns m, h and b of the tile at position t in the order: tile m of M tiles
-- of rows, head h, batch b. Without `section`, the tiles of a head are
-- consecutive. With `section`, tiles with the same rows are consecutive.
local function place(t, M, H, B, section)
  local m, head
  if section then
    local first = t // (section * M) * section
    local rest = t % (section * M)
    local wide = cute.min(section, H * B - first)
    cute.assume(wide, 1, (1 << 31) - 1, 1)
    m, head = M - 1 - rest // wide, first + rest % wide
  else
    m, head = t % M, t // M
  end
  return m, head % H, head // H
end

-- Returns a function (t) for B concatenated sequences; the rows after the last
-- one form sequence B. The function returns m, h and b of the tile at position
-- t in the order, and whether the tile exists. The tiles of all heads with the
-- same rows are consecutive. Positions must be requested in ascending order.
local function finder(o, S, H, B, cu)
  local at = {b = -1, before = 0, after = 0}
  return function(t)
    local tile = t // H
    cute.loop(function()
      return cute.ge(tile, at.after) & cute.lt(at.b, B)
    end, function()
      at.b, at.before = at.b + 1, at.after
      local _, rows = flash.span(cu, at.b, S, true)
      at.after = at.after + tiles.count(rows, o.tile[1])
    end)
    return tile - at.before, t % H, at.b, cute.lt(tile, at.after)
  end
end

--- Returns a function that maps the indices last - 1 down to `first` to blocks
-- of keys in another order: from block `middle` down to the first one, then
-- from the last one down to the block after `middle`.
function order.around(first, last, middle)
  local begin = cute.max(cute.min(middle, last - 1), first)
  return function(i)
    local n = i - (last - 1) + begin
    return cute.where(cute.lt(n, first), n + (last - first), n)
  end
end

--- Returns the number of positions for the tiles of H heads. `total` is the
-- number of rows of the B sequences and of the rows after them. Each of these B
-- + 1 parts may end with a partial tile.
function order.places(o, total, H, B)
  return (total // o.tile[1] + B + 1) * H
end

--- Makes iterators over the tiles of this block, one for each "producer" or
-- "consumer". An iterator calls f(m, h, b) for each tile, which has the rows
-- from m * o.tile[1] on of head h in batch b.
---@param share table? {section: from order.section, counter: an i32 of 0}
---@param maker any the thread that initializes barriers
---@param cu? any (B+1): the positions of B sequences among S rows
function order.walks(o, S, H, B, share, maker, cu)
  local M = tiles.count(S, o.tile[1])
  local params = utils.PersistentTileSchedulerParams {
    cu and order.places(o, S, H, B) or M * H * B, 1, 1}
  local at, grid = {0, 0, (cute.arch.block_idx())},
    {1, 1, (cute.arch.grid_dim())}
  local shared = o.dynamic and utils.DynamicPersistentTileScheduler(params, {
    counter = share.counter, maker = maker, defer_sync = true,
    consumer_group = pipeline.CooperativeGroup(pipeline.Agent.Warp,
      4 * o.consumers + o.helpers)}, at, grid)
  return function(who)
    local work = shared and shared[who](shared)
      or utils.StaticPersistentTileScheduler(params, at, grid)
    local find = cu and finder(o, S, H, B, cu)
    return function(f)
      cute.loop(function() return work:is_valid() end, function()
        local t = work.current_work_linear_idx
        if find then
          local m, h, b, exists = find(t)
          cute.when(exists, function() f(m, h, b) end)
        else
          f(place(t, M, H, B, shared and share.section))
        end
        work:advance_to_next_work()
      end)
    end
  end
end

return order
-- SPDX-License-Identifier: MIT
