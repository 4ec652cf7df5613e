--- cute.utils, tile schedulers: which tile of a result a block works on, when
-- fewer blocks are launched than there are tiles (persistent kernels).
--
--     local params = cute.utils.PersistentTileSchedulerParams(
--       {tiles_m, tiles_n, 1}, {2, 1, 1}, {swizzle_size = 8})
--     -- launch {grid = params:get_grid_shape(132 // 2), cluster = {2, 1, 1}}
--     local tiles = cute.utils.StaticPersistentTileScheduler(params)
--     cute.loop(function() return tiles:is_valid() end, function()
--       local m, n, l = table.unpack(tiles:get_current_work().tile_idx)
--       ...
--       tiles:advance_to_next_work()
--     end)
--
-- Clusters take turns: cluster c of C works on places c, c + C, c + 2 C ... of
-- the order. swizzle_size tiles of one mode lie beside each other in it, so
-- that blocks which run together share what they read:
--
--     raster_along_m, swizzle_size 2      raster along n, swizzle_size 2
--          n 0  1  2  3                        n 0  1  2  3
--     m 0    0  1  8  9                   m 0    0  2  4  6
--     m 1    2  3 10 11                   m 1    1  3  5  7
--     m 2    4  5 12 13                   m 2    8 10 12 14
--     m 3    6  7 14 15                   m 3    9 11 13 15
--
-- All numbers are in tiles; of a cluster each block has one. Where the last
-- clusters reach beyond the result, their tiles lie outside: whether a place is
-- valid is the cluster's, which stays together.
local sign = require "cute.lang.sign"
local core = require "cute.core"
local arch = require "cute.arch"

local schedule = {}

local Params = {}
Params.__index = Params

local function positive(what, n)
  if core.typename(n) == "value" then return n end
  if math.type(n) ~= "integer" or n < 1 then
    core.fail("bad-argument", ("PersistentTileSchedulerParams: %s of %s: an "
      .. "integer of 1 or more is needed"):format(what, core.show(n)))
  end
  return n
end

local function ceil_div(a, b)
  if b == 1 then return a end
  return (a + (b - 1)) // b
end

local function at_least_one(n)
  if core.typename(n) == "value" then core.assume(n, 1, (1 << 31) - 1, 1) end
  return n
end

--- Tiles of the result along M, N and L (batches), and blocks of a cluster
-- along M, N (K: 1).
---@param problem_shape_ntile_mnl any[] integers, or values of the kernel
---@param cluster_shape_mnk? integer[] {1, 1, 1} when absent
---@param opts? {swizzle_size: integer, raster_along_m: boolean, order: table}
-- swizzle_size 1 and raster_along_m = true when absent; order: a tensor of i32
-- instead, of cluster places m + n * 65536 in their order (see
-- hilbert_tile_order)
function schedule.PersistentTileSchedulerParams(problem_shape_ntile_mnl,
                                                cluster_shape_mnk, opts)
  local cluster = cluster_shape_mnk or {1, 1, 1}
  opts = opts or {}
  local p = {cluster_shape = {}, clusters = {}, tiles = {}}
  for i, name in ipairs {"M", "N", "L"} do
    local tiles = positive(name, problem_shape_ntile_mnl[i] or 1)
    local blocks = i < 3 and positive("a cluster's " .. name, cluster[i] or 1)
      or 1
    p.tiles[i], p.cluster_shape[i] = tiles, blocks
    p.clusters[i] = at_least_one(ceil_div(tiles, blocks))
  end
  if (cluster[3] or 1) ~= 1 then
    core.fail("bad-argument", "PersistentTileSchedulerParams: a cluster has "
      .. "one block along K, not " .. core.show(cluster[3]))
  end
  p.swizzle_size = positive("swizzle_size", opts.swizzle_size or 1)
  p.raster_along_m = opts.raster_along_m ~= false
  p.order = opts.order
  return setmetatable(p, Params)
end

--- Clusters that there is work for.
function Params:total_clusters()
  return self.clusters[1] * self.clusters[2] * self.clusters[3]
end

--- The grid of a launch with at most so many clusters at once.
---@param max_active_clusters integer
---@return integer[] {cluster's M, cluster's N, clusters}
function Params:get_grid_shape(max_active_clusters)
  return {self.cluster_shape[1], self.cluster_shape[2],
          math.min(self:total_clusters(), max_active_clusters)}
end

-- {m, n} of cluster place `i` of a batch.
local function in_order(p, i)
  if p.order then
    local word = p.order[i]
    return word & 0xffff, (word >> 16) & 0xffff
  end
  -- `fast` has groups of swizzle_size, walked along `slow`
  local fast, slow = p.clusters[1], p.clusters[2]
  if p.raster_along_m then fast, slow = slow, fast end
  local size = p.swizzle_size
  local x, y
  if size == 1 then
    x = i // slow
    y = i - x * slow
  else
    local group = i // (slow * size)
    local first = group * size
    local rest = i % (slow * size)
    local wide = core.min(size, fast - first)
    if core.typename(wide) == "value" then core.assume(wide, 1, size, 1) end
    y = rest // wide
    x = first + rest - y * wide
  end
  if p.raster_along_m then return y, x end
  return x, y
end

local Work = {}

-- Asked for, it is computed: a comparison that nobody uses is told.
function Work.__index(work, name)
  if name ~= "is_valid_tile" then return nil end
  local valid = rawget(work, "valid")
  return type(valid) == "function" and valid() or valid
end

--- A tile, {m, n, l}, and whether there is one: a boolean, or a function that
-- gives it.
---@param tile_idx any[]
---@param is_valid_tile any
function schedule.WorkTileInfo(tile_idx, is_valid_tile)
  return setmetatable({tile_idx = tile_idx, valid = is_valid_tile}, Work)
end

local Static = {}

-- How many tiles were gone through is computed where it is asked for: loops
-- have less to carry.
function Static.__index(tiles, name)
  if name ~= "num_tiles_executed" then return Static[name] end
  return (tiles.current_work_linear_idx - tiles.first_work_linear_idx)
    // tiles.num_persistent_clusters
end

--- The tiles of this block: every grid-th cluster place. block_idx and
-- grid_dim, three numbers each, are this launch's when absent.
---@param params table of PersistentTileSchedulerParams
---@param block_idx? any[]
---@param grid_dim? any[]
function schedule.StaticPersistentTileScheduler(params, block_idx, grid_dim)
  block_idx = block_idx or {arch.block_idx()}
  grid_dim = grid_dim or {arch.grid_dim()}
  return setmetatable({params = params, num_persistent_clusters = grid_dim[3],
                       current_work_linear_idx = block_idx[3],
                       first_work_linear_idx = block_idx[3],
                       cta_id_in_cluster = {block_idx[1], block_idx[2]}},
                      Static)
end

--- Is there a tile at the present place?
function Static:is_valid()
  return core.lt(self.current_work_linear_idx, self.params:total_clusters())
end

--- The tile at the present place: tile_idx = {m, n, l}, is_valid_tile.
function Static:get_current_work()
  local p, i = self.params, self.current_work_linear_idx
  local plane = at_least_one(p.clusters[1] * p.clusters[2])
  local l = p.clusters[3] == 1 and 0 or i // plane
  local m, n = in_order(p, p.clusters[3] == 1 and i or i - l * plane)
  local id, shape = self.cta_id_in_cluster, p.cluster_shape
  if shape[1] > 1 then m = m * shape[1] + id[1] end
  if shape[2] > 1 then n = n * shape[2] + id[2] end
  return schedule.WorkTileInfo({m, n, l}, function()
    return core.lt(i, p:total_clusters())
  end)
end

--- The first one.
function Static:initial_work_tile_info() return self:get_current_work() end

--- To the next place; with a count, so many further.
---@param advance_count? integer|cute.Value
function Static:advance_to_next_work(advance_count)
  self.current_work_linear_idx = self.current_work_linear_idx
    + (advance_count or 1) * self.num_persistent_clusters
end

---------------------------------------------------------------------------
-- Hilbert's curve
---------------------------------------------------------------------------

local function sgn(x) return x > 0 and 1 or x < 0 and -1 or 0 end

-- Calls visit(x, y) along a curve through a rectangle of any extents, from
-- (x, y) along (ax, ay) and aside (bx, by), whose neighbours are neighbours:
-- Hilbert's halves and quarters with odd extents left to the last part, which
-- is J. Cerveny's generalised curve (2018).
local function walk(x, y, ax, ay, bx, by, visit)
  local w, h = math.abs(ax + ay), math.abs(bx + by)
  local dax, day, dbx, dby = sgn(ax), sgn(ay), sgn(bx), sgn(by)
  if h == 1 or w == 1 then
    local n, dx, dy = w, dax, day
    if h ~= 1 then n, dx, dy = h, dbx, dby end
    for i = 0, n - 1 do visit(x + i * dx, y + i * dy) end
    return
  end
  local ax2, ay2, bx2, by2 = ax // 2, ay // 2, bx // 2, by // 2
  if 2 * w > 3 * h then
    if math.abs(ax2 + ay2) % 2 == 1 and w > 2 then
      ax2, ay2 = ax2 + dax, ay2 + day
    end
    walk(x, y, ax2, ay2, bx, by, visit)
    walk(x + ax2, y + ay2, ax - ax2, ay - ay2, bx, by, visit)
    return
  end
  if math.abs(bx2 + by2) % 2 == 1 and h > 2 then
    bx2, by2 = bx2 + dbx, by2 + dby
  end
  walk(x, y, bx2, by2, ax2, ay2, visit)
  walk(x + bx2, y + by2, ax, ay, bx - bx2, by - by2, visit)
  walk(x + (ax - dax) + (bx2 - dbx), y + (ay - day) + (by2 - dby),
       -bx2, -by2, -(ax - ax2), -(ay - ay2), visit)
end

--- The places of an m by n grid of clusters along a curve of Hilbert's kind,
-- on which neighbours in time are neighbours in place: a tensor of i32 for
-- PersistentTileSchedulerParams' order. Of the host.
---@param m integer
---@param n integer
---@return table tensor (m * n) of i32, m + n * 65536
function schedule.hilbert_tile_order(m, n)
  if m < 1 or n < 1 or m > 65535 or n > 32767 then
    core.fail("bad-argument", ("hilbert_tile_order: %d x %d tiles; 1 to "
      .. "65535 x 32767 can be"):format(m, n))
  end
  local b, at = core.buffer(core.i32, m * n), 0
  local function visit(x, y)
    b[at], at = x | y << 16, at + 1
  end
  if m >= n then walk(0, 0, m, 0, 0, n, visit)
  else walk(0, 0, 0, n, m, 0, visit) end
  return core.make_tensor(b, core.make_layout(m * n))
end

sign.class("PersistentTileSchedulerParams", Params,
  "total_clusters() get_grid_shape(max_active_clusters: integer)", "order")
sign.class("StaticPersistentTileScheduler", Static, [[
  is_valid() get_current_work() initial_work_tile_info()
  advance_to_next_work(advance_count?: integer|value)
]])

return sign.public("utils.", schedule, [[
  PersistentTileSchedulerParams(problem_shape_ntile_mnl: table,
    cluster_shape_mnk?: table, opts?: table)
  StaticPersistentTileScheduler(params: PersistentTileSchedulerParams,
    block_idx?: table, grid_dim?: table)
  WorkTileInfo(tile_idx: table, is_valid_tile: boolean|value|function)
  hilbert_tile_order(m: integer, n: integer)
]])
