--- The pipelines of cute.pipeline: rings of stages between producers and
-- consumers. There is one class for each mechanism that signals a full or empty
-- stage.
local sign = require "cute.lang.signature"
local core = require "cute.core"
local arch = require "cute.arch"
local states = require "cute.pipe.state"
local sync = require "cute.pipe.sync"

local stages = {}

local function branch() return require "cute.lang.branch" end
local function trace() return require "cute.lang.trace" end

local function count_of(what, opts, least)
  if type(opts) ~= "table" then
    core.fail("bad-argument", ("%s takes a table of options, not %s\n  write "
      .. "%s {num_stages = n, ...}"):format(what, core.show(opts), what))
  end
  local n = opts.num_stages
  if math.type(n) ~= "integer" or n < least then
    core.fail("bad-argument", ("%s: num_stages must be a Lua integer of %d or "
      .. "more, not %s"):format(what, least, core.show(n)))
  end
  return n
end

---------------------------------------------------------------------------
-- PipelineCpAsync: groups of cp.async and a barrier of the block
---------------------------------------------------------------------------

local CpAsync = {}
CpAsync.__index = CpAsync

--- Makes a pipeline of num_stages stages for cp.async. All threads of the
-- block, or those of `barrier` (a NamedBarrier), both fill and read the stages.
-- If producers and consumers are different threads, use PipelineAsync {cp_async
-- = true}.
---@param opts {num_stages: integer, barrier: table?}
function stages.PipelineCpAsync(opts)
  return setmetatable({num_stages = count_of("PipelineCpAsync", opts, 2),
                       barrier = opts.barrier}, CpAsync)
end

local function meet(p)
  if p.barrier then p.barrier:arrive_and_wait() else arch.sync_threads() end
end

--- Returns the producer's initial state: it is at the first stage, and all
-- stages are empty.
function CpAsync:make_producer_state()
  return states.make_pipeline_state("producer", self.num_stages)
end

--- Returns the consumer's initial state, at the first stage.
function CpAsync:make_consumer_state()
  return states.make_pipeline_state("consumer", self.num_stages)
end

--- Does nothing, because the stage is already empty: consumer_wait synchronized
-- after the last reads of this stage (see consumer_release).
function CpAsync:producer_acquire(state) end  -- luacheck: ignore self state

--- Ends a group that contains the copies since the last commit
-- (cp.async.commit_group). These copies fill this stage.
function CpAsync:producer_commit(state)  -- luacheck: ignore self state
  arch.cp_async_commit_group()
end

--- Waits until the stage is full for all threads. The producer commits
-- num_stages - 1 groups ahead of the reader, so the oldest group is complete
-- when at most num_stages - 2 groups are pending. Then all threads synchronize,
-- and each sees the others' copies.
--
-- The synchronization also guarantees that all threads have read the previous
-- stage, which the next copies overwrite. A pipeline whose producer is
-- num_stages - 1 stages ahead needs no second barrier.
function CpAsync:consumer_wait(state)  -- luacheck: ignore state
  arch.range("consumer_wait", function()
    arch.cp_async_wait_group(self.num_stages - 2)
    meet(self)
  end)
end

--- Does nothing: the synchronization in the next consumer_wait marks the stage
-- as read.
function CpAsync:consumer_release(state) end  -- luacheck: ignore self state

--- Waits for all pending copies, before shared memory is reused.
function CpAsync:producer_tail(state)  -- luacheck: ignore state
  arch.cp_async_wait_group(0)
  meet(self)
end

---------------------------------------------------------------------------
-- PipelineAsync, PipelineTmaAsync: two mbarriers for each stage
---------------------------------------------------------------------------

local Async = {}
Async.__index = Async

local function group_of(what, opts, name)
  local g = opts[name]
  if type(g) ~= "table" or g.agent == nil then
    core.fail("bad-argument", ("%s: %s must be a CooperativeGroup, not "
      .. "%s"):format(
      what, name, core.show(g)))
  end
  return g
end

-- Returns the number of blocks that the multicast copies of one block can
-- reach: all blocks in its row and column of the cluster, including itself.
-- `cluster` is {m, n}.
local function peers_of(cluster)
  return cluster and cluster[1] + cluster[2] - 1 or 1
end

local function cluster_of(what, opts)
  local c = opts.cluster_shape_mn
  if c == nil then return nil end
  if type(c) ~= "table" or math.type(c[1]) ~= "integer"
    or math.type(c[2]) ~= "integer" or c[1] < 1 or c[2] < 1
    or c[1] * c[2] > 16 then
    core.fail("bad-argument", ("%s: cluster_shape_mn = %s; {m, n} of at most "
      .. "16 blocks is needed"):format(what, core.show(c)))
  end
  return c[1] * c[2] > 1 and {c[1], c[2]} or nil
end

local function make(what, opts, class, cluster)
  local n = count_of(what, opts, 1)
  local from = group_of(what, opts, "producer_group")
  local to = group_of(what, opts, "consumer_group")
  local storage = opts.barrier_storage
  local p = setmetatable({
    num_stages = n, producer_group = from, consumer_group = to,
    cluster = cluster, cp_async = opts.cp_async, tx_count = opts.tx_count,
    full = sync.MbarrierArray {num_stages = n, storage = storage,
                               arrivals = from.size, maker = opts.maker},
    empty = sync.MbarrierArray {num_stages = n,
                                storage = storage and storage + n,
                                arrivals = to.size * peers_of(cluster),
                                maker = opts.maker},
  }, class)
  if not opts.defer_sync then sync.agent_sync(cluster ~= nil, true) end
  return p
end

--- Makes stages that some threads of a block fill and others read. A thread
-- must have completed its accesses before it arrives. With cp_async = true, the
-- hardware arrives when a thread's cp.async copies are complete.
--
-- All threads of a group call the pipeline's functions. If the group's agent is
-- Warp, one lane arrives for the warp. Synchronize the lanes of the warp first
-- (arch.sync_warp).
---@param opts table {num_stages: integer, producer_group: table,
-- consumer_group: table, barrier_storage: table?, defer_sync: boolean?,
-- maker: cute.Value?, cp_async: boolean?}
-- barrier_storage: 2 * num_stages i64 of shared memory; with defer_sync the
-- caller calls agent_sync before the first use; maker: see MbarrierArray
function stages.PipelineAsync(opts)
  return make("PipelineAsync", opts, Async)
end

Async.make_producer_state = CpAsync.make_producer_state
Async.make_consumer_state = CpAsync.make_consumer_state

-- Raises an error if a state does not match pipeline p: the state was made
-- (make_pipeline_state) for another user than `user` ("producer" or
-- "consumer"), or it has more stages.
local function check_state(p, what, state, user)
  local is = rawget(state, "user")
  if state.stages > p.num_stages then
    core.fail("bad-argument", ("%s: the state has %d stages, but the pipeline "
      .. "has %d"):format(what, state.stages, p.num_stages))
  elseif is and is ~= user then
    core.fail("bad-argument", ("%s: the state was made for a %s, whose first "
      .. "phase is %d\n  write make_%s_state() of the pipeline"):format(what,
      is, is == "producer" and 1 or 0, user))
  end
end

-- Waits for the phase of the state's stage, unless a previous try_wait has
-- reported it as complete. `token` is the result of that try_wait, or nil.
local function wait_unless(token, array, state, scope)
  local function wait() array:wait(state.index, state.phase, scope) end
  if token == nil then return wait() end
  branch().when(token, function() end, wait)
end

-- Calls f in all threads of a group. If the group's agent is Warp, calls f in
-- one lane of each warp.
local function by(group, f)
  if group.agent == "thread" then return f() end
  branch().when(arch.lane_idx():eq(0), f)
end

--- Waits until the stage is empty. `token` is the result of
-- producer_try_acquire, or nil.
function Async:producer_acquire(state, token)
  check_state(self, "producer_acquire", state, "producer")
  arch.range("producer_acquire", wait_unless, token, self.empty, state)
end

--- Reports whether the stage is empty. May first wait for a limited time.
function Async:producer_try_acquire(state)
  check_state(self, "producer_try_acquire", state, "producer")
  return self.empty:try_wait(state.index, state.phase)
end

--- Marks the stage as filled.
function Async:producer_commit(state)
  if self.cp_async then
    return self.full:arrive_cp_async_mbarrier(state.index)
  end
  by(self.producer_group, function() self.full:arrive(state.index) end)
end

--- Waits until the stage is full. `token` is the result of consumer_try_wait,
-- or nil.
function Async:consumer_wait(state, token)
  check_state(self, "consumer_wait", state, "consumer")
  arch.range("consumer_wait", wait_unless, token, self.full, state)
end

--- Reports whether the stage is full. May first wait for a limited time.
function Async:consumer_try_wait(state)
  check_state(self, "consumer_try_wait", state, "consumer")
  return self.full:try_wait(state.index, state.phase)
end

local function release(p, state)
  by(p.consumer_group, function() p.empty:arrive(state.index) end)
end

--- Marks the stage as read.
function Async:consumer_release(state) release(self, state) end

--- Returns the mbarrier whose phase completes when the stage is full. TMA
-- copies into the stage signal it.
function Async:producer_get_barrier(state)
  return self.full:get_barrier(state.index)
end

--- Returns the mbarrier whose phase completes when the stage is empty.
function Async:consumer_get_barrier(state)
  return self.empty:get_barrier(state.index)
end

--- Waits until all stages are empty. A block must not exit earlier, because
-- another block could still signal its mbarriers. `state` is the producer's
-- state for the next tile; it advances.
function Async:producer_tail(state)
  for _ = 1, self.num_stages do
    self:producer_acquire(state)
    state:advance()
  end
end

local Tma = {}
Tma.__index = Tma

--- Makes stages that one thread fills by TMA. Each stage receives tx_count
-- bytes from this block's copies, and from copies that other blocks of the
-- cluster multicast to this block.
--
-- consumer_group describes the readers in this block. In a cluster {m, n}, a
-- block copies its part of A to the blocks of its row and its part of B to
-- those of its column. The readers of a block therefore signal all blocks whose
-- copies reach it. If consumer_group counts threads, each thread arrives once
-- at each of these blocks. If it counts warps, one lane of each warp does.
--
-- If wgmma reads a stage, a plain arrival suffices to release the stage to
-- another block. If threads read the stage themselves (ldmatrix, loads), use
-- scope = "cluster" to release it to other blocks, which costs a fence.
---@param opts table {num_stages: integer, producer_group: table,
-- consumer_group: table, tx_count: integer, cluster_shape_mn: integer[]?,
-- scope: "cta"|"cluster"?, barrier_storage: table?, defer_sync: boolean?,
-- maker: cute.Value?}
function stages.PipelineTmaAsync(opts)
  local what = "PipelineTmaAsync"
  local scope = opts.scope
  if scope ~= nil and scope ~= "cta" and scope ~= "cluster" then
    core.fail("unknown-name", ("%s: scope = %s; \"cta\" or \"cluster\" is "
      .. "needed"):format(what, core.show(scope)))
  end
  local bytes = opts.tx_count
  if math.type(bytes) ~= "integer" or bytes < 1 or bytes >= 1 << 20 then
    core.fail("bad-argument", ("%s: tx_count = %s; the bytes of a stage, 1 to "
      .. "%d, are needed")
      :format(what, core.show(bytes), (1 << 20) - 1))
  end
  local p = make(what, opts, Tma, cluster_of(what, opts))
  p.scope = p.cluster and scope
  return p
end

--- Waits until the stage is empty in all blocks that this block's copies fill.
-- Then makes the stage's mbarrier expect tx_count bytes. If tx_count is absent,
-- this is the tx_count of the pipeline.
function Tma:producer_acquire(state, token, tx_count)
  check_state(self, "producer_acquire", state, "producer")
  arch.range("producer_acquire", wait_unless, token, self.empty, state,
             self.scope)
  self.full:arrive_and_expect_tx(state.index, tx_count or self.tx_count)
end

function Tma:producer_try_acquire(state)
  check_state(self, "producer_try_acquire", state, "producer")
  return self.empty:try_wait(state.index, state.phase, self.scope)
end

--- Does nothing: the stage becomes full when its bytes arrive.
function Tma:producer_commit(state) end  -- luacheck: ignore self state

-- Returns the rank in the cluster of the i-th peer of this block. The blocks of
-- its row (n differs) come first, then the other blocks of its column.
local function peer(cluster, i)
  local m, n = arch.block_in_cluster_idx()
  local rows, columns = cluster[1], cluster[2]
  -- In a cluster of one row or one column, all blocks are peers, and the rank
  -- of peer i is i.
  if rows == 1 then return i end
  if columns == 1 then return i end
  local j = i - columns
  local other = core.where(core.lt(j, m), j, j + 1)
  return core.where(core.lt(i, columns), m + rows * i, other + rows * n)
end

--- Marks the stage as read, in all blocks whose copies fill this block's stage.
function Tma:consumer_release(state)
  local cluster, index, scope = self.cluster, state.index, self.scope
  if not cluster then return release(self, state) end
  if self.consumer_group.agent == "thread" then
    for i = 0, peers_of(cluster) - 1 do
      self.empty:arrive(index, peer(cluster, i), scope)
    end
    return
  end
  local lane = arch.lane_idx()
  branch().when(lane:lt(peers_of(cluster)), function()
    self.empty:arrive(index, peer(cluster, lane), scope)
  end)
end

--- Waits until all stages are empty again. Unlike producer_acquire, does not
-- expect bytes, because no further copies follow.
function Tma:producer_tail(state)
  for _ in trace().range(0, self.num_stages, 1, {unroll = 1}) do
    self.empty:wait(state.index, state.phase)
    state:advance()
  end
end

---------------------------------------------------------------------------
-- PipelineTmaUmma, PipelineUmmaAsync, PipelineAsyncUmma: tcgen05.mma (sm_100a)
---------------------------------------------------------------------------

local TmaUmma, UmmaAsync, AsyncUmma = {}, {}, {}
TmaUmma.__index, UmmaAsync.__index = TmaUmma, UmmaAsync
AsyncUmma.__index = AsyncUmma
-- Methods of other pipelines, for MMAs of a single CTA.
local acquire_alone, fill_alone, tail_alone =
  Tma.producer_acquire, Async.producer_commit, Async.producer_tail

-- Returns the shape {v, m, n} of a cluster: MMAs of v CTAs each, m of them
-- along M and n along N. Returns nil without a cluster. The shape comes from
-- the option cta_layout_vmnk or, for MMAs of one CTA, from cluster_shape_mn.
local function shape_vmn(what, opts)
  local l, c = opts.cta_layout_vmnk, cluster_of(what, opts)
  if l == nil then return c and {1, c[1], c[2]} end
  local n = {}
  local ok = core.typename(l) == "layout" and core.rank(l) == 4
  for i = 0, 3 do n[i + 1] = ok and core.size(l, i) end
  ok = ok and math.type(core.size(l)) == "integer" and core.size(l) <= 16
    and n[1] <= 2 and n[4] == 1
  for i = 0, ok and core.size(l) - 1 or -1 do ok = ok and l(i) == i end
  if not ok or c then
    core.fail("bad-argument", ("%s: cta_layout_vmnk = %s; a compact layout "
      .. "(V,M,N,1) with V = 1 or 2 and at most 16 blocks is needed%s\n  "
      .. "write tiled_divide(make_layout(cluster_shape), {mma.thr_id})")
      :format(what, core.show(l), c and ", without cluster_shape_mn" or ""))
  end
  return core.size(l) > 1 and {n[1], n[2], n[3]} or nil
end

-- Makes a pipeline for MMAs. Its field `shape` is the result of shape_vmn.
local function make_mma(what, opts, class, shape)
  local all = {}
  for k, v in pairs(opts) do all[k] = v end
  all.defer_sync = true
  local p = make(what, all, class, nil)
  p.shape = shape
  if not opts.defer_sync then sync.agent_sync(shape ~= nil, true) end
  return p
end

-- Reports whether the MMAs of a pipeline belong to pairs of CTAs.
local function of_pairs(p) return p.shape ~= nil and p.shape[1] == 2 end

-- Returns the rank of the even CTA of this CTA's pair, which issues the MMAs.
local function leader() return arch.block_idx_in_cluster() // 2 * 2 end

-- Makes an mbarrier count an arrival when all MMAs that this thread issued have
-- ended. With a mask, does so for the same mbarrier in each block of the mask.
local function commit(p, mbarrier, mask)
  core.umma_commit(mbarrier, mask, of_pairs(p))
end

-- Returns the mask of the blocks of this block's pair, or nil without pairs.
local function pair_mask(p)
  if not of_pairs(p) then return nil end
  return 3 << leader()
end

-- Returns the mask of the blocks whose copies reach this block's stages. If
-- modes[1] is not 0, it includes the blocks of MMAs in the same row; if
-- modes[2] is not 0, in the same column. Returns nil without a cluster.
local function peer_mask(p)
  if not p.shape then return nil end
  local v, rows, columns = table.unpack(p.shape)
  local modes = p.mcast_mode_mn or {1, 1}
  local m, n = arch.block_in_cluster_idx()
  m = m // v * v                        -- first block of the MMA
  local row, column = 0, (1 << v * rows) - 1
  for j = 0, columns - 1 do row = row | (1 << v) - 1 << v * rows * j end
  row, column = row << m, column << v * rows * n
  if modes[1] == 0 then return column end
  return modes[2] == 0 and row or row | column
end

--- Makes stages that one thread fills by TMA, and that tcgen05.mma reads. The
-- consumer is the thread that issues the MMAs. Its consumer_release commits the
-- MMAs, so that the stage becomes empty when they have read it. The other
-- options are those of PipelineTmaAsync.
--
-- With cta_layout_vmnk, consumer_group counts all arrivals at a stage: those of
-- the MMAs in the same row and column of the cluster. If V is 2, both CTAs of a
-- pair copy tiles. Only the even CTA, the leader, expects the bytes and waits
-- for them; tx_count counts the bytes of both. The field is_leader_cta says
-- whether this CTA is a leader.
---@param opts table {num_stages: integer, producer_group: table,
-- consumer_group: table, tx_count: integer, cluster_shape_mn: integer[]?,
-- cta_layout_vmnk: cute.Layout?, mcast_mode_mn: integer[]?,
-- barrier_storage: table?, defer_sync: boolean?, maker: cute.Value?}
-- cta_layout_vmnk: the CTAs (V,M,N,1) of a cluster; mcast_mode_mn: whether
-- copies of A and of B are multicasts, {1, 1} if absent
function stages.PipelineTmaUmma(opts)
  local what, one = "PipelineTmaUmma", {}
  local shape = shape_vmn(what, opts)
  for k, v in pairs(opts) do one[k] = v end
  one.cta_layout_vmnk, one.mcast_mode_mn = nil, nil
  one.defer_sync = one.defer_sync or shape ~= nil
  local p = setmetatable(stages.PipelineTmaAsync(one), TmaUmma)
  p.shape, p.mcast_mode_mn = shape, opts.mcast_mode_mn
  p.is_leader_cta = true
  if of_pairs(p) then
    p.is_leader_cta = arch.block_idx_in_cluster():eq(leader())
  end
  if shape and not opts.defer_sync then sync.agent_sync(true, true) end
  return p
end

--- Waits until the stage is empty in all blocks that this block's copies fill.
-- Then makes the stage's mbarrier expect bytes, except in the odd CTA of a
-- pair.
function TmaUmma:producer_acquire(state, token, tx_count)
  if not of_pairs(self) then
    return acquire_alone(self, state, token, tx_count)
  end
  check_state(self, "producer_acquire", state, "producer")
  arch.range("producer_acquire", wait_unless, token, self.empty, state)
  branch().when(self.is_leader_cta, function()
    self.full:arrive_and_expect_tx(state.index, tx_count or self.tx_count)
  end)
end

--- Marks the stage as read once all MMAs that this thread issued have ended.
function TmaUmma:consumer_release(state)
  commit(self, self.empty:get_barrier(state.index), peer_mask(self))
end

--- Makes stages of tensor memory that MMAs fill and threads read. The producer
-- is the thread that issues the MMAs. Its producer_commit commits the MMAs, so
-- that the stage becomes full when they have ended. Threads of both CTAs of a
-- pair read the stages; consumer_group counts all of these threads.
---@param opts table {num_stages: integer, producer_group: table,
-- consumer_group: table, cta_layout_vmnk: cute.Layout?,
-- barrier_storage: table?, defer_sync: boolean?, maker: cute.Value?}
-- cta_layout_vmnk: the CTAs (V,M,N,1) of a cluster
function stages.PipelineUmmaAsync(opts)
  local what = "PipelineUmmaAsync"
  return make_mma(what, opts, UmmaAsync, shape_vmn(what, opts))
end

--- Marks the stage as filled, in both CTAs of a pair, once all MMAs that this
-- thread issued have ended.
function UmmaAsync:producer_commit(state)
  check_state(self, "producer_commit", state, "producer")
  commit(self, self.full:get_barrier(state.index), pair_mask(self))
end

--- Marks the stage as read, in the block that issues the MMAs.
function UmmaAsync:consumer_release(state)
  if not of_pairs(self) then return release(self, state) end
  by(self.consumer_group, function()
    self.empty:arrive(state.index, leader())
  end)
end

--- Waits until all stages are empty. Only the block that issues the MMAs waits.
function UmmaAsync:producer_tail(state)
  if not of_pairs(self) then return tail_alone(self, state) end
  branch().when(arch.block_idx_in_cluster():eq(leader()), function()
    tail_alone(self, state)
  end)
end

--- Makes stages that threads fill and that tcgen05.mma reads, such as an
-- operand in tensor memory. The consumer is the thread that issues the MMAs.
-- Threads of both CTAs of a pair fill a stage; producer_group counts all of
-- these threads.
---@param opts table {num_stages: integer, producer_group: table,
-- consumer_group: table, cta_layout_vmnk: cute.Layout?,
-- barrier_storage: table?, defer_sync: boolean?, maker: cute.Value?}
-- cta_layout_vmnk: the CTAs (V,M,N,1) of a cluster
function stages.PipelineAsyncUmma(opts)
  local what = "PipelineAsyncUmma"
  return make_mma(what, opts, AsyncUmma, shape_vmn(what, opts))
end

--- Marks the stage as filled, in the block that issues the MMAs.
function AsyncUmma:producer_commit(state)
  if not of_pairs(self) then return fill_alone(self, state) end
  by(self.producer_group, function()
    self.full:arrive(state.index, leader(), "cluster")
  end)
end

--- Waits until the stage is full. `token` is the result of consumer_try_wait,
-- or nil.
function AsyncUmma:consumer_wait(state, token)
  check_state(self, "consumer_wait", state, "consumer")
  arch.range("consumer_wait", wait_unless, token, self.full, state,
             of_pairs(self) and "cluster" or nil)
end

--- Marks the stage as read, in both CTAs of a pair, once all MMAs that this
-- thread issued have ended.
function AsyncUmma:consumer_release(state)
  commit(self, self.empty:get_barrier(state.index), pair_mask(self))
end

---------------------------------------------------------------------------
-- PipelineClcFetchAsync: answers of cluster launch control (sm_100a)
---------------------------------------------------------------------------

local Clc = {}
Clc.__index = Clc

--- Makes stages for responses to arch.issue_clc_query (cluster launch control).
-- The producer is one thread of the cluster's first block. A response arrives
-- in every block of the cluster. consumer_group describes the readers in one
-- block. All readers count as consumers, including the producer if it reads the
-- responses.
---@param opts table {num_stages: integer, producer_group: table,
-- consumer_group: table, tx_count: integer?, cluster_shape_mn: integer[]?,
-- cta_layout_vmnk: cute.Layout?, barrier_storage: table?, defer_sync: boolean?,
-- maker: cute.Value?}
-- tx_count: the bytes of a response, 16; cta_layout_vmnk: the CTAs (V,M,N,1) of
-- a cluster, instead of cluster_shape_mn
function stages.PipelineClcFetchAsync(opts)
  local what = "PipelineClcFetchAsync"
  local cluster = shape_vmn(what, opts)
  local bytes = opts.tx_count or 16
  if bytes ~= 16 then
    core.fail("bad-argument", ("%s: tx_count = %s; 16, the bytes of a "
      .. "query's response, is needed")
      :format(what, core.show(bytes)))
  end
  local size = cluster and cluster[1] * cluster[2] * cluster[3] or 1
  local readers = group_of(what, opts, "consumer_group")
  local all = {}
  for k, v in pairs(opts) do all[k] = v end
  all.consumer_group = sync.CooperativeGroup(readers.agent, readers.size * size)
  all.defer_sync = true
  local p = make(what, all, Clc, nil)
  p.consumer_group, p.size, p.tx_count = readers, size, bytes
  if not opts.defer_sync then sync.agent_sync(size > 1, true) end
  return p
end

--- Waits until all blocks have read the stage. Then makes the mbarrier of each
-- block expect the bytes of a response.
function Clc:producer_acquire(state, token)
  check_state(self, "producer_acquire", state, "producer")
  arch.range("producer_acquire", wait_unless, token, self.empty, state,
             self.size > 1 and "cluster" or nil)
  for rank = 0, self.size - 1 do
    if self.size == 1 then
      self.full:arrive_and_expect_tx(state.index, self.tx_count)
    else
      self.full:arrive_and_expect_tx_with_dst(state.index, self.tx_count, rank)
    end
  end
end

Clc.producer_try_acquire = Tma.producer_try_acquire
Clc.producer_commit = Tma.producer_commit
Clc.producer_tail = Tma.producer_tail

--- Marks the stage as read. A fence first completes the reader's loads, before
-- the async proxy writes a later response to the stage.
function Clc:consumer_release(state)
  check_state(self, "consumer_release", state, "consumer")
  arch.fence_view_async_shared()
  by(self.consumer_group, function()
    if self.size == 1 then self.empty:arrive(state.index)
    else self.empty:arrive(state.index, 0, "cluster") end
  end)
end

---------------------------------------------------------------------------
-- PipelineTmaStore: groups of TMA stores
---------------------------------------------------------------------------

local TmaStore = {}
TmaStore.__index = TmaStore

--- Makes num_stages buffers of shared memory, which a single thread stores by
-- TMA. Only this thread waits for its stores. Other threads must synchronize
-- with it at a barrier before they reuse a buffer.
---@param opts {num_stages: integer}
function stages.PipelineTmaStore(opts)
  local n = count_of("PipelineTmaStore", opts, 1)
  return setmetatable({num_stages = n, fence = sync.TmaStoreFence(n)},
                      TmaStore)
end

--- Waits until the TMA store of the oldest buffer has read the buffer, which
-- can then be filled again.
function TmaStore:producer_acquire() self.fence:wait() end

--- Ends the group that contains the TMA stores since the last commit. These
-- stores read this buffer.
function TmaStore:producer_commit() self.fence:arrive() end

--- Waits until the TMA stores have read all buffers, before shared memory is
-- released.
function TmaStore:producer_tail() self.fence:tail() end

--- Does nothing: only TMA reads the buffers.
function TmaStore:consumer_wait() end  -- luacheck: ignore self
function TmaStore:consumer_release() end  -- luacheck: ignore self

---------------------------------------------------------------------------
-- PipelineOrder: groups execute one after the other
---------------------------------------------------------------------------

local Order = {}
Order.__index = Order

--- Makes an object that lets `length` groups of threads take turns. Group 0
-- executes `depth` steps, then group 1 does, and so on; after the last group,
-- group 0 continues. Each group makes one such object, with the same storage
-- but its own group_id (which may be traced). producer_group counts the threads
-- that arrive when a group has finished a step.
---@param opts table {depth: integer, length: integer, group_id: any,
-- producer_group: table, barrier_storage: table?, defer_sync: boolean?,
-- maker: cute.Value?}
-- barrier_storage: depth * length i64 of shared memory
function stages.PipelineOrder(opts)
  local depth, length = opts.depth or 1, opts.length
  for _, name in ipairs {"depth", "length"} do
    local n = name == "depth" and depth or length
    if math.type(n) ~= "integer" or n < 1 then
      core.fail("bad-argument", ("PipelineOrder: %s = %s; an integer of 1 or "
        .. "more is needed"):format(name, core.show(n)))
    end
  end
  local group = group_of("PipelineOrder", opts, "producer_group")
  local id = opts.group_id
  local state = states.PipelineState(depth, 0, 0,
    math.type(id) and (id == 0 and 1 or 0) or core.where(id:eq(0), 1, 0))
  local array = sync.MbarrierArray {num_stages = depth * length,
    storage = opts.barrier_storage, arrivals = group.size,
    maker = opts.maker}
  if not opts.defer_sync then sync.agent_sync() end
  return setmetatable({depth = depth, length = length, group_id = id,
                       producer_group = group, array = array, state = state},
                      Order)
end

-- Returns the index of the mbarrier of group `id` for the current stage of
-- `state`. If `state` is absent, uses the object's own state.
local function place(o, id, state)
  return (state or o.state).index * o.length + id
end

--- Returns the mbarrier on which group `group_id` waits before its step.
---@param group_id any
---@param state? table if absent, this group's own state
function Order:get_barrier_for_current_stage_idx(group_id, state)
  return self.array:get_barrier(place(self, group_id, state))
end

--- Waits until this group may execute its next step.
---@param state? table
function Order:wait(state)
  self.array:wait(place(self, self.group_id, state),
                  (state or self.state).phase)
end

--- Lets the next group execute its step, and advances to this group's next
-- step.
---@param state? table the state to advance; if absent, this group's own state
function Order:arrive(state)
  local id, last = self.group_id, self.length - 1
  local after
  if math.type(id) then after = id == last and 0 or id + 1
  else after = core.where(id:eq(last), 0, id + 1) end
  by(self.producer_group, function()
    self.array:arrive(place(self, after, state))
  end)
  local at = state or self.state
  at:advance()
end

---------------------------------------------------------------------------
-- Producers and consumers: a pipeline and a state
---------------------------------------------------------------------------

local Handle = {}
Handle.__index = Handle

-- Makes a handle of an acquired stage. The handle has the stage's index and
-- count and, for a producer, the stage's mbarrier.
local function handle(pipe, state, barrier)
  return setmetatable({pipe = pipe, state = state, index = state.index,
                       count = state.count, barrier = barrier}, Handle)
end

--- Returns the pipeline of the stage.
function Handle:get_origin() return self.pipe end
--- Marks the stage as filled.
function Handle:commit() self.pipe:producer_commit(self.state) end
--- Marks the stage as read.
function Handle:release() self.pipe:consumer_release(self.state) end

local Producer = {}
Producer.__index = Producer
local Consumer = {}
Consumer.__index = Consumer

--- Makes a producer of a pipeline's stages. It starts at `state` or, if absent,
-- at the first stage.
---@param pipeline table
---@param state? table from make_pipeline_state
function stages.PipelineProducer(pipeline, state)
  return setmetatable({pipe = pipeline,
                       state = state or pipeline:make_producer_state()},
                      Producer)
end

--- Makes a consumer of a pipeline's stages. It starts at `state` or, if absent,
-- at the first stage.
---@param pipeline table
---@param state? table from make_pipeline_state
function stages.PipelineConsumer(pipeline, state)
  return setmetatable({pipe = pipeline,
                       state = state or pipeline:make_consumer_state()},
                      Consumer)
end

--- Makes a PipelineProducer, which fills stages, with its own state.
function Async:make_producer() return stages.PipelineProducer(self) end
--- Makes a PipelineConsumer, which reads stages, with its own state.
function Async:make_consumer() return stages.PipelineConsumer(self) end
--- Makes both a PipelineProducer and a PipelineConsumer.
function Async:make_participants()
  return self:make_producer(), self:make_consumer()
end

--- Returns a handle of the current, acquired stage, with index, count, barrier
-- and commit().
function Producer:current_handle()
  return handle(self.pipe, self.state:clone(),
                self.pipe:producer_get_barrier(self.state))
end

--- Waits until the next stage is empty, and returns its handle.
---@param token? any from try_acquire
function Producer:acquire(token)
  self.pipe:producer_acquire(self.state, token)
  return self:current_handle()
end

--- Waits until the next stage is empty, advances past it, and returns its
-- handle.
---@param token? any from try_acquire
function Producer:acquire_and_advance(token)
  local h = self:acquire(token)
  self.state:advance()
  return h
end

--- Reports whether the next stage is empty. May first wait for a limited time.
-- Pass the result to `acquire`.
function Producer:try_acquire()
  return self.pipe:producer_try_acquire(self.state)
end

--- Marks a stage as filled: the stage of handle `h`, or the current stage.
---@param h? table
function Producer:commit(h)
  self.pipe:producer_commit(h and h.state or self.state)
end

--- Advances to the next stage, or by `count` stages.
---@param count? integer|cute.Value
function Producer:advance(count) self.state:advance(count) end
--- Waits at the end until all stages are empty.
function Producer:tail() self.pipe:producer_tail(self.state) end
--- Makes a copy of the producer with a separate state.
function Producer:clone()
  return stages.PipelineProducer(self.pipe, self.state:clone())
end
--- Resets the state's count to 0, but not its stage.
function Producer:reset() self.state:reset_count() end

--- Returns a handle of the current, full stage, with index, count and
-- release().
function Consumer:current_handle()
  return handle(self.pipe, self.state:clone())
end

--- Waits until the next stage is full, and returns its handle.
---@param token? any from try_wait
function Consumer:wait(token)
  self.pipe:consumer_wait(self.state, token)
  return self:current_handle()
end

--- Waits until the next stage is full, advances past it, and returns its
-- handle.
---@param token? any from try_wait
function Consumer:wait_and_advance(token)
  local h = self:wait(token)
  self.state:advance()
  return h
end

--- Reports whether the next stage is full. May first wait for a limited time.
-- Pass the result to `wait`.
function Consumer:try_wait() return self.pipe:consumer_try_wait(self.state) end

--- Marks a stage as read: the stage of handle `h`, or the current stage.
---@param h? table
function Consumer:release(h)
  self.pipe:consumer_release(h and h.state or self.state)
end

--- Makes a copy of the consumer with a separate state.
function Consumer:clone()
  return stages.PipelineConsumer(self.pipe, self.state:clone())
end
Consumer.advance, Consumer.reset = Producer.advance, Producer.reset

---------------------------------------------------------------------------

sign.class("PipelineCpAsync", CpAsync, [[
  make_producer_state() make_consumer_state()
  producer_acquire(state?: PipelineState) producer_commit(state?: PipelineState)
  consumer_wait(state?: PipelineState) consumer_release(state?: PipelineState)
  producer_tail(state?: PipelineState)
]], "barrier")

local ACQUIRE = "producer_acquire(state: PipelineState, token?: boolean|value"
local ASYNC = [[
  make_producer_state() make_consumer_state()
  producer_try_acquire(state: PipelineState)
  consumer_wait(state: PipelineState, token?: boolean|value)
  consumer_try_wait(state: PipelineState)
  producer_get_barrier(state: PipelineState)
  consumer_get_barrier(state: PipelineState)
  producer_commit(state: PipelineState)
  consumer_release(state: PipelineState) producer_tail(state: PipelineState)
  make_producer() make_consumer() make_participants()
]]
-- Copy the methods that all pipelines have in common.
for name, f in pairs(Async) do
  for _, class in ipairs {Tma, UmmaAsync, AsyncUmma, Clc} do
    if class[name] == nil then class[name] = f end
  end
end
for name, f in pairs(Tma) do
  if TmaUmma[name] == nil then TmaUmma[name] = f end
end
local ABSENT = "cluster cp_async tx_count scope shape mcast_mode_mn"
sign.class("PipelineAsync", Async, ASYNC .. ACQUIRE .. ")", ABSENT)
sign.class("PipelineTmaAsync", Tma, ASYNC .. ACQUIRE
           .. ", tx_count?: integer)", ABSENT)
sign.class("PipelineTmaUmma", TmaUmma, ASYNC .. ACQUIRE
           .. ", tx_count?: integer)", ABSENT)
sign.class("PipelineUmmaAsync", UmmaAsync, ASYNC .. ACQUIRE .. ")", ABSENT)
sign.class("PipelineAsyncUmma", AsyncUmma, ASYNC .. ACQUIRE .. ")", ABSENT)
sign.class("PipelineClcFetchAsync", Clc, ASYNC .. ACQUIRE .. ")", ABSENT)
sign.class("PipelineTmaStore", TmaStore,
           "producer_acquire() producer_commit() producer_tail() "
           .. "consumer_wait() consumer_release()")
sign.class("PipelineOrder", Order, [[
  wait(state?: PipelineState) arrive(state?: PipelineState)
  get_barrier_for_current_stage_idx(group_id: integer|value,
    state?: PipelineState)
]])
sign.class("PipelineHandle", Handle, "commit() release() get_origin()",
           "barrier")
sign.class("PipelineProducer", Producer, [[
  acquire(token?: boolean|value) acquire_and_advance(token?: boolean|value)
  try_acquire() commit(h?: PipelineHandle) advance(count?: integer|value)
  tail() clone() reset() current_handle()
]])
sign.class("PipelineConsumer", Consumer, [[
  wait(token?: boolean|value) wait_and_advance(token?: boolean|value)
  try_wait() release(h?: PipelineHandle) advance(count?: integer|value)
  clone() reset() current_handle()
]])

-- Defines `create`, the Python DSL's way to make pipelines:
-- PipelineAsync.create {num_stages = 3, ...}.
for name, make_one in pairs(stages) do
  if name:find "^Pipeline" then sign.with(make_one, {create = make_one}) end
end

return sign.public("pipeline.", stages, [[
  PipelineCpAsync(opts: {barrier num_stages})
  PipelineAsync(opts: {barrier_storage consumer_group cp_async defer_sync maker
    num_stages producer_group})
  PipelineTmaAsync(opts: {barrier_storage cluster_shape_mn consumer_group
    defer_sync maker num_stages producer_group scope tx_count})
  PipelineTmaUmma(opts: {barrier_storage cluster_shape_mn consumer_group
    cta_layout_vmnk defer_sync maker mcast_mode_mn num_stages producer_group
    scope tx_count})
  PipelineUmmaAsync(opts: {barrier_storage consumer_group cta_layout_vmnk
    defer_sync maker num_stages producer_group})
  PipelineAsyncUmma(opts: {barrier_storage consumer_group cta_layout_vmnk
    defer_sync maker num_stages producer_group})
  PipelineClcFetchAsync(opts: {barrier_storage cluster_shape_mn consumer_group
    cta_layout_vmnk defer_sync maker num_stages producer_group tx_count})
  PipelineTmaStore(opts: {num_stages})
  PipelineOrder(opts: {barrier_storage defer_sync depth group_id length maker
    producer_group})
  PipelineProducer(pipeline: PipelineAsync|PipelineTmaAsync|PipelineTmaUmma|
    PipelineUmmaAsync|PipelineAsyncUmma|PipelineClcFetchAsync,
    state?: PipelineState)
  PipelineConsumer(pipeline: PipelineAsync|PipelineTmaAsync|PipelineTmaUmma|
    PipelineUmmaAsync|PipelineAsyncUmma|PipelineClcFetchAsync,
    state?: PipelineState)
]])
-- SPDX-License-Identifier: MIT
