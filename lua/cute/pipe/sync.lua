--- Part of cute.pipeline: synchronization objects (named barriers, arrays of
-- mbarriers, groups of TMA stores), and the groups of threads that use them.
local sign = require "cute.lang.signature"
local core = require "cute.core"
local arch = require "cute.arch"

local sync = {}

---------------------------------------------------------------------------
-- SyncObject: the common interface
---------------------------------------------------------------------------

local SyncObject = {}
SyncObject.__index = SyncObject

local function lacks(object, what, why)
  core.fail("bad-argument", ("a %s has no %s%s"):format(
    getmetatable(object).__name or "SyncObject", what, why or ""))
end

--- Records one arrival of this thread. If the agent is a warp (see Agent),
-- records one arrival of this thread's warp.
function SyncObject:arrive() lacks(self, "arrive()") end

--- Waits until all participants have arrived.
function SyncObject:wait() lacks(self, "wait()") end

--- Arrives and then waits until all participants have arrived. The arguments
-- are those of arrive and wait.
function SyncObject:arrive_and_wait(...)
  self:arrive(...)
  self:wait(...)
end

--- Arrives, and removes this participant from the arrival count of later
-- phases.
function SyncObject:arrive_and_drop()
  lacks(self, "arrive_and_drop()", ": all counted threads must arrive each "
    .. "time")
end

--- Returns the hardware barrier: an mbarrier's pointer, a named barrier's
-- number, or nil.
function SyncObject:get_barrier() end  -- luacheck: ignore self

--- Returns the largest possible number of stages, or nothing if there is no
-- limit.
function SyncObject:max() end  -- luacheck: ignore self

-- Gives a class the methods of SyncObject that it does not define.
local function inherit(class)
  for name, f in pairs(SyncObject) do
    if class[name] == nil then class[name] = f end
  end
  return class
end

---------------------------------------------------------------------------
-- NamedBarrier: synchronizes some of the block's warps
---------------------------------------------------------------------------

local Barrier = {}
Barrier.__index = Barrier

--- Makes a named barrier with number `barrier_id` (0 to 15, or traced) for
-- `num_threads` threads. Number 0 is the barrier of arch.sync_threads.
---@param opts {barrier_id: integer|cute.Value, num_threads: integer}
function sync.NamedBarrier(opts)
  local id, n = opts.barrier_id, opts.num_threads
  if core.typename(id) ~= "value"
    and (math.type(id) ~= "integer" or id < 0 or id > 15) then
    core.fail("bad-argument", ("NamedBarrier: barrier_id must be an integer "
      .. "from 0 to 15, got %s"):format(core.show(id)))
  end
  if math.type(n) ~= "integer" or n < 32 or n % 32 ~= 0 then
    core.fail("bad-argument", ("NamedBarrier: num_threads must be a multiple "
      .. "of 32, got %s"):format(core.show(n)))
  end
  return setmetatable({barrier_id = id, num_threads = n}, Barrier)
end

--- Arrives at the named barrier without waiting. Threads that call
-- arrive_and_wait wait for this arrival.
function Barrier:arrive()
  arch.barrier_arrive(self.barrier_id, self.num_threads)
end

--- Arrives and waits until all threads have arrived.
function Barrier:arrive_and_wait()
  arch.barrier(self.barrier_id, self.num_threads)
end
Barrier.sync = Barrier.arrive_and_wait

--- Arrives at the named barrier without waiting, like `arrive`. The lanes of a
-- warp may arrive one by one.
function Barrier:arrive_unaligned()
  arch.barrier_arrive(self.barrier_id, self.num_threads, {aligned = false})
end

--- Arrives and waits, like arrive_and_wait. The lanes of a warp may arrive one
-- by one. (The name says only "wait", but the PTX instruction barrier.sync does
-- both.)
function Barrier:wait_unaligned()
  arch.barrier(self.barrier_id, self.num_threads, {aligned = false})
end

--- Raises an error, because a thread cannot wait at a named barrier without
-- arriving.
function Barrier:wait()
  core.fail("bad-argument", ("barrier %s: a named barrier has no separate "
    .. "wait\n  waiting threads call arrive_and_wait() and are counted "
    .. "in num_threads"):format(tostring(self.barrier_id)))
end

function Barrier:get_barrier() return self.barrier_id end

--- Arrives at a named barrier without waiting.
---@param barrier_id integer|cute.Value
---@param num_threads integer
function sync.arrive(barrier_id, num_threads)
  arch.barrier_arrive(barrier_id, num_threads)
end

--- Arrives at a named barrier and waits until all threads have arrived.
---@param barrier_id integer|cute.Value
---@param num_threads integer
function sync.arrive_and_wait(barrier_id, num_threads)
  arch.barrier(barrier_id, num_threads)
end

--- Arrives at a named barrier, like `arrive`. The lanes of a warp may arrive
-- one by one.
---@param barrier_id integer|cute.Value
---@param num_threads integer
function sync.arrive_unaligned(barrier_id, num_threads)
  arch.barrier_arrive(barrier_id, num_threads, {aligned = false})
end

--- Arrives at a named barrier and waits, like arrive_and_wait. The lanes of a
-- warp may arrive one by one.
---@param barrier_id integer|cute.Value
---@param num_threads integer
function sync.wait_unaligned(barrier_id, num_threads)
  arch.barrier(barrier_id, num_threads, {aligned = false})
end

--- Synchronizes the whole block.
---@param barrier_id? integer|cute.Value 0 if absent
function sync.sync(barrier_id) arch.barrier(barrier_id or 0) end

--- Raises [bad-argument]: a named barrier needs arrive_and_wait, which arrives
-- and waits in one call.
function sync.wait() setmetatable({barrier_id = 0}, Barrier):wait() end

---------------------------------------------------------------------------
-- Agents and groups
---------------------------------------------------------------------------

--- The kinds of participants. With Thread, each thread arrives at a barrier;
-- with Warp, one lane arrives for its warp. ThreadBlock and ThreadBlockCluster
-- are scopes of agent_sync.
sync.Agent = {Thread = "thread", Warp = "warp", ThreadBlock = "block",
              ThreadBlockCluster = "cluster"}

local Group = {}
Group.__index = Group

--- Makes a group of `size` threads or warps of a block that work together. A
-- barrier of the group counts `size` arrivals.
---@param agent "thread"|"warp" from pipeline.Agent
---@param size? integer 1 if absent
---@param alignment? integer ignored: groups may begin at any thread
function sync.CooperativeGroup(agent, size, alignment)  -- luacheck: ignore
  size = size or 1
  if agent ~= "thread" and agent ~= "warp" then
    core.fail("unknown-name", ("CooperativeGroup: no agent '%s' (Agent.Thread, "
      .. "Agent.Warp)"):format(tostring(agent)))
  end
  if math.type(size) ~= "integer" or size < 1 or size > 1024 then
    core.fail("bad-argument", ("CooperativeGroup: size = %s; 1 to 1024 is "
      .. "needed"):format(tostring(size)))
  end
  return setmetatable({agent = agent, size = size}, Group)
end

function Group:__tostring()
  return ("%d %s%s"):format(self.size, self.agent, self.size > 1 and "s" or "")
end

-- Reports whether this is the block's first thread.
local function first_thread()
  local x, y, z = arch.thread_idx()
  return x:eq(0) & y:eq(0) & z:eq(0)
end

-- Reports whether `cluster` means a cluster of several blocks. `cluster` is a
-- boolean, the cluster's shape {m, n}, its layout (V,M,N,K), or the name of an
-- agent.
local function clustered(cluster)
  if type(cluster) == "boolean" or cluster == nil then return cluster end
  if cluster == "cluster" or cluster == "block" then
    return cluster == "cluster"
  end
  if type(cluster) == "string" then
    core.fail("unknown-name", ("no agent '%s' (Agent.ThreadBlock, "
      .. "Agent.ThreadBlockCluster)"):format(cluster))
  end
  return core.size(cluster) > 1
end

--- Begins a synchronization of the block or cluster. Call it after the
-- mbarriers are initialized and before they are used. In a cluster, it makes
-- the mbarriers visible to the other blocks.
---@param cluster? boolean|integer[]|cute.Layout whether there is a cluster, or
-- its shape
---@param is_relaxed? boolean if true, the arrival orders no memory accesses;
-- only mbarrier_init_fence makes the mbarriers visible
function sync.pipeline_init_arrive(cluster, is_relaxed)
  if not clustered(cluster) then return end
  if is_relaxed then arch.cluster_arrive_relaxed()
  else arch.cluster_arrive() end
end

--- Completes the synchronization that pipeline_init_arrive began.
---@param cluster? boolean|integer[]|cute.Layout
function sync.pipeline_init_wait(cluster)
  if clustered(cluster) then arch.cluster_wait() else arch.sync_threads() end
end

--- Calls pipeline_init_arrive and pipeline_init_wait, for the block or for the
-- cluster.
---@param group? string|boolean|integer[]|cute.Layout from pipeline.Agent, or
-- the cluster's shape
---@param is_relaxed? boolean
function sync.agent_sync(group, is_relaxed)
  local cluster = clustered(group)
  sync.pipeline_init_arrive(cluster, is_relaxed)
  sync.pipeline_init_wait(cluster)
end

---------------------------------------------------------------------------
-- MbarrierArray
---------------------------------------------------------------------------

local Array = {}
Array.__index = Array

--- The memory layouts of a pipeline's mbarriers. The only one is V0:
-- consecutive mbarriers of 8 bytes.
sync.MbarrierLayout = {V0 = "v0"}

--- Allocates shared memory for the mbarriers of a pipeline. Returns a pointer
-- to num_stages * multiplier i64. A pipeline without the option barrier_storage
-- allocates the same amount itself.
---@param num_stages integer
---@param multiplier? integer mbarriers for each stage; 2 (full and empty) if
-- absent
---@return table pointer
function sync.alloc_reserved_mbarrier(num_stages, multiplier)
  multiplier = multiplier or 2
  for _, n in ipairs {num_stages, multiplier} do
    if n < 1 or n > 1024 then
      core.fail("bad-argument", ("alloc_reserved_mbarrier: %d stages of %d "
        .. "mbarriers; 1 to 1024 of each are possible"):format(num_stages,
        multiplier))
    end
  end
  return arch.alloc_smem(core.i64, num_stages * multiplier)
end

--- Makes one mbarrier for each stage. A phase of an mbarrier ends when
-- `arrivals` arrivals and all expected bytes have been counted. One thread
-- initializes the mbarriers. Other threads may use them only after agent_sync
-- or another synchronization.
---@param opts table {num_stages: integer, arrivals: integer, storage: table?,
-- maker: cute.Value?}
-- storage: a pointer to num_stages i64 of shared memory; maker: true on the
-- thread that initializes the mbarriers; if absent, this is the block's first
-- thread
function sync.MbarrierArray(opts)
  local n = opts.num_stages
  local storage = opts.storage or sync.alloc_reserved_mbarrier(n, 1)
  local maker = opts.maker or first_thread()
  require "cute.lang.branch".when(maker, function()
    for stage = 0, n - 1 do
      arch.mbarrier_init(storage + stage, opts.arrivals)
    end
    arch.mbarrier_init_fence()
  end)
  return setmetatable({storage = storage, num_stages = n,
                       arrivals = opts.arrivals}, Array)
end

--- Returns a pointer to the mbarrier of a stage.
---@param index integer|cute.Value
function Array:get_barrier(index) return self.storage + index end

-- Returns the options with which arrivals and waits have a scope, or nil
-- without a scope.
local function hints(scope) return scope and {scope = scope} end

--- Arrives at the mbarrier of a stage or, with a rank, at the same mbarrier in
-- another block of the cluster. For `scope` see arch.mbarrier_arrive.
---@param index integer|cute.Value
---@param rank? integer|cute.Value
---@param scope? "cta"|"cluster"
function Array:arrive(index, rank, scope)
  arch.mbarrier_arrive(self.storage + index, rank, nil, hints(scope))
end
Array.arrive_mbarrier = Array.arrive

--- Arrives at the mbarrier of a stage, and increases its number of expected
-- bytes by `bytes`.
---@param index integer|cute.Value
---@param bytes integer|cute.Value
function Array:arrive_and_expect_tx(index, bytes)
  arch.mbarrier_arrive_and_expect_tx(self.storage + index, bytes)
end

--- Arrives and expects bytes, like arrive_and_expect_tx, at the mbarrier in
-- block `rank` of the cluster.
---@param index integer|cute.Value
---@param bytes integer|cute.Value
---@param rank? integer|cute.Value
function Array:arrive_and_expect_tx_with_dst(index, bytes, rank)
  arch.mbarrier_arrive_and_expect_tx(self.storage + index, bytes, rank)
end

--- Makes the mbarrier of a stage count an arrival when the cp.async copies that
-- this thread has issued are complete.
---@param index integer|cute.Value
function Array:arrive_cp_async_mbarrier(index)
  arch.cp_async_mbarrier_arrive_noinc(self.storage + index)
end

--- Waits until the mbarrier's phase with this parity is complete.
---@param index integer|cute.Value
---@param phase integer|cute.Value
---@param scope? "cta"|"cluster"
function Array:wait(index, phase, scope)
  arch.mbarrier_wait(self.storage + index, phase, hints(scope))
end

--- Reports whether the phase with this parity is complete. May first wait for a
-- limited time.
---@param index integer|cute.Value
---@param phase integer|cute.Value
---@param scope? "cta"|"cluster"
function Array:try_wait(index, phase, scope)
  return arch.mbarrier_try_wait(self.storage + index, phase, hints(scope))
end

--- Reports, without waiting, whether the phase with this parity is complete.
---@param index integer|cute.Value
---@param phase integer|cute.Value
function Array:test_wait(index, phase)
  return arch.mbarrier_test_wait(self.storage + index, phase)
end

--- Arrives at the mbarrier in this block, and waits until the phase with this
-- parity is complete.
---@param index integer|cute.Value
---@param phase integer|cute.Value
function Array:arrive_and_wait(index, phase)
  self:arrive(index)
  self:wait(index, phase)
end

---------------------------------------------------------------------------
-- TmaStoreFence: groups of TMA stores
---------------------------------------------------------------------------

local Fence = {}
Fence.__index = Fence

--- Makes an object that counts the groups of TMA stores of one thread. The
-- thread stores from a ring of num_stages buffers. The stores between two calls
-- of `arrive` form one group and read one buffer.
---@param num_stages integer
function sync.TmaStoreFence(num_stages)
  if num_stages < 1 then
    core.fail("bad-argument", ("TmaStoreFence: %d buffers; 1 or more are "
      .. "needed")
      :format(num_stages))
  end
  return setmetatable({num_stages = num_stages}, Fence)
end

--- Ends the group that contains the stores since the last call of `arrive`.
function Fence:arrive()  -- luacheck: ignore self
  arch.cp_async_bulk_commit_group()
end

--- Waits until the oldest buffer has been read, so that it can be filled again.
function Fence:wait()
  arch.cp_async_bulk_wait_group(self.num_stages - 1, true)
end

--- Waits until all buffers have been read, before shared memory is released.
function Fence:tail()  -- luacheck: ignore self
  arch.cp_async_bulk_wait_group(0, true)
end

--- The base class of synchronization objects. To inherit its methods, set
-- SyncObject as __index of the metatable of your class.
sync.SyncObject = SyncObject

for _, class in ipairs {Barrier, Array, Fence} do inherit(class) end

local BASE = " arrive_and_drop() get_barrier() max()"
sign.class("NamedBarrier", Barrier, BASE .. [[
  arrive() arrive_and_wait() sync() wait() arrive_unaligned() wait_unaligned()
]])
sign.class("TmaStoreFence", Fence,
           BASE .. " arrive() wait() arrive_and_wait() tail()")
sign.class("CooperativeGroup", Group, "")
sign.class("MbarrierArray", Array, [[
  get_barrier(index: integer|value) arrive_and_drop() max()
  arrive_and_wait(index: integer|value, phase: integer|value)
  arrive(index: integer|value, rank?: integer|value, scope?: string)
  arrive_mbarrier(index: integer|value, rank?: integer|value, scope?: string)
  arrive_and_expect_tx(index: integer|value, bytes: integer|value)
  arrive_and_expect_tx_with_dst(index: integer|value, bytes: integer|value,
    rank?: integer|value)
  arrive_cp_async_mbarrier(index: integer|value)
  wait(index: integer|value, phase: integer|value, scope?: string)
  try_wait(index: integer|value, phase: integer|value, scope?: string)
  test_wait(index: integer|value, phase: integer|value)
]])

return sign.public("pipeline.", sync, [[
  NamedBarrier(opts: {barrier_id num_threads})
  MbarrierArray(opts: {arrivals maker num_stages storage})
  TmaStoreFence(num_stages: integer)
  alloc_reserved_mbarrier(num_stages: integer, multiplier?: integer)
  CooperativeGroup(agent: string, size?: integer, alignment?: integer)
  arrive(barrier_id: integer|value, num_threads: integer|value)
  arrive_and_wait(barrier_id: integer|value, num_threads: integer|value)
  arrive_unaligned(barrier_id: integer|value, num_threads: integer|value)
  wait_unaligned(barrier_id: integer|value, num_threads: integer|value)
  sync(barrier_id?: integer|value) wait()
  pipeline_init_arrive(cluster?: boolean|table|layout, is_relaxed?: boolean)
  pipeline_init_wait(cluster?: boolean|table|layout)
  agent_sync(group?: string|boolean|table|layout, is_relaxed?: boolean)
]])
-- SPDX-License-Identifier: MIT
