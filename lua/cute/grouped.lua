--- cute.utils: tile schedulers for grouped GEMMs, which compute several
-- problems in one launch. The kernel reads the problems' extents from memory.
--
-- StaticPersistentGroupTileScheduler handles groups with different extents. A
-- tensor (G,4) of i32 holds M, N, K and L = 1 of each group. The tile positions
-- of all groups are numbered consecutively. If C clusters run, each cluster
-- computes every C-th position. It searches for the group and the tile of the
-- position:
--
--     local params = utils.PersistentTileSchedulerParams(
--       {CM, CN, clusters_of_all_groups}, {CM, CN, 1})
--     local tiles = utils.StaticPersistentGroupTileScheduler(params, nil, nil,
--       {CM * BM, CN * BN, BK}, utils.create_initial_search_state(), G, shapes)
--     cute.loop(function() return tiles:is_valid() end, function()
--       local at = tiles:get_current_work().group_search_result
--       ... -- tile at.cta_tile_idx_m, at.cta_tile_idx_n of group at.group_idx
--       tiles:advance_to_next_work()
--     end)
--
-- contiguous_group_search handles groups that are consecutive along one mode.
-- An array of offsets, `cumsum`, holds where each group begins. The host does
-- not know these offsets, so it does not know the number of tiles. Use this
-- search with StaticPersistentRuntimeTileScheduler, which has no last position;
-- the search reports the end.
--
-- A search continues where the previous search ended, so request positions in
-- rising order. Each thread does the whole search.
local sign = require "cute.lang.signature"
local core = require "cute.core"
local arch = require "cute.arch"
local schedule = require "cute.persistent_schedulers"

local grouped = {}

local function trace() return require "cute.lang.trace" end

local function ceil_div(a, b) return (a + (b - 1)) // b end

-- Returns the list t of n plain integers. Raises an error if one is below 1.
local function extents(what, t, n)
  for i = 1, n do
    if math.type(t[i]) ~= "integer" or t[i] < 1 then
      core.fail("bad-argument", ("%s = %s; %d integers of 1 or more are needed")
        :format(what, core.show(t), n))
    end
  end
  return t
end

---------------------------------------------------------------------------
-- A scheduler without an end
---------------------------------------------------------------------------

local Runtime = {}
Runtime.__index = Runtime

--- Makes a scheduler over a plane of tiles. Each of the grid_dim[3] clusters
-- visits every grid_dim[3]-th position. Positions run along the plane's inner
-- mode, whose extent is known. The other mode has no end, so there is always a
-- next position: the kernel must detect that no work is left.
---@param params table from PersistentTileSchedulerParams
---@param block_idx? any[] this block's index if absent
---@param grid_dim? any[]
---@param inner_mode? integer 0 (M) or 1 (N), 1 if absent
function grouped.StaticPersistentRuntimeTileScheduler(params, block_idx,
                                                      grid_dim, inner_mode)
  inner_mode = inner_mode or 1
  if inner_mode ~= 0 and inner_mode ~= 1 then
    core.fail("bad-argument", ("inner_mode = %d; 0 (M) or 1 (N) is "
      .. "needed"):format(
      inner_mode))
  end
  block_idx = block_idx or {arch.block_idx()}
  grid_dim = grid_dim or {arch.grid_dim()}
  return setmetatable({params = params, inner_mode = inner_mode,
    num_persistent_clusters = grid_dim[3],
    current_work_linear_idx = block_idx[3], num_tiles_executed = 0}, Runtime)
end

--- Returns the current position as a WorkTileInfo. Its fields are tile_idx =
-- {m, n, 0}, counted in clusters, and is_valid_tile, which is always true.
function Runtime:get_current_work()
  local inner = self.params.clusters[self.inner_mode + 1]
  local i = self.current_work_linear_idx
  local outer = core.same(inner, 1) and i or i // inner
  local at = {outer, outer, 0}
  at[self.inner_mode + 1] = inner == 1 and 0 or i - outer * inner
  return schedule.WorkTileInfo(at, true)
end

--- Returns the tile at the initial position.
function Runtime:initial_work_tile_info() return self:get_current_work() end

--- Advances to the next position, or by advance_count positions.
---@param advance_count? integer|cute.Value
function Runtime:advance_to_next_work(advance_count)
  local n = advance_count or 1
  self.current_work_linear_idx = self.current_work_linear_idx
    + n * self.num_persistent_clusters
  self.num_tiles_executed = self.num_tiles_executed + n
end

---------------------------------------------------------------------------
-- Groups with different extents
---------------------------------------------------------------------------

local State = {}
State.__index = State

--- Makes the state of a search: the number of groups examined so far, the
-- number of positions before the last of these groups, and the number of
-- positions up to the end of that group. A traced loop can change the state.
---@param start_group_idx integer|cute.Value
---@param tile_count_prev_group integer|cute.Value
---@param tile_count_searched integer|cute.Value
function grouped.GroupedGemmGroupSearchState(start_group_idx,
                                             tile_count_prev_group,
                                             tile_count_searched)
  return setmetatable({start_group_idx = start_group_idx,
                       tile_count_prev_group = tile_count_prev_group,
                       tile_count_searched = tile_count_searched}, State)
end

--- Returns the state of a search that has not examined any group.
function grouped.create_initial_search_state()
  return grouped.GroupedGemmGroupSearchState(0, 0, 0)
end

local Result = {}
Result.__index = Result

--- Makes the result of a search for a group: the group, the tile in it, the
-- group's extents, and its number of tiles along K.
---@param group_idx any
---@param cta_tile_idx_m any
---@param cta_tile_idx_n any
---@param problem_shape_m any
---@param problem_shape_n any
---@param problem_shape_k any
---@param cta_tile_count_k any
function grouped.GroupSearchResult(group_idx, cta_tile_idx_m, cta_tile_idx_n,
                                   problem_shape_m, problem_shape_n,
                                   problem_shape_k, cta_tile_count_k)
  return setmetatable({group_idx = group_idx, cta_tile_idx_m = cta_tile_idx_m,
    cta_tile_idx_n = cta_tile_idx_n, problem_shape_m = problem_shape_m,
    problem_shape_n = problem_shape_n, problem_shape_k = problem_shape_k,
    cta_tile_count_k = cta_tile_count_k}, Result)
end

--- Makes a WorkTileInfo with the additional field group_search_result: the
-- tile's group and its extents (see GroupSearchResult).
---@param tile_idx any[]
---@param is_valid_tile any
---@param group_search_result table
function grouped.GroupedWorkTileInfo(tile_idx, is_valid_tile,
                                     group_search_result)
  local work = schedule.WorkTileInfo(tile_idx, is_valid_tile)
  work.group_search_result = group_search_result
  return work
end

local Helper = {}
Helper.__index = Helper

--- Makes an object that finds the group to which a position belongs. Its method
-- delinearize_z also returns the tile in this group.
---@param group_count integer|cute.Value
---@param tile_sched_params table from PersistentTileSchedulerParams: the shape
-- of clusters, and the order of the positions of a group
---@param cluster_tile_shape_mnk integer[] the tile of one cluster
---@param search_state table from create_initial_search_state
function grouped.GroupedGemmTileSchedulerHelper(group_count, tile_sched_params,
                                                cluster_tile_shape_mnk,
                                                search_state)
  return setmetatable({group_count = group_count, params = tile_sched_params,
    tile = extents("cluster_tile_shape_mnk", cluster_tile_shape_mnk, 3),
    state = search_state}, Helper)
end

-- Returns the number of clusters along M and N of a group.
local function clusters_of(h, shapes, group)
  return ceil_div(shapes[{group, 0}], h.tile[1]),
         ceil_div(shapes[{group, 1}], h.tile[2])
end

-- Advances the search until the examined groups contain position i. Returns the
-- index of the group that contains it.
local function search(h, i, shapes)
  local s = h.state
  for group in trace().range(s.start_group_idx, h.group_count) do
    trace().break_if(core.lt(i, s.tile_count_searched))
    local m, n = clusters_of(h, shapes, group)
    s.tile_count_prev_group = s.tile_count_searched
    s.tile_count_searched = s.tile_count_searched + m * n
    s.start_group_idx = group + 1
  end
  return s.start_group_idx - 1
end

--- Returns the tile at cta_tile_coord = {m, n, i}, where i is the position of a
-- cluster, and (m,n) selects a CTA in the cluster. After the last group's
-- positions the result is meaningless.
---@param cta_tile_coord any[]
---@param problem_shape_mnkl table (G,4) of i32
---@return table from GroupSearchResult
function Helper:delinearize_z(cta_tile_coord, problem_shape_mnkl)
  local i, p = cta_tile_coord[3], self.params
  local group = search(self, i, problem_shape_mnkl)
  local m, n = clusters_of(self, problem_shape_mnkl, group)
  local at = schedule.StaticPersistentTileScheduler(
    schedule.PersistentTileSchedulerParams({core.max(m, 1), core.max(n, 1)},
      nil, {swizzle_size = p.swizzle_size, raster_along_m = p.raster_along_m}),
    {0, 0, i - self.state.tile_count_prev_group}, {1, 1, 1})
    :get_current_work().tile_idx
  local k = problem_shape_mnkl[{group, 2}]
  return grouped.GroupSearchResult(group,
    at[1] * p.cluster_shape[1] + cta_tile_coord[1],
    at[2] * p.cluster_shape[2] + cta_tile_coord[2],
    problem_shape_mnkl[{group, 0}], problem_shape_mnkl[{group, 1}], k,
    ceil_div(k, self.tile[3]))
end

--- Returns the number of K tiles of the group that contains position
-- cta_tile_coord[3], and the group's index. This is sufficient for threads that
-- do not need the tile's coordinate.
---@param cta_tile_coord any[]
---@param problem_shape_mnkl table (G,4) of i32
---@return any count, any group_idx
function Helper:search_cluster_tile_count_k(cta_tile_coord, problem_shape_mnkl)
  local group = search(self, cta_tile_coord[3], problem_shape_mnkl)
  return ceil_div(problem_shape_mnkl[{group, 2}], self.tile[3]), group
end

local Group = {}
Group.__index = Group

--- Makes a scheduler that iterates over this block's tiles of all groups, like
-- StaticPersistentTileScheduler. params holds the cluster's shape along M and
-- N. The extent of params along L is the number of clusters of all groups.
---@param params table from PersistentTileSchedulerParams
---@param block_idx? any[] this block's index if absent
---@param grid_dim? any[]
---@param cluster_tile_shape_mnk integer[]
---@param initial_search_state table from create_initial_search_state
---@param group_count integer|cute.Value
---@param problem_shape_mnkl table (G,4) of i32
function grouped.StaticPersistentGroupTileScheduler(params, block_idx, grid_dim,
                                                    cluster_tile_shape_mnk,
                                                    initial_search_state,
                                                    group_count,
                                                    problem_shape_mnkl)
  return setmetatable({
    walk = schedule.StaticPersistentTileScheduler(params, block_idx, grid_dim),
    helper = grouped.GroupedGemmTileSchedulerHelper(group_count, params,
      cluster_tile_shape_mnk, initial_search_state),
    problem_shape_mnkl = problem_shape_mnkl}, Group)
end

--- Reports whether there is a tile at the current position.
function Group:is_valid() return self.walk:is_valid() end

--- Returns the tile at a position, like delinearize_z of
-- GroupedGemmTileSchedulerHelper.
---@param cta_tile_coord any[]
---@return table from GroupSearchResult
function Group:delinearize_z(cta_tile_coord)
  return self.helper:delinearize_z(cta_tile_coord, self.problem_shape_mnkl)
end

--- Returns the tile at the current position. Its fields are tile_idx = {m, n,
-- position}, where (m,n) is the CTA's position in its cluster, is_valid_tile,
-- and group_search_result.
function Group:get_current_work()
  local work = self.walk:get_current_work()
  return grouped.GroupedWorkTileInfo(work.tile_idx, work.valid,
                                     self:delinearize_z(work.tile_idx))
end

--- Returns the tile at the initial position.
function Group:initial_work_tile_info() return self:get_current_work() end

--- Advances to the next position, or by advance_count positions.
---@param advance_count? integer|cute.Value
function Group:advance_to_next_work(advance_count)
  self.walk:advance_to_next_work(advance_count)
end

---------------------------------------------------------------------------
-- Consecutive groups
---------------------------------------------------------------------------

local Contiguous = {}
Contiguous.__index = Contiguous

--- Returns the search state before the first group. Its fields describe the
-- group examined last: cur_group_idx (from 1; one more than the number of
-- groups after the last group); its start and end along the mode (cur_offset,
-- cur_boundary); the number of positions before it (last_tile_count) and up to
-- its end (cur_tile_count). cur_start is where the searched position begins
-- along the mode.
function grouped.create_initial_contiguous_group_search_state()
  return setmetatable({cur_group_idx = 0, cur_offset = 0, cur_boundary = 0,
                       last_tile_count = 0, cur_tile_count = 0, cur_start = 0},
                      Contiguous)
end

--- Finds the group that contains position linear_idx along the mode on which
-- the groups are consecutive, and updates the state. If cur_group_idx >
-- group_count afterwards, no group contains this position.
---@param cluster_tile_shape_mnk integer[] the tile of one cluster
---@param group_count integer|cute.Value
---@param linear_idx integer|cute.Value
---@param search_state table from create_initial_contiguous_group_search_state
---@param cumsum table group_count + 1 numbers of i32: 0, then the end of each
-- group
---@param search_mode integer 0 (M), 1 (N)
---@return table search_state
function grouped.contiguous_group_search(cluster_tile_shape_mnk, group_count,
                                         linear_idx, search_state, cumsum,
                                         search_mode)
  local s = search_state
  if search_mode ~= 0 and search_mode ~= 1 then
    core.fail("bad-argument", ("search_mode = %d; 0 (M) or 1 (N) is "
      .. "needed"):format(
      search_mode))
  end
  local tile = extents("cluster_tile_shape_mnk", cluster_tile_shape_mnk,
                       3)[search_mode + 1]
  for group in trace().range(s.cur_group_idx + 1, group_count + 1) do
    trace().break_if(core.lt(linear_idx, s.cur_tile_count))
    s.cur_group_idx, s.cur_offset = group, s.cur_boundary
    s.cur_boundary = cumsum[group]
    s.last_tile_count = s.cur_tile_count
    s.cur_tile_count = s.cur_tile_count
      + ceil_div(s.cur_boundary - s.cur_offset, tile)
  end
  s.cur_group_idx = core.where(core.ge(linear_idx, s.cur_tile_count),
                               group_count + 1, s.cur_group_idx)
  s.cur_start = s.cur_offset + (linear_idx - s.last_tile_count) * tile
  return s
end

local ContiguousWork = {}

-- Computes the field is_valid_tile when a kernel reads it, like WorkTileInfo
-- does.
function ContiguousWork.__index(work, name)
  if name ~= "is_valid_tile" then return nil end
  return core.lt(work.group_idx, work.group_count)
end

--- Reads a tile that one warp found and passed to other warps in shared memory,
-- as four numbers. cta_coord_m is the tile's index along M. coord_n is where
-- the tile begins along N. group_idx counts from 0. distance_to_boundary is the
-- length along N from coord_n to the group's end. is_valid_tile reports whether
-- group_idx is the index of a group.
---@param group_count integer|cute.Value
---@param sTile_info table four numbers of i32
---@return table
function grouped.make_contiguous_group_work_tile_info(group_count, sTile_info)
  if core.size(sTile_info) ~= 4 then
    core.fail("shape-mismatch", ("make_contiguous_group_work_tile_info: %s has "
      .. "%s numbers, not 4"):format(core.show(sTile_info),
      core.show(core.size(sTile_info))))
  end
  return setmetatable({group_count = group_count, cta_coord_m = sTile_info[0],
    coord_n = sTile_info[1], group_idx = sTile_info[2],
    distance_to_boundary = sTile_info[3]}, ContiguousWork)
end

local WALK = [[
  get_current_work() initial_work_tile_info()
  advance_to_next_work(advance_count?: integer|value)
]]
sign.class("StaticPersistentRuntimeTileScheduler", Runtime, WALK)
sign.class("StaticPersistentGroupTileScheduler", Group, WALK
  .. " is_valid() delinearize_z(cta_tile_coord: table)")
sign.class("GroupedGemmGroupSearchState", State, "")
sign.class("GroupSearchResult", Result, "")
sign.class("GroupedGemmTileSchedulerHelper", Helper, [[
  delinearize_z(cta_tile_coord: table, problem_shape_mnkl: tensor)
  search_cluster_tile_count_k(cta_tile_coord: table, problem_shape_mnkl: tensor)
]])
sign.class("ContiguousGroupSearchState", Contiguous, "")

return sign.public("utils.", grouped, [[
  StaticPersistentRuntimeTileScheduler(params: PersistentTileSchedulerParams,
    block_idx?: table, grid_dim?: table, inner_mode?: integer)
  GroupedGemmGroupSearchState(start_group_idx: integer|value,
    tile_count_prev_group: integer|value, tile_count_searched: integer|value)
  create_initial_search_state()
  GroupSearchResult(group_idx: integer|value, cta_tile_idx_m: integer|value,
    cta_tile_idx_n: integer|value, problem_shape_m: integer|value,
    problem_shape_n: integer|value, problem_shape_k: integer|value,
    cta_tile_count_k: integer|value)
  GroupedWorkTileInfo(tile_idx: table, is_valid_tile: boolean|value|function,
    group_search_result: GroupSearchResult)
  GroupedGemmTileSchedulerHelper(group_count: integer|value,
    tile_sched_params: PersistentTileSchedulerParams,
    cluster_tile_shape_mnk: table, search_state: GroupedGemmGroupSearchState)
  StaticPersistentGroupTileScheduler(params: PersistentTileSchedulerParams,
    block_idx?: table, grid_dim?: table, cluster_tile_shape_mnk: table,
    initial_search_state: GroupedGemmGroupSearchState,
    group_count: integer|value, problem_shape_mnkl: tensor)
  create_initial_contiguous_group_search_state()
  contiguous_group_search(cluster_tile_shape_mnk: table,
    group_count: integer|value, linear_idx: integer|value,
    search_state: ContiguousGroupSearchState, cumsum: tensor,
    search_mode: integer)
  make_contiguous_group_work_tile_info(group_count: integer|value,
    sTile_info: tensor)
]])
-- SPDX-License-Identifier: MIT
