--- cute.pipeline, part: what threads meet at: named barriers, arrays of
-- mbarriers, groups of TMA stores; and who they are.
local sign = require "cute.lang.signature"
local core = require "cute.core"
local arch = require "cute.arch"

local sync = {}

---------------------------------------------------------------------------
-- SyncObject: what all of them can be asked
---------------------------------------------------------------------------

local SyncObject = {}
SyncObject.__index = SyncObject

local function lacks(object, what, why)
  core.fail("bad-argument", ("a %s has no %s%s"):format(
    getmetatable(object).__name or "SyncObject", what, why or ""))
end

--- Tells that this thread, or its agent, has come.
function SyncObject:arrive() lacks(self, "arrive()") end

--- Waits until all have come.
function SyncObject:wait() lacks(self, "wait()") end

--- Arrives, and waits until all have come: arrive and wait, with their
-- arguments.
function SyncObject:arrive_and_wait(...)
  self:arrive(...)
  self:wait(...)
end

--- Arrives, and is not counted from then on.
function SyncObject:arrive_and_drop()
  lacks(self, "arrive_and_drop()", ": all that are counted arrive each time")
end

--- What it is to the hardware: an mbarrier's pointer, a named barrier's
-- number, or nil.
function SyncObject:get_barrier() end  -- luacheck: ignore self

--- How many stages it can have: nothing limits them.
function SyncObject:max() end  -- luacheck: ignore self

-- The methods that a class has not are SyncObject's.
local function inherit(class)
  for name, f in pairs(SyncObject) do
    if class[name] == nil then class[name] = f end
  end
  return class
end

---------------------------------------------------------------------------
-- NamedBarrier: some of the block's warps meet
---------------------------------------------------------------------------

local Barrier = {}
Barrier.__index = Barrier

--- Barrier `barrier_id` (1 to 15, or traced) of `num_threads` threads.
---@param opts {barrier_id: integer|cute.Value, num_threads: integer}
function sync.NamedBarrier(opts)
  local id, n = opts.barrier_id, opts.num_threads
  if core.typename(id) ~= "value"
    and (math.type(id) ~= "integer" or id < 0 or id > 15) then
    core.fail("bad-argument", ("NamedBarrier: id %s is not in 0 to 15")
      :format(tostring(id)))
  end
  if math.type(n) ~= "integer" or n < 32 or n % 32 ~= 0 then
    core.fail("bad-argument", ("NamedBarrier: %s threads are no whole warps")
      :format(tostring(n)))
  end
  return setmetatable({barrier_id = id, num_threads = n}, Barrier)
end

--- Arrives without waiting; another call of this thread, or others, wait.
function Barrier:arrive()
  arch.barrier_arrive(self.barrier_id, self.num_threads)
end

--- Arrives and waits until all have.
function Barrier:arrive_and_wait()
  arch.barrier(self.barrier_id, self.num_threads)
end
Barrier.sync = Barrier.arrive_and_wait

--- Arrives where lanes of a warp may come one by one.
function Barrier:arrive_unaligned()
  arch.barrier_arrive(self.barrier_id, self.num_threads, {aligned = false})
end

--- Arrives and waits, as PTX has it: arrive_and_wait where lanes of a warp may
-- come one by one.
function Barrier:wait_unaligned()
  arch.barrier(self.barrier_id, self.num_threads, {aligned = false})
end

--- A named barrier knows arrivals only: there is no waiting without one.
function Barrier:wait()
  core.fail("bad-argument", ("barrier %s: a named barrier has no wait of its "
    .. "own\n  those who wait call arrive_and_wait(), and are counted in "
    .. "num_threads"):format(tostring(self.barrier_id)))
end

function Barrier:get_barrier() return self.barrier_id end

--- Arrives at a named barrier without waiting there.
---@param barrier_id integer|cute.Value
---@param num_threads integer
function sync.arrive(barrier_id, num_threads)
  arch.barrier_arrive(barrier_id, num_threads)
end

--- Arrives at a named barrier and waits until all threads have.
---@param barrier_id integer|cute.Value
---@param num_threads integer
function sync.arrive_and_wait(barrier_id, num_threads)
  arch.barrier(barrier_id, num_threads)
end

--- arrive where lanes of a warp may come one by one.
---@param barrier_id integer|cute.Value
---@param num_threads integer
function sync.arrive_unaligned(barrier_id, num_threads)
  arch.barrier_arrive(barrier_id, num_threads, {aligned = false})
end

--- arrive_and_wait where lanes of a warp may come one by one.
---@param barrier_id integer|cute.Value
---@param num_threads integer
function sync.wait_unaligned(barrier_id, num_threads)
  arch.barrier(barrier_id, num_threads, {aligned = false})
end

--- The whole block meets.
---@param barrier_id? integer|cute.Value 0 when absent
function sync.sync(barrier_id) arch.barrier(barrier_id or 0) end

--- Raises [bad-argument]: a named barrier is arrived at and waited for at once,
-- by arrive_and_wait.
function sync.wait() setmetatable({barrier_id = 0}, Barrier):wait() end

---------------------------------------------------------------------------
-- Who arrives
---------------------------------------------------------------------------

--- What arrives once: each thread, or one lane for its warp. And whom
-- agent_sync brings together.
sync.Agent = {Thread = "thread", Warp = "warp", ThreadBlock = "block",
              ThreadBlockCluster = "cluster"}

local Group = {}
Group.__index = Group

--- `size` threads or warps of a block that do one thing together: as many
-- arrivals at a barrier of theirs.
---@param agent "thread"|"warp" of pipeline.Agent
---@param size? integer 1 when absent
---@param alignment? integer not asked: groups lie anywhere
function sync.CooperativeGroup(agent, size, alignment)  -- luacheck: ignore
  size = size or 1
  if agent ~= "thread" and agent ~= "warp" then
    core.fail("unknown-name", ("CooperativeGroup: no agent '%s' (Agent.Thread, "
      .. "Agent.Warp)"):format(tostring(agent)))
  end
  if math.type(size) ~= "integer" or size < 1 or size > 1024 then
    core.fail("bad-argument", ("CooperativeGroup: a size of %s: 1 to 1024 is "
      .. "needed"):format(tostring(size)))
  end
  return setmetatable({agent = agent, size = size}, Group)
end

function Group:__tostring()
  return ("%d %s%s"):format(self.size, self.agent, self.size > 1 and "s" or "")
end

-- Is this the block's first thread?
local function first_thread()
  local x, y, z = arch.thread_idx()
  return x:eq(0) & y:eq(0) & z:eq(0)
end

-- Is there a cluster of several blocks? true, its shape {m, n}, its layout
-- (V,M,N,K), or what an agent is called.
local function clustered(cluster)
  if type(cluster) == "boolean" or cluster == nil then return cluster end
  if cluster == "cluster" or cluster == "block" then
    return cluster == "cluster"
  end
  if type(cluster) == "string" then
    core.fail("unknown-name", ("no agent '%s' that is brought together "
      .. "(Agent.ThreadBlock, Agent.ThreadBlockCluster)"):format(cluster))
  end
  return core.size(cluster) > 1
end

--- Between the making of barriers and their use, first half: barriers of a
-- cluster are seen by its other blocks. `cluster` says whether there is one.
---@param cluster? boolean|integer[]|cute.Layout or its shape
---@param is_relaxed? boolean nothing but mbarriers needs order: these have it
-- by mbarrier_init_fence
function sync.pipeline_init_arrive(cluster, is_relaxed)
  if not clustered(cluster) then return end
  if is_relaxed then arch.cluster_arrive_relaxed()
  else arch.cluster_arrive() end
end

--- The second half: the cluster, or the block, has met.
---@param cluster? boolean|integer[]|cute.Layout
function sync.pipeline_init_wait(cluster)
  if clustered(cluster) then arch.cluster_wait() else arch.sync_threads() end
end

--- pipeline_init_arrive and pipeline_init_wait at once, of the block, or of the
-- cluster.
---@param group? string|boolean|integer[]|cute.Layout of pipeline.Agent, or the
-- cluster's shape
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

--- How an mbarrier lies in memory: 8 bytes, as the hardware has it.
sync.MbarrierLayout = {V0 = "v0"}

--- Shared memory for the mbarriers of a pipeline: a pointer to num_stages *
-- multiplier i64. Pipelines without barrier_storage take as much.
---@param num_stages integer
---@param multiplier? integer mbarriers a stage: 2, full and empty, when absent
---@return table pointer
function sync.alloc_reserved_mbarrier(num_stages, multiplier)
  multiplier = multiplier or 2
  for _, n in ipairs {num_stages, multiplier} do
    if n < 1 or n > 1024 then
      core.fail("bad-argument", ("alloc_reserved_mbarrier: %d stages of %d "
        .. "mbarriers: 1 to 1024 of each can be"):format(num_stages,
        multiplier))
    end
  end
  return arch.alloc_smem(core.i64, num_stages * multiplier)
end

--- One mbarrier a stage, in which a phase ends after `arrivals`, and all bytes
-- that were expected. One thread makes them; nobody else may use them before
-- agent_sync, or what orders the others behind it.
---@param opts table {num_stages: integer, arrivals: integer, storage: table?,
-- maker: cute.Value?}
-- storage: a pointer to num_stages i64 of shared memory; maker: is this the
-- thread that makes them? The block's first one when absent
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

--- The mbarrier of a stage, a pointer.
---@param index integer|cute.Value
function Array:get_barrier(index) return self.storage + index end

-- For whom arrivals and waits order: the instruction's plain form without.
local function hints(scope) return scope and {scope = scope} end

--- Arrives; in another block of the cluster with its rank. scope: of
-- arch.mbarrier_arrive.
---@param index integer|cute.Value
---@param rank? integer|cute.Value
---@param scope? "cta"|"cluster"
function Array:arrive(index, rank, scope)
  arch.mbarrier_arrive(self.storage + index, rank, nil, hints(scope))
end
Array.arrive_mbarrier = Array.arrive

--- Arrives, and expects so many bytes.
---@param index integer|cute.Value
---@param bytes integer|cute.Value
function Array:arrive_and_expect_tx(index, bytes)
  arch.mbarrier_arrive_and_expect_tx(self.storage + index, bytes)
end

--- arrive_and_expect_tx in another block of the cluster.
---@param index integer|cute.Value
---@param bytes integer|cute.Value
---@param rank? integer|cute.Value
function Array:arrive_and_expect_tx_with_dst(index, bytes, rank)
  arch.mbarrier_arrive_and_expect_tx(self.storage + index, bytes, rank)
end

--- Arrives when the cp.async copies that this thread began are there.
---@param index integer|cute.Value
function Array:arrive_cp_async_mbarrier(index)
  arch.cp_async_mbarrier_arrive_noinc(self.storage + index)
end

--- Waits until the phase of that parity is over.
---@param index integer|cute.Value
---@param phase integer|cute.Value
---@param scope? "cta"|"cluster"
function Array:wait(index, phase, scope)
  arch.mbarrier_wait(self.storage + index, phase, hints(scope))
end

--- Is it over? Waits for a while.
---@param index integer|cute.Value
---@param phase integer|cute.Value
---@param scope? "cta"|"cluster"
function Array:try_wait(index, phase, scope)
  return arch.mbarrier_try_wait(self.storage + index, phase, hints(scope))
end

--- Is it over, now?
---@param index integer|cute.Value
---@param phase integer|cute.Value
function Array:test_wait(index, phase)
  return arch.mbarrier_test_wait(self.storage + index, phase)
end

--- Arrives in this block, and waits until the phase of that parity is over.
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

--- What the thread that stores num_stages buffers by TMA waits for. The stores
-- since it last arrived are a group, that of one buffer.
---@param num_stages integer
function sync.TmaStoreFence(num_stages)
  if num_stages < 1 then
    core.fail("bad-argument", ("TmaStoreFence: %d buffers; 1 or more can be")
      :format(num_stages))
  end
  return setmetatable({num_stages = num_stages}, Fence)
end

--- Closes a group.
function Fence:arrive()  -- luacheck: ignore self
  arch.cp_async_bulk_commit_group()
end

--- Waits until the oldest buffer was read, so that it may be filled anew.
function Fence:wait()
  arch.cp_async_bulk_wait_group(self.num_stages - 1, true)
end

--- Waits until all buffers were read: before shared memory goes.
function Fence:tail()  -- luacheck: ignore self
  arch.cp_async_bulk_wait_group(0, true)
end

--- The class of what threads meet at. A class of the user's own whose
-- metatable has it as __index has the methods that it does not define.
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
