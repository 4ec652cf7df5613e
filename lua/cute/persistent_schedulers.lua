--- cute.utils: tile schedulers of persistent kernels. A launch of such a kernel
-- has fewer blocks than the result has tiles. The scheduler selects the tiles
-- that each block computes.
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
-- The tiles have an order (below), in which they are distributed to the
-- clusters: cluster c of C computes positions c, c + C, c + 2 C ... In this
-- order, swizzle_size tiles of one mode are adjacent, so that blocks that run
-- at the same time share the data they read:
--
--     raster_along_m, swizzle_size 2      raster along n, swizzle_size 2
--          n 0  1  2  3                        n 0  1  2  3
--     m 0    0  1  8  9                   m 0    0  2  4  6
--     m 1    2  3 10 11                   m 1    1  3  5  7
--     m 2    4  5 12 13                   m 2    8 10 12 14
--     m 3    6  7 14 15                   m 3    9 11 13 15
--
-- In PersistentTileSchedulerParams, all numbers are in tiles; each block of a
-- cluster computes one tile. If the last clusters extend beyond the result,
-- some of their tiles are outside. All blocks of a cluster get the same
-- is_valid_tile, so all of them continue or all end.
local sign = require "cute.lang.signature"
local core = require "cute.core"
local arch = require "cute.arch"
local states = require "cute.pipe.state"
local sync = require "cute.pipe.sync"

local schedule = {}

local function branch() return require "cute.lang.branch" end
local function trace() return require "cute.lang.trace" end

-- If a kernel receives the parameters as an argument, cluster_shape and
-- swizzle_size are constants of the kernel. The numbers of tiles and clusters
-- can differ between launches of the same program.
local Params = {__constants = {cluster_shape = true, swizzle_size = true}}
Params.__index = Params

local function positive(what, n)
  if core.typename(n) == "value" then return n end
  if math.type(n) ~= "integer" or n < 1 then
    core.fail("bad-argument", ("PersistentTileSchedulerParams: %s of %s; an "
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

--- Makes the parameters of a scheduler. Arguments are the number of tiles of
-- the result along M, N and L (batches), and the number of blocks of a cluster
-- along M and N (1 along K).
---@param problem_shape_ntile_mnl any[] integers, or values of the kernel
---@param cluster_shape_mnk? integer[] {1, 1, 1} if absent
---@param opts? integer|table {swizzle_size: integer, raster_along_m: boolean,
-- order: table}
-- swizzle_size is 1 and raster_along_m true if absent; order: an i32 tensor
-- that lists the coordinates of clusters (m + n * 65536) in the order to use
-- instead (see hilbert_tile_order)
---@param raster_along_m? boolean may follow if opts is the integer swizzle_size
function schedule.PersistentTileSchedulerParams(problem_shape_ntile_mnl,
                                                cluster_shape_mnk, opts,
                                                raster_along_m)
  local cluster = cluster_shape_mnk or {1, 1, 1}
  sign.list("the shape in tiles", problem_shape_ntile_mnl)
  sign.list("the shape of a cluster", cluster)
  if type(opts) ~= "table" then
    opts = {swizzle_size = opts, raster_along_m = raster_along_m}
  end
  local p = {cluster_shape = {}, clusters = {}, tiles = {}}
  for i, name in ipairs {"M", "N", "L"} do
    local tiles = positive(name, problem_shape_ntile_mnl[i] or 1)
    local blocks = i < 3 and positive("a cluster's " .. name, cluster[i] or 1)
      or 1
    p.tiles[i], p.cluster_shape[i] = tiles, blocks
    p.clusters[i] = at_least_one(ceil_div(tiles, blocks))
  end
  if (cluster[3] or 1) ~= 1 then
    core.fail("bad-argument", "PersistentTileSchedulerParams: a cluster must "
      .. "have one block along K, not " .. core.show(cluster[3]))
  end
  p.swizzle_size = positive("swizzle_size", opts.swizzle_size or 1)
  p.raster_along_m = opts.raster_along_m ~= false
  p.order = opts.order
  p.one_batch = core.same(p.tiles[3], 1)
  return setmetatable(p, Params)
end

-- Tells the compiler that a kernel's parameters have at least one cluster.
-- Returns the parameters.
local function of_kernel(params)
  for _, n in ipairs(params.clusters) do at_least_one(n) end
  return params
end

--- Returns the number of clusters that cover all tiles.
function Params:total_clusters()
  return self.clusters[1] * self.clusters[2] * self.clusters[3]
end

--- Returns the grid of a launch in which at most max_active_clusters clusters
-- run at once.
---@param max_active_clusters integer
---@return integer[] {M of the cluster, N of the cluster, number of clusters}
function Params:get_grid_shape(max_active_clusters)
  if max_active_clusters < 1 then
    core.bad_argument(1, "1 cluster or more", max_active_clusters)
  end
  return {self.cluster_shape[1], self.cluster_shape[2],
          math.min(self:total_clusters(), max_active_clusters)}
end

-- Returns the coordinates {m, n} of the cluster at position `i` in the order of
-- the tiles of one matrix.
local function in_order(p, i)
  if p.order then
    local word = p.order[i]
    return word & 0xffff, (word >> 16) & 0xffff
  end
  -- The order visits groups of swizzle_size clusters. `slow` is the mode along
  -- which a group is traversed; `fast` is the mode that the groups divide.
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

-- Computes the field is_valid_tile only when a kernel reads it: unused
-- comparisons in a kernel are reported.
function Work.__index(work, name)
  if name ~= "is_valid_tile" then return nil end
  local valid = rawget(work, "valid")
  return type(valid) == "function" and valid() or valid
end

--- Makes an object for the tile {m, n, l}. is_valid_tile is a boolean, or a
-- function that returns one.
---@param tile_idx any[]
---@param is_valid_tile any
function schedule.WorkTileInfo(tile_idx, is_valid_tile)
  return setmetatable({tile_idx = tile_idx, valid = is_valid_tile}, Work)
end

local Static = {}

-- Computes the number of executed tiles only when a kernel reads this field, so
-- that loops carry fewer variables.
function Static.__index(tiles, name)
  if name ~= "num_tiles_executed" then return Static[name] end
  return (tiles.current_work_linear_idx - tiles.first_work_linear_idx)
    // tiles.num_persistent_clusters
end

--- Makes a scheduler of this block's tiles. The first position is the number of
-- the block's cluster; each later position is larger by the number of clusters.
-- block_idx and grid_dim are three numbers each; by default, the block's index
-- and the grid's extents.
---@param params table from PersistentTileSchedulerParams
---@param block_idx? any[]
---@param grid_dim? any[]
function schedule.StaticPersistentTileScheduler(params, block_idx, grid_dim)
  block_idx = block_idx or {arch.block_idx()}
  grid_dim = grid_dim or {arch.grid_dim()}
  return setmetatable({params = of_kernel(params),
                       num_persistent_clusters = grid_dim[3],
                       current_work_linear_idx = block_idx[3],
                       first_work_linear_idx = block_idx[3],
                       cta_id_in_cluster = {block_idx[1], block_idx[2]}},
                      Static)
end

--- Reports whether there is a tile at the current position.
function Static:is_valid()
  return core.lt(self.current_work_linear_idx, self.params:total_clusters())
end

-- Returns this block's tile if its cluster is at position `i`. Its fields are
-- tile_idx = {m, n, l} and is_valid_tile.
local function work_at(self, i)
  local p = self.params
  local plane = at_least_one(p.clusters[1] * p.clusters[2])
  local l = p.one_batch and 0 or i // plane
  local m, n = in_order(p, p.one_batch and i or i - l * plane)
  local id, shape = self.cta_id_in_cluster, p.cluster_shape
  if shape[1] > 1 then m = m * shape[1] + id[1] end
  if shape[2] > 1 then n = n * shape[2] + id[2] end
  return schedule.WorkTileInfo({m, n, l}, function()
    return core.lt(i, p:total_clusters())
  end)
end

--- Returns the tile at the current position as a WorkTileInfo, with the fields
-- tile_idx = {m, n, l} and is_valid_tile.
function Static:get_current_work()
  return work_at(self, self.current_work_linear_idx)
end

--- Returns the tile at the initial position.
function Static:initial_work_tile_info() return self:get_current_work() end

--- Advances to the next position, or by advance_count positions.
---@param advance_count? integer|cute.Value
function Static:advance_to_next_work(advance_count)
  self.current_work_linear_idx = self.current_work_linear_idx
    + (advance_count or 1) * self.num_persistent_clusters
end

---------------------------------------------------------------------------
-- Dynamic tiles from a counter
---------------------------------------------------------------------------

local Dynamic, Giver, Taker = {}, {}, {}
Dynamic.__index = Dynamic

-- Raises an error for an option of DynamicPersistentTileScheduler.
local function bad_option(name, want, given)
  core.fail("bad-argument", ("DynamicPersistentTileScheduler: %s must be %s, "
    .. "got %s\n  write {counter = an i32 tensor of global memory that holds 0,"
    .. " consumer_group = CooperativeGroup(Agent.Warp, n)}"):format(name, want,
    given == nil and "nothing" or core.show(given)))
end

local function check_dynamic(opts)
  local counter, group = opts.counter, opts.consumer_group
  if core.typename(counter) ~= "tensor" or counter.memspace ~= "gmem"
    or counter.dtype ~= core.i32 then
    bad_option("counter", "an i32 tensor of global memory", counter)
  elseif type(group) ~= "table" or group.agent == nil then
    bad_option("consumer_group", "a CooperativeGroup", group)
  end
end

--- Makes a scheduler that assigns tiles to clusters as they become idle. A
-- cluster's first tile has the cluster's number. The cluster draws the numbers
-- of its other tiles from a counter in global memory. This balances tiles of
-- different duration, and blocks that begin late.
--
-- In each block, the thread that loads the tiles calls producer(). In a
-- cluster's first block, this thread also draws numbers, one tile ahead, and
-- sends them to the shared memory of all blocks. The other threads
-- (`consumer_group` in each block) call consumer(). Use the objects that
-- producer() and consumer() return like a StaticPersistentTileScheduler:
--
--     local tiles = cute.utils.DynamicPersistentTileScheduler(params, {
--       counter = counter, consumer_group = Group(Agent.Warp, 8)})
--     cute.when(is_producer, function()        -- one thread
--       local work = tiles:producer()
--       cute.loop(function() return work:is_valid() end, function()
--         ...                                  -- load work:get_current_work()
--         work:advance_to_next_work()
--       end)
--       work:tail()
--     end, function() local work = tiles:consumer() ... end)
--
-- The counter, an i32, is 0 before and after a launch: the last draw resets it.
---@param params table from PersistentTileSchedulerParams
---@param opts table {counter: table, consumer_group: table,
-- num_stages: integer?, maker: cute.Value?, defer_sync: boolean?}
-- counter: a tensor of global memory; num_stages: the number of tile numbers
-- that can be pending, 2 if absent; maker, defer_sync: see
-- pipeline.MbarrierArray, PipelineAsync
---@param block_idx? any[]
---@param grid_dim? any[]
function schedule.DynamicPersistentTileScheduler(params, opts, block_idx,
                                                 grid_dim)
  check_dynamic(opts)
  block_idx = block_idx or {arch.block_idx()}
  grid_dim = grid_dim or {arch.grid_dim()}
  local stages, group = opts.num_stages or 2, opts.consumer_group
  local blocks = params.cluster_shape[1] * params.cluster_shape[2]
  -- The mbarriers `empty` count one arrival for each thread or warp that reads
  -- a tile number: all consumers, and all producers except the one that drew
  -- the number.
  local self = setmetatable({params = of_kernel(params), counter = opts.counter,
    blocks = blocks, group = group, num_stages = stages,
    scope = blocks > 1 and "cluster" or nil,
    number = arch.alloc_smem(core.i32, stages),
    full = sync.MbarrierArray {num_stages = stages, arrivals = 1,
                               maker = opts.maker},
    empty = sync.MbarrierArray {num_stages = stages, maker = opts.maker,
      arrivals = blocks * group.size + blocks - 1},
    num_persistent_clusters = grid_dim[3], first = block_idx[3],
    cta_id_in_cluster = {block_idx[1], block_idx[2]}}, Dynamic)
  if not opts.defer_sync then sync.agent_sync(blocks > 1) end
  return self
end

-- Makes an iterator of class `class` over tiles. It begins at the cluster's own
-- tile, and at the first stage of the ring that passes tile numbers.
local function walker(tiles, class, user)
  return setmetatable({tiles = tiles, params = tiles.params,
    cta_id_in_cluster = tiles.cta_id_in_cluster,
    current_work_linear_idx = tiles.first,
    state = states.make_pipeline_state(user, tiles.num_stages)}, class)
end

local function leads() return core.eq(arch.block_idx_in_cluster(), 0) end

-- Draws the number of the cluster's next tile from the counter. Each cluster
-- also draws once when no tile is left, so the counter shows which draw is the
-- last of the launch.
local function draw(tiles)
  local counter, clusters = tiles.counter, tiles.num_persistent_clusters
  local drawn = arch.atomic_add(counter.iterator, 1)
  local last = tiles.params:total_clusters() + clusters - 1
  branch().when(core.eq(drawn, last), function()
    arch.store(counter.iterator, 0, {sem = "relaxed", scope = "gpu"})
  end)
  return drawn + clusters
end

--- Makes the iterator for the thread that loads the tiles. In the cluster's
-- first block, this thread also draws the tile numbers.
function Dynamic:producer()
  local work = walker(self, Giver, "producer")
  if self.blocks == 1 then work.next = draw(self); return work end
  work.next = 0
  branch().when(leads(), function() work.next = draw(self) end)
  return work
end

--- Makes the iterator for a thread that only receives tile numbers.
function Dynamic:consumer() return walker(self, Taker, "consumer") end

-- Waits until the current stage of the ring has a tile number, and returns this
-- number.
local function take(work, phase)
  local tiles, index = work.tiles, work.state.index
  tiles.full:wait(index, phase, tiles.scope)
  local drawn = arch.load(tiles.number + index)
  return drawn
end

local function give_back(work)
  work.tiles.empty:arrive(work.state.index, work.tiles.scope and 0,
                          work.tiles.scope)
end

-- Sends the drawn number to all blocks of the cluster, and draws the next one.
-- If there is only one block, stores the number instead of sending it.
local function send(work)
  local tiles, index = work.tiles, work.state.index
  tiles.empty:wait(index, work.state.phase, tiles.scope)
  if tiles.blocks == 1 then
    arch.store(tiles.number + index, work.next)
    tiles.full:arrive(index)
  else
    tiles.full:arrive_and_expect_tx(index, 4)
    for rank = 0, tiles.blocks - 1 do
      arch.store_async_dsmem(tiles.number + index, work.next,
                             tiles.full:get_barrier(index), rank)
    end
  end
  work.current_work_linear_idx = work.next
  work.next = draw(tiles)
end

--- Advances to the next tile number. The cluster's first block draws and sends
-- this number; other blocks receive it.
function Giver:advance_to_next_work()
  if self.tiles.blocks == 1 then send(self)
  else
    branch().when(leads(), function() send(self) end, function()
      self.tiles.full:arrive_and_expect_tx(self.state.index, 4)
      self.current_work_linear_idx = take(self, self.state.phase ~ 1)
      give_back(self)
    end)
  end
  self.state:advance()
end

--- Waits until all blocks of the cluster have read the numbers that this block
-- sent, so that shared memory can be released.
function Giver:tail()
  local tiles = self.tiles
  if tiles.blocks == 1 then return end
  branch().when(leads(), function()
    for _ = 1, tiles.num_stages do
      tiles.empty:wait(self.state.index, self.state.phase)
      self.state:advance()
    end
  end)
end

--- Advances to the next position, or by advance_count positions.
---@param advance_count? integer|cute.Value
function Taker:advance_to_next_work(advance_count)
  local function one()
    self.current_work_linear_idx = take(self, self.state.phase)
    arch.sync_warp()
    if self.tiles.group.agent == "thread" then give_back(self)
    else
      branch().when(core.eq(arch.lane_idx(), 0), function()
        give_back(self)
      end)
    end
    self.state:advance()
  end
  if (advance_count or 1) == 1 then return one() end
  -- After a number without a tile, no further number is sent, so a wait for one
  -- would never end.
  for _ in trace().range(advance_count) do
    branch().when(self:is_valid(), one)
  end
end

for _, class in ipairs {Giver, Taker} do
  class.__index = class
  class.is_valid = Static.is_valid
  class.get_current_work = Static.get_current_work
  class.initial_work_tile_info = Static.initial_work_tile_info
end

---------------------------------------------------------------------------
-- Stream-K: the last tiles are split along K
---------------------------------------------------------------------------

local StreamK = {}
StreamK.__index = StreamK

--- Makes a scheduler that splits some tiles along K (stream-K), so that all
-- clusters end at about the same time.
--
-- For example, 4 clusters need two and a half waves for 10 tiles: half of the
-- clusters would idle in the third wave. The scheduler distributes all full
-- waves except one (here one wave) as whole tiles. The 6 remaining tiles have 6
-- * k_tiles steps along K. Each cluster executes a quarter of these steps (one
-- and a half tiles) before its whole tile:
--
--     steps   0       1       2       3       4       5       6    tiles
--             |-------|---+---|-------|-------|---+---|-------|
--     range   |     0     |     1     |     2     |     3     |
--
-- Clusters at different steps read different parts of A and B, which all have
-- to fit in L2. With the option `equal` = n, all full waves (here two) consist
-- of whole tiles. The remaining tiles (here 2) are split into equal parts: each
-- tile into as many parts as there are clusters for it, but at most n.
--
--     range   | 0 | 1 | 2 | 3 |
--
-- In this example clusters 0 and 2 finish the split tiles, so they execute
-- their whole tiles first and their parts of the split tiles last. The other
-- clusters execute their parts first.
--
-- The cluster that executes a tile's first step finishes the tile: it adds the
-- partial sums of the clusters that execute the tile's other steps. Those
-- clusters start earlier, and store their partial sums before they wait for
-- anything. So the finishing cluster never deadlocks, and does not wait for
-- long.
--
--     local tiles = cute.utils.StreamKTileScheduler(params, k_tiles)
--     cute.loop(function() return tiles:is_valid() end, function()
--       local w = tiles:get_current_work()
--       ...                    -- w.k_count tiles along K, from w.k_first on
--       cute.when(cute.eq(w.k_first, 0), function()
--         local from = w.range + 1       -- others' sums, always in this order
--         cute.loop(function() return tiles:has_part(from, w) end, function()
--           ...                          -- wait for the sums of range `from`
--           from = from + 1              -- and add them
--         end)
--         ...                            -- store the tile
--       end, function() ... end)         -- store partial sums for w.range
--       tiles:advance_to_next_work()
--     end)
--
-- A cluster has one range of consecutive steps and stores partial sums at most
-- once, so one buffer for each range is sufficient. Parts of less than `least`
-- steps are merged with a neighbouring part. If the tiles fill all waves, no
-- tile is split.
---@param params table from PersistentTileSchedulerParams
---@param k_tiles any number of tiles along K, at least 1
---@param opts? {least: integer, equal: integer} least is 1 if absent
---@param block_idx? any[] this block's index if absent
---@param grid_dim? any[]
function schedule.StreamKTileScheduler(params, k_tiles, opts, block_idx,
                                       grid_dim)
  opts = opts or {}
  if math.type(k_tiles) and k_tiles < 1 then
    core.bad_argument(2, "1 tile along K or more", k_tiles)
  end
  block_idx = block_idx or {arch.block_idx()}
  grid_dim = grid_dim or {arch.grid_dim()}
  local clusters = at_least_one(grid_dim[3])
  local total = of_kernel(params):total_clusters()
  local self = setmetatable({params = params, k_tiles = k_tiles,
    num_persistent_clusters = clusters, range = clusters - 1 - block_idx[3],
    current_work_linear_idx = block_idx[3],
    cta_id_in_cluster = {block_idx[1], block_idx[2]}}, StreamK)
  local waves = total // clusters
  local rest = total - waves * clusters
  if opts.equal then
    self.whole = waves * clusters
    self.parts = core.min(clusters // core.max(rest, 1),
                          core.min(positive("equal", opts.equal), k_tiles))
  else
    self.least = positive("least", opts.least or 1)
    self.whole = core.where(core.gt(rest, 0), core.max(waves - 1, 0), waves)
      * clusters
    local steps = (total - self.whole) * k_tiles
    self.each = steps // clusters
    self.further = steps - self.each * clusters
  end
  self.at, self.stop = self:first_step(self.range),
    self:first_step(self.range + 1)
  return self
end

--- Returns the number of the first step of a range. The steps of all split
-- tiles are numbered consecutively.
function StreamK:first_step(range)
  local k = self.k_tiles
  if self.parts then
    local rest = self.params:total_clusters() - self.whole
    local tile = range // self.parts
    local part = range - tile * self.parts
    return core.where(core.lt(tile, rest), tile * k + part * k // self.parts,
                      rest * k)
  end
  local step = range * self.each + core.min(range, self.further)
  if self.least == 1 then return step end
  local tile, least = step // k, self.least
  local inside = step - tile * k
  return core.where(core.lt(inside, least), tile * k,
    core.where(core.lt(k - inside, least), (tile + 1) * k, step))
end

-- Reports whether the work at the current position is a part of a split tile.
-- With equal parts, a cluster that finishes a tile executes its own part of
-- this tile last, when the other parts are ready.
local function in_range(self)
  local inside = core.lt(self.at, self.stop)
  if not self.parts then return inside end
  local k = self.k_tiles
  return inside & (core.gt(self.at - self.at // k * k, 0)
    | core.ge(self.current_work_linear_idx, self.whole))
end

--- Reports whether there is work at the current position.
function StreamK:is_valid()
  return core.lt(self.at, self.stop)
    | core.lt(self.current_work_linear_idx, self.whole)
end

--- Returns the work at the current position. Its fields are tile_idx = {m, n,
-- l}, the first tile along K and the number of these tiles (k_first, k_count),
-- and range, the number of this cluster's range.
function StreamK:get_current_work()
  local k, divided = self.k_tiles, in_range(self)
  local tile = self.at // k
  local inside = self.at - tile * k
  local w = work_at(self, core.where(divided, self.whole + tile,
                                     self.current_work_linear_idx))
  w.k_first = core.where(divided, inside, 0)
  w.k_count = core.where(divided, core.min(k - inside, self.stop - self.at), k)
  w.range = self.range
  w.last_step = core.where(divided, (tile + 1) * k, 0)
  return w
end

StreamK.initial_work_tile_info = Static.initial_work_tile_info

--- Reports whether range `from` begins inside the tile of work `w`. If so, the
-- cluster with range `from` computes a part of this tile. `from` must be after
-- w's own range.
function StreamK:has_part(from, w)
  return core.lt(self:first_step(from), w.last_step)
end

--- Advances to the next position.
function StreamK:advance_to_next_work()
  local divided = in_range(self)
  local next_tile = (self.at // self.k_tiles + 1) * self.k_tiles
  self.at = core.where(divided, core.min(next_tile, self.stop), self.at)
  self.current_work_linear_idx = self.current_work_linear_idx
    + core.where(divided, 0, self.num_persistent_clusters)
end

---------------------------------------------------------------------------
-- Hilbert curve
---------------------------------------------------------------------------

local function sgn(x) return x > 0 and 1 or x < 0 and -1 or 0 end

-- Calls visit(x, y) for the points of a rectangle of any extents, along a curve
-- whose consecutive points are neighbours. The curve begins at (x, y). The
-- vector (ax, ay) spans the rectangle along the curve, (bx, by) across it. The
-- algorithm splits the rectangle into halves and quarters like Hilbert's curve,
-- and leaves odd extents to the last part: J. Cerveny's generalised Hilbert
-- curve (2018).
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

--- Returns the positions of clusters in an m by n grid along a generalised
-- Hilbert curve, whose consecutive positions are neighbours. The result is a
-- host tensor of i32, for the option `order` of PersistentTileSchedulerParams.
---@param m integer
---@param n integer
---@return table tensor (m * n) of i32 with elements m + n * 65536
function schedule.hilbert_tile_order(m, n)
  if m < 1 or n < 1 or m > 65535 or n > 32767 then
    core.fail("bad-argument", ("hilbert_tile_order: %d x %d tiles; 1 to 65535 "
      .. "x 32767 are possible"):format(m, n))
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
local WALK = "is_valid() get_current_work() initial_work_tile_info() "
sign.class("DynamicPersistentTileScheduler", Dynamic, "producer() consumer()",
           "group scope")
sign.class("DynamicTileProducer", Giver,
           WALK .. "advance_to_next_work() tail()")
sign.class("DynamicTileConsumer", Taker,
           WALK .. "advance_to_next_work(advance_count?: integer|value)")
sign.class("StreamKTileScheduler", StreamK, [[
  is_valid() get_current_work() initial_work_tile_info()
  first_step(range: integer|value) has_part(from: integer|value, w: table)
  advance_to_next_work()
]])

return sign.public("utils.", schedule, [[
  PersistentTileSchedulerParams(problem_shape_ntile_mnl: table,
    cluster_shape_mnk?: table,
    opts?: integer|value|{order raster_along_m swizzle_size},
    raster_along_m?: boolean)
  StaticPersistentTileScheduler(params: PersistentTileSchedulerParams,
    block_idx?: table, grid_dim?: table)
  DynamicPersistentTileScheduler(params: PersistentTileSchedulerParams,
    opts: {consumer_group counter defer_sync maker num_stages},
    block_idx?: table, grid_dim?: table)
  StreamKTileScheduler(params: PersistentTileSchedulerParams,
    k_tiles: integer|value, opts?: {equal least},
    block_idx?: table, grid_dim?: table)
  WorkTileInfo(tile_idx: table, is_valid_tile: boolean|value|function)
  hilbert_tile_order(m: integer, n: integer)
]])
-- SPDX-License-Identifier: MIT
