--- The tiles of a block of kernels/gemm_sm90, and their order.
local core = require "cute.core"
local cute = require "cute"
local groups = require "kernels.groups"
local tiles = require "cute.tiles"

local pipeline, utils = cute.pipeline, cute.utils
local Agent, Group = pipeline.Agent, pipeline.CooperativeGroup

local tile_order = {}

-- An iterator over the tiles of groups, with the interface of a
-- StaticPersistentTileScheduler. In tile_idx, m is counted within the group,
-- and l is the index of the group.
local Grouped = {}
Grouped.__index = Grouped

local function grouped(o, space, most, tiles_n)
  local x, y, z = cute.arch.block_idx()
  local where = space.offsets or space.counts or space.shapes
  local walk = setmetatable({o = o, place = z, id = {x, y}, space = space,
    step = select(3, cute.arch.grid_dim()), of = -1}, Grouped)
  walk.search = groups.search(o.groups, where, most, {
    rows = o.tile[1] * o.cluster[1], columns = o.tile[2] * o.cluster[2],
    across = tiles.count(tiles_n, o.cluster[2])})
  walk.search:find(z)
  return walk
end

function Grouped:is_valid() return self.search:has(self.place) end

function Grouped:advance_to_next_work(count)
  self.place = self.place + (count or 1) * self.step
  self.search:find(self.place)
end

-- Returns the current tile as a table with the fields tile_idx, group (the
-- group's index), first (its first row) and rows (the number of its rows). For
-- a list of problems it also has columns, k_count and `new`: whether the group
-- differs from the previous one.
function Grouped:get_current_work()
  local o, s = self.o, self.search
  local place = self.place - s.before
  core.assume(place, 0, (1 << 31) - 1, 1)
  local at = utils.StaticPersistentTileScheduler(
    utils.PersistentTileSchedulerParams(
      {cute.max(s.high, 1), cute.max(s.across, 1)}, nil,
      {swizzle_size = o.swizzle, raster_along_m = o.raster_along_m}),
    {0, 0, place}, {1, 1, 1}):get_current_work().tile_idx
  for i = 1, 2 do
    if o.cluster[i] > 1 then at[i] = at[i] * o.cluster[i] + self.id[i] end
  end
  local w = {tile_idx = {at[1], at[2], s.group}, group = s.group,
             first = s.first, rows = s.rows}
  if o.groups == "list" then
    w.columns, w.k_count = s.columns, tiles.count(s.k, o.tile[3])
    w.new, self.of = cute.ne(s.group, self.of), s.group
  end
  return w
end

--- Makes iterators over the tiles of this block, in the order in which clusters
-- take them. The returned function takes "producer" or "consumer" and returns
-- the iterator for that role. space: the data that blocks of a launch share;
-- maker: true in the thread that initializes barriers. tiles_l: the number of
-- matrices of a batch; for groups, the number of rows of all groups.
function tile_order.walks(o, tiles_m, tiles_n, tiles_l, k_tiles, space, maker)
  if o.groups then
    return function() return grouped(o, space, tiles_l, tiles_n) end
  end
  local x, y, z = cute.arch.block_idx()
  if not o.persistent then
    local m, n = x, y
    if o.split > 1 then m, n = y, z
    elseif o.blocked then m = z * cute.arch.grid_dim() + x end
    if o.turned then m, n = n, m end
    local tile = {m, n, o.batches and z or 0}
    local work = {advance_to_next_work = function() end,
                  get_current_work = function()
                    return utils.WorkTileInfo(tile, true)
                  end}
    return function() return work end
  end
  local params = utils.PersistentTileSchedulerParams(
    {tiles_m, tiles_n, tiles_l}, {o.cluster[1], o.cluster[2], 1},
    {swizzle_size = o.swizzle, raster_along_m = o.raster_along_m})
  local grid = {cute.arch.grid_dim()}
  if o.dynamic then
    local shared = utils.DynamicPersistentTileScheduler(params, {
      counter = space.counter, maker = maker, defer_sync = true,
      consumer_group = Group(Agent.Warp, 4 * o.consumers)}, {x, y, z}, grid)
    return function(who) return shared[who](shared) end
  end
  return function()
    if o.stream then
      return utils.StreamKTileScheduler(params, k_tiles,
        {least = o.least, equal = o.equal}, {x, y, z}, grid)
    end
    return utils.StaticPersistentTileScheduler(params, {x, y, z}, grid)
  end
end

--- Calls f for each tile of an iterator.
function tile_order.each(o, work, f)
  if not o.persistent then return f() end
  cute.loop(function() return work:is_valid() end, f)
end

return tile_order
-- SPDX-License-Identifier: MIT
