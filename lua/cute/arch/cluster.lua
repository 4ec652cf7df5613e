--- The functions of cute.arch for clusters (blocks that run together), and for
-- other features of sm_90: register reallocation among warpgroups, and
-- programmatic dependent launch.
--
-- `launch {grid = 64, block = 128, cluster = {2, 1, 1}}` makes clusters of two
-- blocks. Without the option `cluster`, each block is its own cluster. The
-- functions for cluster indices are in cute.arch, next to the functions for
-- block indices.
local sign = require "cute.lang.signature"
local core = require "cute.core"
local aligned = require "cute.arch.aligned"

local cluster = {}

--- Returns the rank of this block in its cluster: x + X * (y + Y * z).
function cluster.block_idx_in_cluster() return core.sreg "cluster_ctarank" end

--- Returns the number of blocks of a cluster.
function cluster.cluster_size() return core.sreg "cluster_nctarank" end

--- Arrives at the cluster barrier, at which all threads of all blocks of the
-- cluster must arrive. After cluster_wait, a thread sees everything that other
-- threads wrote before they arrived. With the option aligned = false, the lanes
-- of a warp may arrive one by one.
---@param opts? {aligned: boolean}
function cluster.cluster_arrive(opts)
  core.effect("cluster_arrive" .. aligned("cluster_arrive", opts), 0)
end

--- Arrives at the cluster barrier without ordering memory accesses. Call a
-- fence in addition if their order matters.
---@param opts? {aligned: boolean}
function cluster.cluster_arrive_relaxed(opts)
  core.effect("cluster_arrive_relaxed"
    .. aligned("cluster_arrive_relaxed", opts), 0)
end

--- Waits until all threads of the cluster have arrived.
---@param opts? {aligned: boolean}
function cluster.cluster_wait(opts)
  core.effect("cluster_wait" .. aligned("cluster_wait", opts), 0)
end

---------------------------------------------------------------------------
-- Shared memory of other blocks of the cluster
---------------------------------------------------------------------------

--- Maps this block's pointer `smem_ptr` to the same position in the shared
-- memory of block `cta_rank_in_cluster`. The result can be loaded, stored and
-- copied like other memory. The other block must be running before, during and
-- after the accesses (see cluster_arrive, cluster_wait).
---@param smem_ptr table
---@param cta_rank_in_cluster any integer
function cluster.map_dsmem_ptr(smem_ptr, cta_rank_in_cluster)
  return core.peer(smem_ptr, cta_rank_in_cluster)
end

--- Stores `value` asynchronously to shared memory of block `peer_cta_rank`; an
-- mbarrier in that block counts the bytes. smem_ptr and mbar_ptr are pointers
-- to this block's shared memory; the store uses the same positions in the other
-- block. A list or a vector stores several values at once: 2 or 4 values of 32
-- bits, or 2 of 64 bits.
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
    core.fail("bad-argument", ("%s: %d registers; a multiple of 8 from 24 to "
      .. "256 is needed"):format(what, n))
  end
  return n
end

--- Raises the register limit of this warpgroup's threads. Waits until other
-- warpgroups have released enough registers.
---@param reg_count integer a multiple of 8, 24 to 256
function cluster.setmaxregister_increase(reg_count)
  core.effect("setmaxnreg_inc", registers("setmaxregister_increase",
                                          reg_count))
end

--- Lowers the register limit of this warpgroup's threads. Other warpgroups can
-- then allocate the released registers.
---@param reg_count integer a multiple of 8, 24 to 256
function cluster.setmaxregister_decrease(reg_count)
  core.effect("setmaxnreg_dec", registers("setmaxregister_decrease",
                                          reg_count))
end

--- Older names of setmaxregister_increase and setmaxregister_decrease.
cluster.warpgroup_reg_alloc = cluster.setmaxregister_increase
cluster.warpgroup_reg_dealloc = cluster.setmaxregister_decrease

---------------------------------------------------------------------------
-- Overlapping kernels (`launch {pdl = true}`)
---------------------------------------------------------------------------

--- Waits until the earlier kernels of the stream have finished and their writes
-- are visible. Access memory that those kernels use only after the wait.
function cluster.griddepcontrol_wait() core.effect("grid_wait", 0) end

--- Signals that the next kernel may start. It starts once all blocks have
-- called this function.
function cluster.griddepcontrol_launch_dependents()
  core.effect("grid_launch", 0)
end

---------------------------------------------------------------------------
-- Cluster launch control (sm_100a)
---------------------------------------------------------------------------

--- Requests the cancellation of a cluster of the grid that has not started
-- (clusterlaunchcontrol.try_cancel). If it succeeds, this cluster does the
-- canceled cluster's work. One thread of the cluster calls this function. The
-- response of 16 bytes is written to clc_response_ptr in the shared memory of
-- every block of the cluster, and completes 16 bytes at the mbarrier mbar_ptr
-- of that block. Once a response says that no cluster was canceled, the cluster
-- must not send another request.
---@param mbar_ptr table an mbarrier that expects 16 bytes
---@param clc_response_ptr table 16 bytes of shared memory, aligned to 16
function cluster.issue_clc_query(mbar_ptr, clc_response_ptr)
  core.cancel_cluster(clc_response_ptr, mbar_ptr)
end

--- Reads the response to issue_clc_query, after the thread has waited for the
-- response's mbarrier. Returns x, y, z and 1, where x, y and z are the index of
-- the first block of the canceled cluster. If no cluster was canceled, the
-- fourth number is 0, and the first three have no meaning.
---@param result_addr table the address given to issue_clc_query
---@return cute.Value x
---@return cute.Value y
---@return cute.Value z
---@return cute.Value vld u32, 1 or 0
function cluster.clc_response(result_addr)
  local words = core.make_tensor(result_addr, core.make_layout(
    16 // (result_addr.element_type.bits // 8)))
  local halves = core.make_rmem_tensor({2}, core.find_dtype "u64")
  core.autovec_copy(core.recast_tensor(words, core.find_dtype "u64"), halves)
  local out = {}
  for i, name in ipairs {"first_ctaid.x", "first_ctaid.y", "first_ctaid.z",
                         "is_canceled"} do
    out[i] = core.intrin("clc." .. name, 0, halves[0], halves[1])
  end
  return table.unpack(out)
end

return sign.public("cute.arch.", cluster, [[
  issue_clc_query(mbar_ptr: tensor, clc_response_ptr: tensor)
  clc_response(result_addr: tensor)
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
-- SPDX-License-Identifier: MIT
