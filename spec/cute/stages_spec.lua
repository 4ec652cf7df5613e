-- Tests cute.pipeline on mbarriers. Data pass through rings of stages between
-- warps with different roles, and must arrive under any schedule. Also tests
-- warps that change roles, and the report for each omitted step. TMA is tested
-- in the specs of copies.
local core = require "cute.core"
local cute = require "cute"
local arch = cute.arch
local pipeline = cute.pipeline
local T = require "spec.values"
local kernels = require "spec.kernels"
local raises = require "spec.support".raises
local _ = cute._

local TILES, STAGES, SEEDS = 7, 3, 6
local Agent, Group = pipeline.Agent, pipeline.CooperativeGroup

-- Returns a kernel in which one warp writes tiles of 64 numbers, and two warps
-- sum them. Each thread of the two warps reads elements that another thread
-- wrote. `by` says how a stage is filled, such as "cp.async". With "maker", the
-- warp that initializes the mbarriers fills stages without waiting for the
-- other warps. `flaw` names the step to omit. If `handles` is true, the kernel
-- uses producer and consumer objects.
local function summing(by, flaw, handles)
  return function(A, O)
    local tid = arch.thread_idx()
    local s = cute.make_smem_tensor(cute.f32,
      cute.make_layout({64, STAGES}, {1, 64}), 16)
    local agent = by == "warps" and Agent.Warp or Agent.Thread
    local maker = by == "maker" and tid:eq(31) or nil
    local made = pipeline.NamedBarrier {barrier_id = 1, num_threads = 96}
    local pipe = pipeline.PipelineAsync {
      maker = maker, defer_sync = maker and true,
      num_stages = STAGES, cp_async = by == "cp.async" or nil,
      producer_group = Group(agent, by == "warps" and 1 or 32),
      consumer_group = Group(agent, by == "warps" and 2 or 64)}
    local atom = cute.make_copy_atom("SM80_CP_ASYNC_CACHEALWAYS<uint64_t>",
                                     cute.f32)
    local function fill(k, stage)
      local from = cute.make_tensor(A.iterator + k * 64, cute.make_layout(64))
      if by == "cp.async" then
        cute.copy(atom, cute.local_tile(from, {2}, {tid}),
                  cute.local_tile(s(_, stage), {2}, {tid}))
      else
        s[{tid, stage}] = from[tid]
        s[{tid + 32, stage}] = from[tid + 32]
      end
      if by == "warps" then arch.sync_warp() end
    end
    local function produce()
      if handles then
        local p = pipe:make_producer()
        for k in cute.range(TILES) do
          local h = p:acquire_and_advance()
          fill(k, h.index)
          h:commit()
        end
        return p:tail()
      end
      local write = pipe:make_producer_state()
      for k in cute.range(TILES) do
        if flaw ~= "acquire" then pipe:producer_acquire(write) end
        fill(k, write.index)
        if flaw ~= "commit" then pipe:producer_commit(write) end
        write:advance()
      end
      if flaw ~= "acquire" then pipe:producer_tail(write) end
    end
    local function consume()
      local sum, me = core.cvt(0.0, cute.f32), (tid * 7 + 5) % 64
      local c = handles and pipe:make_consumer()
      local read = pipe:make_consumer_state()
      for _ in cute.range(TILES) do
        if handles then
          local h = c:wait_and_advance(c:try_wait())
          sum = sum + s[{me, h.index}]
          h:release()
        else
          if flaw ~= "wait" then
            pipe:consumer_wait(read, pipe:consumer_try_wait(read))
          end
          sum = sum + s[{me, read.index}]
          if by == "warps" then arch.sync_warp() end
          if flaw ~= "release" then pipe:consumer_release(read) end
          read:advance()
        end
      end
      O[tid - 32] = sum
    end
    cute.when(tid:lt(32), function()
      if maker then
        arch.sync_warp()
        made:arrive()
      end
      produce()
    end, function()
      if maker and flaw ~= "made" then made:arrive_and_wait() end
      consume()
    end)
  end
end

local function summed(seed, ...)
  local A, O = cute.zeros({64 * TILES}, "f32"), cute.zeros({64}, "f32")
  for i = 0, 64 * TILES - 1 do A[i] = i * 31 % 97 end
  local r = T.launch(summing(...), {A, O}, {seed = seed, block = 96})
  return r, A, O
end

describe("PipelineAsync", function()
  for _, by in ipairs {"threads", "warps", "cp.async", "maker"} do
    it("moves tiles between warps, by " .. by, function()
      for seed = 1, SEEDS do
        local r, A, O = summed(seed, by, nil, seed % 2 == 0 and by ~= "warps")
        assert.is_true(r.ok, tostring(r))
        for t = 0, 63 do
          local want = 0
          for k = 0, TILES - 1 do
            want = want + A[k * 64 + ((t + 32) * 7 + 5) % 64]
          end
          assert.equal(want * 1.0, O[t])
        end
      end
    end)
  end

  it("moves tiles by cp.async from sm_80 on", function()
    local A, O = cute.zeros({64 * TILES}, "f32"), cute.zeros({64}, "f32")
    for i = 0, 64 * TILES - 1 do A[i] = i * 31 % 97 end
    local call = cute.kernel("ring", summing "cp.async")(A, O)
    for seed = 1, SEEDS do
      O:fill(0)
      local r = call:launch {grid = 1, block = 96, device = "sim:sm_80",
                             seed = seed, output = false}
      assert.is_true(r.ok, tostring(r))
      for t = 0, 63 do
        local want, at = 0, ((t + 32) * 7 + 5) % 64
        for k = 0, TILES - 1 do want = want + A[k * 64 + at] end
        assert.equal(want * 1.0, O[t])
      end
    end
    local program = call:trace {block = 96}
    assert.is_nil(program:cuda "sm_80":find("try_wait.", 1, true))
    assert.is_nil(program:cuda "sm_90":find("test_wait", 1, true))
    kernels.compiles(program, {"sm_80", "sm_86", "sm_89", "sm_90a"})
  end)

  for flaw, kind in pairs {acquire = "race", wait = "race uninitialised",
                           commit = "deadlock", release = "deadlock",
                           made = "mbarrier"} do
    it("is found out without " .. flaw, function()
      local found = 0
      for seed = 1, SEEDS do
        local r = summed(seed, flaw == "made" and "maker" or "threads", flaw)
        if not r.ok then
          found = found + 1
          assert.is_truthy(kind:find(r.reports[1].kind, 1, true),
                           tostring(r))
        end
      end
      assert.equal(SEEDS, found)
    end)
  end
end)

describe("PipelineOrder", function()
  it("makes groups alternate", function()
    for _, depth in ipairs {1, 2} do
      for seed = 1, SEEDS do
        local log = cute.zeros({64}, cute.i32)
        local count = cute.zeros({1}, cute.i32)
        local r = T.launch(function(L, C)
          local group = arch.warp_idx()
          local order = pipeline.PipelineOrder {
            depth = depth, length = 3, group_id = group,
            producer_group = Group(Agent.Warp)}
          local lane = arch.lane_idx()
          for _ in cute.range(4) do
            for part = 0, depth - 1 do
              order:wait()
              cute.when(lane:eq(0), function()
                local at = arch.atomic_add(C.iterator, 1)
                L[at] = group * 10 + part
              end)
              arch.sync_warp()
              order:arrive()
            end
          end
        end, {log, count}, {seed = seed, block = 96})
        T.ok(r)
        -- Each role must visit the groups of stages in
        -- order.
        local nth = {}
        for i = 0, 12 * depth - 1 do
          local group, part = log[i] // 10, log[i] % 10
          nth[part] = nth[part] or 0
          assert.equal(nth[part] % 3, group)
          nth[part] = nth[part] + 1
        end
        for part = 0, depth - 1 do assert.equal(12, nth[part]) end
      end
    end
  end)
end)

describe("PipelineProducer and PipelineConsumer", function()
  -- One warp writes and one warp reads. For the second half of the tiles, the
  -- kernel makes new pipeline objects from the state of the first ones.
  it("continue from a given state", function()
    for seed = 1, SEEDS do
      local O = cute.zeros({32}, cute.i32)
      T.ok(T.launch(function(out)
        local lane = arch.lane_idx()
        local s = cute.make_smem_tensor(cute.i32, cute.make_layout {32, 3})
        local pipe = pipeline.PipelineAsync {num_stages = 3,
          producer_group = Group(Agent.Thread, 32),
          consumer_group = Group(Agent.Thread, 32),
          barrier_storage = pipeline.alloc_reserved_mbarrier(3)}
        cute.when(arch.warp_idx():eq(0), function()
          local state = pipe:make_producer_state()
          local function fill(p, k)
            local h = p:acquire_and_advance()
            s[{lane, h.index}] = lane * k
            h:commit()
          end
          local p = pipeline.PipelineProducer(pipe, state)
          for k = 1, 4 do fill(p, k) end
          local q = pipeline.PipelineProducer(pipe, state:clone())
          for k = 5, 8 do fill(q, k) end
          q:tail()
        end, function()
          local state, sum = pipe:make_consumer_state(), core.cvt(0, core.i32)
          local function take(c)
            local h = c:wait_and_advance()
            sum = sum * 2 + s[{31 - lane, h.index}]
            h:release()
          end
          local c = pipeline.PipelineConsumer(pipe, state)
          for _ = 1, 4 do take(c) end
          local d = pipeline.PipelineConsumer(pipe, state)
          for _ = 1, 4 do take(d) end
          out[lane] = sum
        end)
      end, {O}, {seed = seed, block = 64}))
      for lane = 0, 31 do
        local want = 0
        for k = 1, 8 do want = want * 2 + (31 - lane) * k end
        assert.equal(want, O[lane])
      end
    end
  end)
end)

describe("SyncObject", function()
  it("is the base of user-defined classes", function()
    local log = {}
    local Mine = setmetatable({__name = "Mine"},
                              {__index = pipeline.SyncObject})
    Mine.__index = Mine
    function Mine.arrive(_, x) log[#log + 1] = "arrive " .. x end
    function Mine.wait(_, x) log[#log + 1] = "wait " .. x end
    local mine = setmetatable({}, Mine)
    mine:arrive_and_wait(7)
    assert.same({"arrive 7", "wait 7"}, log)
    assert.is_nil(mine:get_barrier())
    raises("a Mine has no arrive_and_drop()", mine.arrive_and_drop, mine)
    raises("a Other has no wait()", pipeline.SyncObject.wait,
           setmetatable({}, {__name = "Other"}))
  end)

  it("is the base of barriers", function()
    assert.equal(3, pipeline.NamedBarrier {barrier_id = 3, num_threads = 32}
      :get_barrier())
    assert.is_nil(pipeline.TmaStoreFence(2):get_barrier())
    T.ok(T.launch(function()
      local array = pipeline.MbarrierArray {num_stages = 2, arrivals = 64}
      arch.sync_threads()
      array:arrive_and_wait(1, 0)
      raises("a MbarrierArray has no arrive_and_drop()", array.arrive_and_drop,
             array)
    end, {}, {block = 64}))
  end)
end)

describe("pipelines", function()
  it("skip stages that others use", function()
    for _, traced in ipairs {false, true} do
      local O = cute.zeros({3, 24}, cute.i32)
      T.ok(T.launch(function(out)
        local s = pipeline.make_pipeline_state("producer", 5)
        for i = 0, 23 do
          local n = traced and arch.thread_idx() * 0 + i % 8 or i % 8
          s:advance(n)
          cute.when(arch.thread_idx():eq(0), function()
            out[{0, i}], out[{1, i}], out[{2, i}] = s.index, s.phase, s.count
          end)
        end
      end, {O}))
      local count = 0
      for i = 0, 23 do
        count = count + i % 8
        assert.equal(count % 5, O[{0, i}])
        assert.equal(1 ~ count // 5 & 1, O[{1, i}])
        assert.equal(count, O[{2, i}])
      end
    end
  end)

  it("report missing arguments", function()
    T.ok(T.launch(function()
      local one = Group(Agent.Thread)
      raises("PipelineAsync: no option 'stages'", pipeline.PipelineAsync,
             {stages = 2})
      raises("must be a Lua integer of 1 or more", pipeline.PipelineAsync,
             {producer_group = one})
      raises("PipelineAsync: producer_group must be a CooperativeGroup, not 1",
             pipeline.PipelineAsync, {num_stages = 1, producer_group = 1})
      raises("tx_count = 0; the bytes of a stage", pipeline.PipelineTmaAsync,
             {num_stages = 1, producer_group = one, consumer_group = one,
              tx_count = 0})
      raises("cluster_shape_mn = {4, 8}; {m, n} of at most 16 blocks",
             pipeline.PipelineTmaAsync,
             {num_stages = 1, producer_group = one, consumer_group = one,
              tx_count = 8, cluster_shape_mn = {4, 8}})
      raises("TmaStoreFence: 0 buffers", pipeline.TmaStoreFence, 0)
      raises("0 stages of 2 mbarriers; 1 to 1024 of each are possible",
             pipeline.alloc_reserved_mbarrier, 0)
      raises("PipelineOrder: length = nil", pipeline.PipelineOrder, {depth = 1})
      raises("no agent 'Thread'", pipeline.CooperativeGroup, "Thread")
      raises("size = 0; 1", pipeline.CooperativeGroup, "warp", 0)
      raises("advance: -1 stages", function()
        pipeline.PipelineState(2):advance(-1)
      end)
    end, {}))
  end)
end)
-- SPDX-License-Identifier: MIT
