--- Which tiles a block of kernels/gemm_sm90 has, in which order.
local cute = require "cute"

local pipeline, utils = cute.pipeline, cute.utils
local Agent, Group = pipeline.Agent, pipeline.CooperativeGroup

local schedule = {}

--- Makes walks through the tiles of this block, in the order in which clusters
-- take them: the "producer" and the "consumer" have one each. `space` is what
-- blocks of a launch share, maker the thread that makes barriers.
function schedule.walks(o, tiles_m, tiles_n, tiles_l, k_tiles, space, maker)
  local x, y, z = cute.arch.block_idx()
  if not o.persistent then
    local tile = o.split > 1 and {y, z, 0} or {x, y, o.batches and z or 0}
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

--- f for each tile of a walk.
function schedule.each(o, work, f)
  if not o.persistent then return f() end
  cute.loop(function() return work:is_valid() end, f)
end

return schedule
