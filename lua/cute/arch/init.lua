--- cute.arch: the device functions of a thread, with the names of the Python
-- DSL: indices, barriers, asynchronous copies, warp-wide operations.
local sign = require "cute.lang.signature"
local core = require "cute.core"
local aligned = require "cute.arch.aligned"

local arch = {}

local function three(name)
  return function()
    return core.sreg(name .. ".x"), core.sreg(name .. ".y"),
      core.sreg(name .. ".z")
  end
end

--- Returns the index of this thread in its block: x, y, z (each i32).
arch.thread_idx = three "tid"
--- Returns the index of this block in the grid: x, y, z.
arch.block_idx = three "ctaid"
--- Returns the number of threads of a block: x, y, z.
arch.block_dim = three "ntid"
--- Returns the number of blocks of the grid: x, y, z.
arch.grid_dim = three "nctaid"
--- Returns the index of this cluster in the grid: x, y, z (each i32).
arch.cluster_idx = three "clusterid"
--- Returns the number of clusters of the grid: x, y, z.
arch.cluster_dim = three "nclusterid"
--- Returns the index of this block in its cluster: x, y, z.
arch.block_in_cluster_idx = three "cluster_ctaid"
--- Returns the number of blocks of a cluster: x, y, z.
arch.block_in_cluster_dim = three "cluster_nctaid"

--- Returns the lane of this thread in its warp, 0 to 31.
function arch.lane_idx() return core.sreg "laneid" end

--- Returns the index of this thread's warp in its block (for a one-dimensional
-- block).
function arch.warp_idx() return core.sreg "warpid" end

--- Returns the index of the multiprocessor that runs this block.
function arch.smid() return core.sreg "smid" end

--- The number of threads of a warp.
arch.WARP_SIZE = 32
--- The mask of all lanes of a warp: the default mask of shuffles and votes.
arch.FULL_MASK = 0xffffffff

--- Synchronizes all threads of the block (__syncthreads).
function arch.sync_threads() core.effect("bar", 0) end

-- Checks the number of a barrier (0 to 15, or a traced value). Returns the
-- arguments for core.effect: the number and nil, or 0 and the traced value.
local function check_id(what, id)
  local lo, hi = id, id
  if core.typename(id) == "value" then
    local known = core.known(id)
    if known == nil then
      local fact = core.fact(id)
      lo, hi = fact.lo, fact.hi
    else
      id, lo, hi = known, known, known
    end
  end
  if not math.type(lo) or lo > 15 or hi < 0 then
    core.fail("bad-argument", ("%s: id %s is not in 0 to 15"):format(what,
      math.type(id) and tostring(id) or ("%s to %s"):format(lo, hi)))
  end
  if math.type(id) then return id, nil end
  return 0, id
end

-- Returns the barrier's number, the number of threads and the options of a
-- barrier call. The call may also pass them as one table {barrier_id =,
-- number_of_threads =, aligned =}.
local function named(id, threads, opts)
  if type(id) ~= "table" then return id, threads, opts end
  return id.barrier_id or 0, id.number_of_threads, {aligned = id.aligned}
end

--- Synchronizes `threads` threads at the named barrier `id` (1 to 15;
-- sync_threads uses 0). A traced id must be equal on all lanes of a warp. With
-- the option aligned = false, the lanes of a warp may arrive one by one, but
-- all lanes must arrive.
---@param id any integer, or {barrier_id =, number_of_threads =, aligned =}
---@param threads? any multiple of 32; all threads of the block if absent
---@param opts? {aligned: boolean}
function arch.barrier(id, threads, opts)
  id, threads, opts = named(id, threads, opts)
  local number, traced = check_id("barrier", id)
  core.effect("bar" .. aligned("barrier", opts), number, threads, traced)
end

--- Arrives at a named barrier without waiting.
---@param id any integer, or {barrier_id =, number_of_threads =, aligned =}
---@param threads? any multiple of 32: the number of threads that arrive or wait
---@param opts? {aligned: boolean}
function arch.barrier_arrive(id, threads, opts)
  local what = id
  id, threads, opts = named(id, threads, opts)
  if not threads then
    core.fail("bad-argument", ("the number of threads is missing: write "
      .. "barrier_arrive(%s, n)"):format(core.show(what)))
  end
  local number, traced = check_id("barrier_arrive", id)
  core.effect("bar_arrive" .. aligned("barrier_arrive", opts), number, threads,
              traced)
end

--- Synchronizes the lanes of the warp (__syncwarp).
---@param mask? any participating lanes, all if absent
function arch.sync_warp(mask)
  core.effect("syncwarp", 0, mask or 0xffffffff)
end

--- Ends a group of cp.async copies. The group contains the copies that this
-- thread has issued since it ended its previous group.
function arch.cp_async_commit_group() core.effect "cp_commit" end

local function check_groups(what, n)
  if math.type(n) ~= "integer" or n < 0 then
    core.fail("needs-static", ("%s: the number of pending groups must be a Lua "
      .. "integer of 0 or more, not %s"):format(what, core.show(n)))
  end
end

--- Waits until at most n of this thread's cp.async groups are pending.
---@param n integer
function arch.cp_async_wait_group(n)
  check_groups("cp_async_wait_group", n)
  core.effect("cp_wait", n)
end

--- Ends a group of bulk stores (TMA). The group contains the stores that this
-- thread has issued since it ended its previous group.
function arch.cp_async_bulk_commit_group() core.effect "bulk_commit" end

--- Waits until at most n of this thread's groups of bulk stores are pending.
-- With `read`, waits only until the other groups have read shared memory, which
-- may then be overwritten.
---@param n integer
---@param read? boolean|{read: boolean}
function arch.cp_async_bulk_wait_group(n, read)
  check_groups("cp_async_bulk_wait_group", n)
  if type(read) == "table" then read = read.read end
  core.effect(read and "bulk_wait_read" or "bulk_wait", n)
end

--- Orders this thread's memory accesses before the call and its accesses after
-- the call, as observed by threads of this block (__threadfence_block).
function arch.fence_acq_rel_cta() core.fence "cta" end
--- Orders this thread's memory accesses before the call and its accesses after
-- the call, as observed by threads of this cluster (sm_90).
function arch.fence_acq_rel_cluster() core.fence "cluster" end
--- Orders this thread's memory accesses before the call and its accesses after
-- the call, as observed by threads of this device (__threadfence).
function arch.fence_acq_rel_gpu() core.fence "gpu" end
--- Orders this thread's memory accesses before the call and its accesses after
-- the call, as observed by all threads, the host and other devices
-- (__threadfence_system).
function arch.fence_acq_rel_sys() core.fence "sys" end

--- Orders accesses through one proxy before later accesses through another
-- proxy. The accesses are those of this thread, or of threads that synchronize
-- with it. "async" orders generic accesses and accesses by TMA and wgmma.
-- "async.global" and "async.shared" order them in one memory space only
-- (sm_90). "alias" orders accesses through different addresses of the same
-- memory.
---@param kind "alias"|"async"|"async.global"|"async.shared"
---@param space? "cta"|"cluster" for "async.shared": "cta" if absent; or {space
-- =}
function arch.fence_proxy(kind, space)
  if type(space) == "table" then space = space.space end
  sign.one_of("fence_proxy", "kind", kind,
              "alias async async.global async.shared")
  if space and (kind ~= "async.shared" or space ~= "cta"
                and space ~= "cluster") then
    core.fail("bad-argument", ("fence_proxy: space '%s' with '%s'; only "
      .. "async.shared takes a space, cta or cluster"):format(space, kind))
  end
  core.fence(kind == "async.shared" and kind .. "::" .. (space or "cta")
             or kind)
end

--- Makes this thread's writes to shared memory visible to later TMA and wgmma
-- operations: fence_proxy("async.shared").
function arch.fence_view_async_shared() arch.fence_proxy "async.shared" end

arch.range = sign.nests(require "cute.arch.ranges".range)

-- Loads the other modules of cute.arch, by topic.
for _, part in ipairs {"bits", "warp", "memory", "packed", "mbarrier",
                       "cluster", "tmem"} do
  for name, f in pairs(require("cute.arch." .. part)) do arch[name] = f end
end

return sign.public("cute.arch.", arch, [[
  thread_idx() block_idx() block_dim() grid_dim() lane_idx() warp_idx() smid()
  cluster_idx() cluster_dim() block_in_cluster_idx() block_in_cluster_dim()
  sync_threads() sync_warp(mask?: integer|value)
  barrier(id: integer|value|{aligned barrier_id number_of_threads},
    threads?: integer|value, opts?: {aligned})
  barrier_arrive(id: integer|value|{aligned barrier_id number_of_threads},
    threads?: integer|value, opts?: {aligned})
  cp_async_commit_group() cp_async_wait_group(n)
  cp_async_bulk_commit_group() cp_async_bulk_wait_group(n, read?: boolean|table)
  fence_acq_rel_cta() fence_acq_rel_cluster() fence_acq_rel_gpu()
  fence_acq_rel_sys() fence_proxy(kind: string, space?: string|table)
  fence_view_async_shared() range(name: string, f: function, arguments...)
]])
-- SPDX-License-Identifier: MIT
