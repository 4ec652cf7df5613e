--- cute.arch, clusters and what else sm_90 brought: blocks that run together,
-- registers that warpgroups pass on, kernels that overlap.
--
-- `launch {grid = 64, block = 128, cluster = {2, 1, 1}}` makes clusters of two
-- blocks; without it each block is a cluster of its own. Its indices stand with
-- those of blocks (cute.arch).
local sign = require "cute.lang.signature"
local core = require "cute.core"
local aligned = require "cute.arch.aligned"

local cluster = {}

--- Number of this block in its cluster, its rank: x + X * (y + Y * z).
function cluster.block_idx_in_cluster() return core.sreg "cluster_ctarank" end

--- Blocks of a cluster, all of them.
function cluster.cluster_size() return core.sreg "cluster_nctarank" end

--- Arrives at the barrier of the cluster, which all threads of all its blocks
-- do; what they did before is seen by those that waited for it. opts: aligned =
-- false where not all lanes of a warp come together.
---@param opts? {aligned: boolean}
function cluster.cluster_arrive(opts)
  core.effect("cluster_arrive" .. aligned("cluster_arrive", opts), 0)
end

--- cluster_arrive that orders nothing; fence what matters before it.
---@param opts? {aligned: boolean}
function cluster.cluster_arrive_relaxed(opts)
  core.effect("cluster_arrive_relaxed"
    .. aligned("cluster_arrive_relaxed", opts), 0)
end

--- Waits until all threads of the cluster arrived.
---@param opts? {aligned: boolean}
function cluster.cluster_wait(opts)
  core.effect("cluster_wait" .. aligned("cluster_wait", opts), 0)
end

---------------------------------------------------------------------------
-- Shared memory of other blocks of the cluster
---------------------------------------------------------------------------

--- The pointer at which block `cta_rank_in_cluster` has what this one has at
-- `smem_ptr`: to be loaded from, stored to, copied, as other memory. That block
-- must be there (cluster_arrive, cluster_wait) from before until after.
---@param smem_ptr table
---@param cta_rank_in_cluster any integer
function cluster.map_dsmem_ptr(smem_ptr, cta_rank_in_cluster)
  return core.peer(smem_ptr, cta_rank_in_cluster)
end

--- Stores `value` to shared memory of block `peer_cta_rank` (pointers are this
-- block's own), later; the mbarrier there counts its bytes. Several values, a
-- list or a vector, go at once: 2 or 4 of 32 bits, 2 of 64.
---@param smem_ptr table
---@param value any
---@param mbar_ptr table
---@param peer_cta_rank any integer
function cluster.store_async_dsmem(smem_ptr, value, mbar_ptr, peer_cta_rank)
  local kind = core.typename(value)
  if kind == "vector" then
    local list = {}
    for k = 1, #value do list[k] = value[k - 1] end
    value = list
  elseif kind ~= "table" then
    value = {value}
  end
  core.st_async(smem_ptr, mbar_ptr, peer_cta_rank, table.unpack(value))
end

---------------------------------------------------------------------------
-- Registers (sm_90a)
---------------------------------------------------------------------------

local function registers(what, n)
  if n < 24 or n > 256 or n % 8 ~= 0 then
    core.fail("bad-argument", ("%s: %d registers: a multiple of 8 from 24 to "
      .. "256 is needed"):format(what, n))
  end
  return n
end

--- Each thread of this warpgroup may have so many registers from now on, more
-- than before: waits until others gave them back.
---@param reg_count integer a multiple of 8, 24 to 256
function cluster.setmaxregister_increase(reg_count)
  core.effect("setmaxnreg_inc", registers("setmaxregister_increase",
                                          reg_count))
end

--- Each thread of this warpgroup has so many registers from now on, fewer than
-- before: others may have the rest.
---@param reg_count integer a multiple of 8, 24 to 256
function cluster.setmaxregister_decrease(reg_count)
  core.effect("setmaxnreg_dec", registers("setmaxregister_decrease",
                                          reg_count))
end

--- The older names of setmaxregister_increase and _decrease.
cluster.warpgroup_reg_alloc = cluster.setmaxregister_increase
cluster.warpgroup_reg_dealloc = cluster.setmaxregister_decrease

---------------------------------------------------------------------------
-- Kernels that overlap (`launch {pdl = true}`)
---------------------------------------------------------------------------

--- Waits until the kernels before this one in its stream are done and what
-- they wrote is there; before it nothing of theirs may be touched.
function cluster.griddepcontrol_wait() core.effect("grid_wait", 0) end

--- The kernel behind this one may start, when all blocks have said so.
function cluster.griddepcontrol_launch_dependents()
  core.effect("grid_launch", 0)
end

return sign.public("cute.arch.", cluster, [[
  block_idx_in_cluster() cluster_size()
  cluster_arrive(opts?: {aligned}) cluster_arrive_relaxed(opts?: {aligned})
  cluster_wait(opts?: {aligned})
  map_dsmem_ptr(smem_ptr: tensor, cta_rank_in_cluster: integer|value)
  store_async_dsmem(smem_ptr: tensor, value: number|value|vector|table,
    mbar_ptr: tensor, peer_cta_rank: integer|value)
  setmaxregister_increase(reg_count: integer)
  setmaxregister_decrease(reg_count: integer)
  warpgroup_reg_alloc(reg_count: integer)
  warpgroup_reg_dealloc(reg_count: integer)
  griddepcontrol_wait() griddepcontrol_launch_dependents()
]])
