--- cute.utils: tile schedulers that use cluster launch control (sm_100a). The
-- launch has a cluster for each tile of a result. A running cluster repeatedly
-- cancels a cluster that has not started, and computes the canceled cluster's
-- tile.
--
--     local params = cute.utils.ClcDynamicPersistentTileSchedulerParams(
--       {tiles_m, tiles_n, 1}, {2, 1, 1})
--     -- launch {grid = params:get_grid_shape(), cluster = {2, 1, 1}}
--     local tiles = cute.utils.ClcDynamicPersistentTileScheduler(params, nil,
--       nil, cute.arch.alloc_smem(cute.i32, 4, 16))
--     local work = tiles:initial_work_tile_info()
--     local valid, tile = work.is_valid_tile, work.tile_idx
--     cute.loop(function() return valid end, function()
--       ...            -- one thread: acquire a stage (PipelineClcFetchAsync)
--       tiles:advance_to_next_work(bar)   -- the same thread: request a tile
--       ...                 -- all: compute the tile, then wait for the stage
--       work = tiles:get_current_work()
--       ...                 -- all: set valid and tile, release the stage
--     end)
local sign = require "cute.lang.signature"
local core = require "cute.core"
local arch = require "cute.arch"
local static = require "cute.persistent_schedulers"

local schedule = {}

local Params = {__constants = {cluster_shape = true}}
Params.__index = Params

--- Makes the parameters of a scheduler. Arguments are the number of tiles of
-- the result along M, N and L (batches), and the number of blocks of a cluster
-- along M and N (1 along K).
---@param problem_shape_ntile_mnl any[] integers, or values of the kernel
---@param cluster_shape_mnk? integer[] {1, 1, 1} if absent
function schedule.ClcDynamicPersistentTileSchedulerParams(
    problem_shape_ntile_mnl, cluster_shape_mnk)
  local p = static.PersistentTileSchedulerParams(problem_shape_ntile_mnl,
                                                 cluster_shape_mnk)
  return setmetatable({tiles = p.tiles, clusters = p.clusters,
                       cluster_shape = p.cluster_shape}, Params)
end

--- Returns the grid of a launch: a block for each tile, rounded up to whole
-- clusters.
---@return integer[] {M, N, L}
function Params:get_grid_shape()
  return {self.clusters[1] * self.cluster_shape[1],
          self.clusters[2] * self.cluster_shape[2], self.clusters[3]}
end

local Clc = {}
Clc.__index = Clc

--- Makes a scheduler of this block's tiles: first the block's own tile, then
-- the tiles of canceled clusters. block_idx and grid_dim are three numbers
-- each; by default, the block's index and the grid's extents.
---@param params table from ClcDynamicPersistentTileSchedulerParams
---@param block_idx? any[]
---@param grid_dim? any[]
---@param clc_response_ptr table an i32 pointer to shared memory, aligned to 16
-- bytes: 16 bytes for each response that can be pending
function schedule.ClcDynamicPersistentTileScheduler(params, block_idx, grid_dim,
                                                    clc_response_ptr)
  if clc_response_ptr.element_type ~= core.i32
    or clc_response_ptr.memspace ~= "smem" then
    core.fail("bad-argument", ("ClcDynamicPersistentTileScheduler: "
      .. "clc_response_ptr = %s: a pointer to i32 of shared memory is needed, "
      .. "such as cute.arch.alloc_smem(cute.i32, 4, 16)"):format(
      core.show(clc_response_ptr)))
  end
  local first = block_idx or {arch.block_idx()}
  local m, n = arch.block_in_cluster_idx()
  return setmetatable({params = params, clc_response_ptr = clc_response_ptr,
    first = first, grid_dim = grid_dim, cta_id_in_cluster = {m, n},
    num_tiles_executed = 0}, Clc)
end

--- Returns the tile with the index of this block. Its fields are tile_idx = {m,
-- n, l}, and is_valid_tile, which is true.
function Clc:initial_work_tile_info()
  local x, y, z = table.unpack(self.first)
  return static.WorkTileInfo({x, y, z}, true)
end

--- Decodes the response to a cancellation request. Returns the tile that this
-- block computes next, with the fields tile_idx = {m, n, l} and is_valid_tile.
-- The thread must have waited for the response. Once it has released the
-- response's stage, a later request may overwrite the response.
---@param result_addr table the address that was passed to the request
function Clc:work_tile_info_from_clc_response(result_addr)
  local x, y, z, valid = arch.clc_response(result_addr)
  local shape, id = self.params.cluster_shape, self.cta_id_in_cluster
  if shape[1] > 1 then x = x + id[1] end
  if shape[2] > 1 then y = y + id[2] end
  return static.WorkTileInfo({x, y, z}, function()
    return core.ne(valid, 0)
  end)
end

-- Returns the address of the response in stage `index`.
local function place(self, index)
  return self.clc_response_ptr + 4 * (index or 0)
end

--- Returns the tile that the response in stage `index` assigns to this block.
---@param index? any number of the stage, 0 if absent
function Clc:get_current_work(index)
  return self:work_tile_info_from_clc_response(place(self, index))
end

--- Requests another tile: cancels a cluster that has not started. One thread of
-- the cluster's first block calls this.
---@param mbarrier_addr table the stage's mbarrier, which expects 16 bytes in
-- each block of the cluster
---@param index? any number of the stage, 0 if absent
function Clc:advance_to_next_work(mbarrier_addr, index)
  arch.issue_clc_query(mbarrier_addr, place(self, index))
  self.num_tiles_executed = self.num_tiles_executed + 1
end

sign.class("ClcDynamicPersistentTileSchedulerParams", Params,
           "get_grid_shape()")
sign.class("ClcDynamicPersistentTileScheduler", Clc, [[
  initial_work_tile_info() get_current_work(index?: integer|value)
  work_tile_info_from_clc_response(result_addr: tensor)
  advance_to_next_work(mbarrier_addr: tensor, index?: integer|value)
]], "grid_dim")

return sign.public("utils.", schedule, [[
  ClcDynamicPersistentTileSchedulerParams(problem_shape_ntile_mnl: table,
    cluster_shape_mnk?: table)
  ClcDynamicPersistentTileScheduler(
    params: ClcDynamicPersistentTileSchedulerParams, block_idx?: table|nil,
    grid_dim?: table|nil, clc_response_ptr: tensor)
]])
-- SPDX-License-Identifier: MIT
