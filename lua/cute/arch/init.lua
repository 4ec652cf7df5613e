--- cute.arch: what a thread of the device can ask and do: indices, barriers,
-- asynchronous copies, warp-wide operations. Names are the Python DSL's.
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

--- Index of this thread in its block: x, y, z (each i32).
arch.thread_idx = three "tid"
--- Index of this block in the grid: x, y, z.
arch.block_idx = three "ctaid"
--- Threads of a block: x, y, z.
arch.block_dim = three "ntid"
--- Blocks of the grid: x, y, z.
arch.grid_dim = three "nctaid"
--- Index of this cluster in the grid: x, y, z (each i32).
arch.cluster_idx = three "clusterid"
--- Clusters of the grid: x, y, z.
arch.cluster_dim = three "nclusterid"
--- Index of this block in its cluster: x, y, z.
arch.block_in_cluster_idx = three "cluster_ctaid"
--- Blocks of a cluster: x, y, z.
arch.block_in_cluster_dim = three "cluster_nctaid"

--- Lane of this thread in its warp, 0 to 31.
function arch.lane_idx() return core.sreg "laneid" end

--- Warp of this thread in its block (of a one-dimensional block).
function arch.warp_idx() return core.sreg "warpid" end

--- Which multiprocessor this block runs on.
function arch.smid() return core.sreg "smid" end

--- Threads of a warp.
arch.WARP_SIZE = 32
--- All lanes of a warp: the mask that shuffles and votes have without one.
arch.FULL_MASK = 0xffffffff

--- All threads of the block meet (__syncthreads).
function arch.sync_threads() core.effect("bar", 0) end

-- Number of a barrier: one of 0 to 15, or traced; as core.effect takes it.
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

-- {barrier_id =, number_of_threads =, aligned =} as a barrier's arguments.
local function named(id, threads, opts)
  if type(id) ~= "table" then return id, threads, opts end
  return id.barrier_id or 0, id.number_of_threads, {aligned = id.aligned}
end

--- A named barrier: `threads` of them meet at barrier id (1 to 15; 0 is that of
-- sync_threads). A traced id is the same for all lanes of a warp. opts: aligned
-- = false where a compiler may let lanes of a warp come one by one; all come.
---@param id any integer, or {barrier_id =, number_of_threads =, aligned =}
---@param threads? any multiple of 32; all of the block when absent
---@param opts? {aligned: boolean}
function arch.barrier(id, threads, opts)
  id, threads, opts = named(id, threads, opts)
  local number, traced = check_id("barrier", id)
  core.effect("bar" .. aligned("barrier", opts), number, threads, traced)
end

--- Arrives at a named barrier without waiting there.
---@param id any integer, or {barrier_id =, number_of_threads =, aligned =}
---@param threads? any multiple of 32, of all that arrive or wait
---@param opts? {aligned: boolean}
function arch.barrier_arrive(id, threads, opts)
  local what = id
  id, threads, opts = named(id, threads, opts)
  if not threads then
    core.fail("bad-argument", ("barrier_arrive needs the number of threads, "
      .. "got %s alone"):format(core.show(what)))
  end
  local number, traced = check_id("barrier_arrive", id)
  core.effect("bar_arrive" .. aligned("barrier_arrive", opts), number, threads,
              traced)
end

--- The lanes of the warp meet (__syncwarp).
---@param mask? any lanes that take part, all when absent
function arch.sync_warp(mask)
  core.effect("syncwarp", 0, mask or 0xffffffff)
end

--- Closes a group of the cp.async copies issued so far.
function arch.cp_async_commit_group() core.effect "cp_commit" end

local function check_groups(what, n)
  if math.type(n) ~= "integer" or n < 0 then
    core.fail("needs-static", ("%s: the number of pending groups is a Lua "
      .. "integer of 0 or more, not %s"):format(what, core.show(n)))
  end
end

--- Waits until at most n of this thread's cp.async groups are pending.
---@param n integer
function arch.cp_async_wait_group(n)
  check_groups("cp_async_wait_group", n)
  core.effect("cp_wait", n)
end

--- Closes a group of the bulk stores (TMA) that this thread issued so far.
function arch.cp_async_bulk_commit_group() core.effect "bulk_commit" end

--- Waits until at most n of this thread's groups of bulk stores are pending;
-- with `read` only until they have read shared memory, which may be written
-- anew then.
---@param n integer
---@param read? boolean|{read: boolean}
function arch.cp_async_bulk_wait_group(n, read)
  check_groups("cp_async_bulk_wait_group", n)
  if type(read) == "table" then read = read.read end
  core.effect(read and "bulk_wait_read" or "bulk_wait", n)
end

--- What this thread did to memory, others of its block see before what it does
-- next (__threadfence_block).
function arch.fence_acq_rel_cta() core.fence "cta" end
--- What this thread did to memory, others of its cluster see before what it
-- does next (sm_90).
function arch.fence_acq_rel_cluster() core.fence "cluster" end
--- What this thread did to memory, others of its device see before what it does
-- next (__threadfence).
function arch.fence_acq_rel_gpu() core.fence "gpu" end
--- What this thread did to memory, the host and other devices see, too, before
-- what it does next (__threadfence_system).
function arch.fence_acq_rel_sys() core.fence "sys" end

local PROXIES = {alias = true, async = true, ["async.global"] = true,
                 ["async.shared"] = true}

--- Orders what this thread did through one proxy before what it, or those that
-- it synchronises with, do through another: generic accesses and those of TMA
-- and wgmma ("async", or of one space "async.global", "async.shared"; sm_90),
-- or through another address ("alias").
---@param kind "alias"|"async"|"async.global"|"async.shared"
---@param space? "cta"|"cluster" of "async.shared": "cta" when absent; or
-- {space =}
function arch.fence_proxy(kind, space)
  if type(space) == "table" then space = space.space end
  if not PROXIES[kind] then
    core.fail("unknown-name", ("fence_proxy: no kind '%s' (alias, async, "
      .. "async.global, async.shared)"):format(kind))
  end
  if space and (kind ~= "async.shared" or space ~= "cta"
                and space ~= "cluster") then
    core.fail("bad-argument", ("fence_proxy: space '%s' (cta, cluster) of "
      .. "'%s': only async.shared has one"):format(space, kind))
  end
  core.fence(kind == "async.shared" and kind .. "::" .. (space or "cta")
             or kind)
end

--- What this thread wrote to shared memory, TMA and wgmma may read after it:
-- fence_proxy("async.shared").
function arch.fence_view_async_shared() arch.fence_proxy "async.shared" end

arch.range = sign.nests(require "cute.arch.ranges".range)

-- The rest of cute.arch, by what it is about.
for _, part in ipairs {"bits", "warp", "memory", "packed", "mbarrier",
                       "cluster"} do
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
