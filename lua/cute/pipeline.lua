--- cute.pipeline: a circular buffer of stages between those who fill them and
-- those who read them, by cp.async.
--
-- A tile travels through one stage of shared memory:
--
--         producer_acquire    producer_commit    consumer_wait
--     empty -----------> filling -----------> full ---------> being read
--       ^                                                        |
--       +------------------- consumer_release -------------------+
--
-- With cp.async every thread is both: it starts copies for a stage, closes
-- them as a group (commit), and goes on; later it waits until the group of the
-- stage it wants to read has landed (wait), which orders its own copies only,
-- so the threads of the block then meet at a barrier. Groups land in the order
-- in which they were committed: waiting for the oldest of n + 1 groups means
-- "at most n are still on their way". That n is all that the pipeline keeps.
--
--     local pipe = cute.pipeline.PipelineCpAsync {num_stages = 3}
--     local write = pipe:make_producer_state()
--     local read = pipe:make_consumer_state()
--     for k = 0, 1 do                            -- prologue: stages - 1 tiles
--       pipe:producer_acquire(write)
--       cute.copy(tiled_copy, tAgA(_, k), tAsA(_, write.index))
--       pipe:producer_commit(write)
--       write:advance()
--     end
--     for k in cute.range(tiles) do
--       pipe:consumer_wait(read)                 -- the tile k is here
--       ...                                      -- read stage read.index
--       pipe:consumer_release(read)
--       read:advance()
--       pipe:producer_acquire(write)
--       cute.when(cute.lt(k + 2, tiles), ...)    -- copy tile k + 2
--       pipe:producer_commit(write)              -- a group, empty at the end
--       write:advance()
--     end
--     pipe:producer_tail(write)                  -- nothing is on its way now
--
-- A state is a table of three numbers: a loop of the device carries them, as
-- it does all fields that its body changes.
local sign = require "cute.lang.sign"
local core = require "cute.core"
local arch = require "cute.arch"

local pipeline = {}

---------------------------------------------------------------------------
-- PipelineState: which stage, which round
---------------------------------------------------------------------------

local State = {}
State.__index = State

--- A place in the circular buffer: `index` of the stage, `phase` (the parity
-- of the round, for barriers that have one), `count` of stages passed.
---@param stages integer
---@param count? any
---@param index? any
---@param phase? any
function pipeline.PipelineState(stages, count, index, phase)
  if math.type(stages) ~= "integer" or stages < 1 then
    core.fail("bad-argument", "PipelineState: the number of stages is a Lua "
      .. "integer of 1 or more, not " .. tostring(stages))
  end
  return setmetatable({stages = stages, count = count or 0,
                       index = index or 0, phase = phase or 0}, State)
end

--- The producer begins with empty stages, so that its first round need not
-- wait for anybody: its phase is 1.
---@param type "producer"|"consumer"
---@param stages integer
function pipeline.make_pipeline_state(type, stages)
  if type ~= "producer" and type ~= "consumer" then
    core.fail("unknown-name", ("make_pipeline_state: no user '%s' (producer, "
      .. "consumer)"):format(tostring(type)))
  end
  return pipeline.PipelineState(stages, 0, 0, type == "producer" and 1 or 0)
end

function State:clone()
  return pipeline.PipelineState(self.stages, self.count, self.index,
                                self.phase)
end

-- One step of +1 or -1.
local function step(s, by)
  local next_index, phase = s.index + by, s.phase
  local edge = by > 0 and s.stages or -1
  local start = by > 0 and 0 or s.stages - 1
  local wraps = core.eq(next_index, edge)
  s.count = s.count + by
  s.index = core.where(wraps, start, next_index)
  s.phase = core.where(wraps, phase ~ 1, phase)
  if not math.type(s.index) then core.assume(s.index, 0, s.stages - 1, 1) end
  if not math.type(s.phase) then core.assume(s.phase, 0, 1, 1) end
end

--- To the next stage.
function State:advance() step(self, 1) end

--- Back to the stage before.
function State:reverse() step(self, -1) end

--- Counts from 0 again; stage and phase stay.
function State:reset_count() self.count = 0 end

function State:__tostring()
  return ("stage %s of %d, phase %s, count %s"):format(tostring(self.index),
    self.stages, tostring(self.phase), tostring(self.count))
end

---------------------------------------------------------------------------
-- NamedBarrier: some of the block's warps meet
---------------------------------------------------------------------------

local Barrier = {}
Barrier.__index = Barrier

--- Barrier `barrier_id` (1 to 15, or traced) of `num_threads` threads.
---@param opts {barrier_id: integer|cute.Value, num_threads: integer}
function pipeline.NamedBarrier(opts)
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

--- A named barrier knows arrivals only: there is no waiting without one.
function Barrier:wait()
  core.fail("bad-argument", ("barrier %s: a named barrier has no wait of its "
    .. "own\n  those who wait call arrive_and_wait(), and are counted in "
    .. "num_threads"):format(tostring(self.barrier_id)))
end

--- The same without an object.
---@param barrier_id integer|cute.Value
---@param num_threads integer
function pipeline.arrive(barrier_id, num_threads)
  arch.barrier_arrive(barrier_id, num_threads)
end

---@param barrier_id integer|cute.Value
---@param num_threads integer
function pipeline.arrive_and_wait(barrier_id, num_threads)
  arch.barrier(barrier_id, num_threads)
end

--- The whole block meets.
---@param barrier_id? integer|cute.Value 0 when absent
function pipeline.sync(barrier_id) arch.barrier(barrier_id or 0) end

--- See NamedBarrier:wait.
function pipeline.wait() setmetatable({barrier_id = 0}, Barrier):wait() end

---------------------------------------------------------------------------
-- PipelineCpAsync
---------------------------------------------------------------------------

local CpAsync = {}
CpAsync.__index = CpAsync

--- A pipeline of num_stages stages that all threads of the block (or those of
-- `barrier`, a NamedBarrier) fill by cp.async and read.
---@param opts {num_stages: integer, barrier: table?}
function pipeline.PipelineCpAsync(opts)
  local n = opts.num_stages
  if math.type(n) ~= "integer" or n < 2 then
    core.fail("bad-argument", "PipelineCpAsync: num_stages is a Lua integer of "
      .. "2 or more, not " .. tostring(n))
  end
  return setmetatable({num_stages = n, barrier = opts.barrier}, CpAsync)
end

local function meet(p)
  if p.barrier then p.barrier:arrive_and_wait() else arch.sync_threads() end
end

function CpAsync:make_producer_state()
  return pipeline.make_pipeline_state("producer", self.num_stages)
end

function CpAsync:make_consumer_state()
  return pipeline.make_pipeline_state("consumer", self.num_stages)
end

--- Waits until the stage is empty. It is: its readers met the others at the
-- consumer_wait that came after their reading (see consumer_release).
function CpAsync:producer_acquire(state) end  -- luacheck: ignore self state

--- The copies started since the last commit are this stage's: one group.
function CpAsync:producer_commit(state)  -- luacheck: ignore self state
  arch.cp_async_commit_group()
end

--- Waits until the stage is full for all: with num_stages - 1 groups committed
-- ahead of the reader, num_stages - 2 may be on their way when the oldest has
-- landed; then all threads meet, so that each sees the others' copies.
--
-- This barrier says too that all have read the stage before, which is the one
-- that the next copies go to: a pipeline whose producer fills stages
-- num_stages - 1 ahead needs no second barrier.
function CpAsync:consumer_wait(state)  -- luacheck: ignore state
  arch.cp_async_wait_group(self.num_stages - 2)
  meet(self)
end

--- The stage was read. Nothing to tell: the next consumer_wait tells it.
function CpAsync:consumer_release(state) end  -- luacheck: ignore self state

--- Waits for all that is on its way: before shared memory is used anew.
function CpAsync:producer_tail(state)  -- luacheck: ignore state
  arch.cp_async_wait_group(0)
  meet(self)
end

sign.class("PipelineState", State,
           "clone() advance() reverse() reset_count()")
sign.class("NamedBarrier", Barrier, "arrive() arrive_and_wait() sync() wait()")
sign.class("PipelineCpAsync", CpAsync, [[
  make_producer_state() make_consumer_state()
  producer_acquire(state?: PipelineState) producer_commit(state?: PipelineState)
  consumer_wait(state?: PipelineState) consumer_release(state?: PipelineState)
  producer_tail(state?: PipelineState)
]], "barrier")

return sign.public("pipeline.", pipeline, [[
  PipelineState(stages: integer, count?: integer|value, index?: integer|value,
    phase?: integer|value)
  make_pipeline_state(user: string, stages: integer)
  NamedBarrier(opts: table) PipelineCpAsync(opts: table)
  arrive(barrier_id: integer|value, num_threads: integer|value)
  arrive_and_wait(barrier_id: integer|value, num_threads: integer|value)
  sync(barrier_id?: integer|value) wait()
]])
