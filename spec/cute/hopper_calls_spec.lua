-- Tests the Python DSL's Hopper names, called as in the DSL, with tables for
-- its keyword arguments. Each kernel runs in the simulator and, if there is
-- one, on a GPU. Its text must compile for sm_90a.
local cute = require "cute"
local kernels = require "spec.kernels"
local names = require "spec.program.names"
local raises = require "spec.support".raises
local arch, nvgpu, pipeline, utils = cute.arch, cute.nvgpu, cute.pipeline,
  cute.utils
local cpasync, warpgroup = nvgpu.cpasync, nvgpu.warpgroup
local _ = cute._

local device  -- device of all launches: "sim" or a GPU

-- Defines two tests that call f: one with the simulator as `device`, and one
-- with a GPU.
local function both(name, f)
  for _, where in ipairs {"sim:sm_90a", "gpu"} do
    it(name .. (where == "gpu" and " #gpu" or ""), function()
      device = where
      f()
    end)
  end
end

-- Runs f(out, ...) in `block` threads. Each thread must write `want` to its
-- element of out, an i32 tensor. opts: options of the launch.
local function runs(opts, want, f, ...)
  local block = opts.block or 32
  local out = cute.zeros({block}, cute.i32)
  local o = {grid = 1, block = block, device = device}
  for k, v in pairs(opts) do o[k] = v end
  local call = cute.kernel("k", f)(out, ...)
  call:launch(o)
  for i = 0, block - 1 do
    assert.equal(type(want) == "function" and want(i) or want, out[i], i)
  end
  local program = call:trace {block = block, cluster = o.cluster,
                              device = device}
  kernels.compiles(program, {"sm_90a"})
  return program
end

local function first(f) cute.when(arch.thread_idx():eq(0), f) end

-- Returns an mbarrier that counts n arrivals.
local function barrier(n)
  local bar = arch.alloc_smem(cute.i64, 1)
  first(function()
    arch.mbarrier_init(bar, n)
    arch.mbarrier_init_fence()
  end)
  arch.sync_threads()
  return bar
end

describe("Hopper's names", function()
  both("of mbarriers", function()
    runs({}, 3, function(out)
      local tid = arch.thread_idx()
      local bar = barrier(32)
      arch.mbarrier_arrive(bar)
      arch.mbarrier_wait(bar, 0)
      arch.mbarrier_arrive(bar, nil, 1, {relaxed = true,
                                         scope = nvgpu.MemoryScope.CTA})
      local tried = cute.var(arch.mbarrier_try_wait(bar, 1))
      cute.loop(function() return ~tried:get() end, function()
        tried:set(arch.mbarrier_test_wait(bar, 1))
      end)
      first(function() arch.mbarrier_expect_tx(bar, 0) end)
      arch.mbarrier_arrive_and_expect_tx(bar, 0)
      arch.mbarrier_wait(bar, 0)
      arch.cp_async_mbarrier_arrive_noinc(bar)
      arch.mbarrier_wait(bar, 1)
      local yes = arch.mbarrier_conditional_try_wait(tid:ge(0), bar, 1)
      arch.sync_threads()
      first(function()
        arch.mbarrier_inval(bar)
        arch.mbarrier_init(bar, 1)
      end)
      out[tid] = cute.where(yes, 3, 4)
    end)
  end)

  both("of barriers, fences and registers", function()
    local program = runs({block = 128}, 496, function(out)
      local tid = arch.thread_idx()
      arch.barrier {barrier_id = 2, number_of_threads = 128}
      arch.barrier {}
      cute.when(tid:lt(64), function()
        arch.barrier_arrive {barrier_id = 1, number_of_threads = 128,
                             aligned = false}
      end, function()
        arch.barrier {barrier_id = 1, number_of_threads = 128, aligned = false}
      end)
      arch.fence_acq_rel_cta()
      arch.fence_acq_rel_cluster()
      arch.fence_acq_rel_gpu()
      arch.fence_acq_rel_sys()
      arch.fence_proxy("async.shared", {space = "cta"})
      arch.fence_view_async_shared()
      arch.cp_async_bulk_commit_group()
      arch.cp_async_bulk_wait_group(0, {read = true})
      arch.griddepcontrol_wait()
      arch.griddepcontrol_launch_dependents()
      arch.warpgroup_reg_dealloc(40)
      arch.sync_threads()
      arch.warpgroup_reg_alloc(48)
      arch.sync_threads()
      arch.setmaxregister_decrease(40)
      arch.sync_threads()
      arch.setmaxregister_increase(48)
      local lane = arch.make_warp_uniform(arch.warp_idx()) * 0 + tid % 32
      local n = arch.warp_reduction(lane, function(a, b) return a + b end,
                                    {threads_in_group = 32})
      cute.when(arch.elect_one(), function() arch.clock() arch.smid() end)
      out[tid] = n
    end)
    assert.truthy(program:cuda "sm_90a":find("bulk.wait_group.read 0", 1, true))
  end)

  both("of clusters", function()
    local program = runs({cluster = 2, grid = 2}, 3, function(out)
      local tid, rank = arch.thread_idx(), arch.block_idx_in_cluster()
      local s = cute.make_smem_tensor(cute.i32, cute.make_layout {2}, 16)
      local bar = barrier(1)
      pipeline.pipeline_init_arrive({2, 1}, true)
      pipeline.pipeline_init_wait {2, 1}
      first(function()
        arch.mbarrier_arrive_and_expect_tx(bar, 4)
        arch.store_async_dsmem(s.iterator + 1, rank + 2, bar, 1 - rank)
      end)
      arch.mbarrier_wait(bar, 0)
      pipeline.agent_sync(pipeline.Agent.ThreadBlockCluster)
      local there = arch.load(arch.map_dsmem_ptr(s.iterator, rank ~ 1) + 1,
                              cute.i32, {sem = nvgpu.MemoryOrder.RELAXED,
                                         scope = nvgpu.MemoryScope.CLUSTER})
      cute.when(rank:eq(1), function() out[tid] = there end)
      arch.cluster_arrive {aligned = true}
      arch.cluster_wait()
      pipeline.agent_sync(pipeline.Agent.ThreadBlock)
    end)
    local text = program:cuda "sm_90a"
    assert.truthy(text:find("barrier.cluster.arrive.relaxed", 1, true), text)
    assert.truthy(text:find("cluster.arrive.release.aligned", 1, true), text)
    raises("no agent 'thread' (Agent.ThreadBlock, ", function()
      runs({}, 0, function(out)
        pipeline.agent_sync(pipeline.Agent.Thread)
        out[0] = 0
      end)
    end)
  end)
end)

describe("Hopper's names", function()
  both("of stores to other blocks", function()
    local store = cute.make_copy_atom(cpasync.CopyDsmemStoreOp(), cute.i32)
    assert.equal("bulk store to another CTA of i32", tostring(store))
    local program = runs({cluster = 2, grid = 2}, function(i)
      return 6 * 10 * i + 15 + 6 * 1000
    end, function(out)
      local tid, rank = arch.thread_idx(), arch.block_idx_in_cluster()
      local s = cute.make_smem_tensor(cute.i32,
        cute.make_layout({32, 8}, {8, 1}), 16)
      local bar = barrier(1)
      first(function()
        arch.mbarrier_arrive_and_expect_tx(bar, 32 * 6 * 4)
      end)
      pipeline.agent_sync(pipeline.Agent.ThreadBlockCluster)
      local r = cute.make_rmem_tensor({6}, cute.i32)
      for i = 0, 5 do r[i] = tid * 10 + i + rank * 1000 end
      cute.copy(store, r, cute.local_tile(s(tid, _), {6}, {0}),
                {mbar_ptr = bar, cta_rank = 1 - rank})
      arch.mbarrier_wait(bar, 0)
      -- Block 0 sums the values that block 1 stored.
      cute.when(rank:eq(0), function()
        local sum = 0
        for i = 0, 5 do sum = sum + s[{tid, i}] end
        out[tid] = sum
      end)
      pipeline.agent_sync(pipeline.Agent.ThreadBlockCluster)
    end)
    local text = program:cuda "sm_90a"
    assert.truthy(text:find("st_async_i32x4(", 1, true), text)
    assert.truthy(text:find("st_async_i32x2(", 1, true), text)
    local function refuses(message, dtype, opts, f)
      raises(message, function()
        cute.kernel("k", function(x)
          local s = cute.make_smem_tensor(dtype, cute.make_layout {4}, 16)
          local r = cute.make_rmem_tensor({4}, dtype)
          local bar = arch.alloc_smem(cute.i64, 1)
          r:fill(0)
          local o = opts and {mbar_ptr = bar, cta_rank = opts.cta_rank}
          cute.copy(cute.make_copy_atom(cpasync.CopyDsmemStoreOp(), dtype),
                    f and f(x, s, r) or r, s, o)
        end)(cute.zeros({4}, dtype)):trace {block = 32, cluster = 2, grid = 2}
      end)
    end
    refuses("needs mbar_ptr, the mbarrier there that counts", cute.f32)
    refuses("needs cta_rank, the CTA that gets the values", cute.f32, {})
    refuses("stores values of 32 or 64 bits, not bf16", cute.bf16,
            {cta_rank = 1})
    refuses("must go from registers to shared memory", cute.f32, {cta_rank = 1},
            function(x) return x end)
    refuses("both sides must have the same number of values", cute.f32,
            {cta_rank = 1},
            function(_, _, r) return cute.local_tile(r, {2}, {0}) end)
  end)

  both("of pipelines", function()
    local Agent, Group = pipeline.Agent, pipeline.CooperativeGroup
    runs({block = 64}, function(i) return i < 32 and 0 or 6 end, function(out)
      local tid = arch.thread_idx()
      local s = cute.make_smem_tensor(cute.i32, cute.make_layout {32, 2})
      local pipe = pipeline.PipelineAsync {num_stages = 2,
        producer_group = Group(Agent.Thread, 32, 1),
        consumer_group = Group(Agent.Thread, 32)}
      assert.equal("producer", pipeline.PipelineUserType.Producer)
      cute.when(tid:lt(32), function()
        local p = pipe:make_producer()
        for k = 0, 2 do
          p:acquire()
          local h = p:current_handle()
          assert.equal(pipe, h:get_origin())
          s[{tid, h.index}] = k + 1
          h:commit()
          p:advance()
        end
        p:tail()
      end, function()
        local c = pipe:make_consumer()
        local sum = 0
        for k = 0, 2 do
          -- consumer_get_barrier returns the stage's empty barrier
          arch.mbarrier_wait(pipe:consumer_get_barrier(c.state),
                             k == 2 and 0 or 1)
          c:wait()
          local h = c:current_handle()
          sum = sum + s[{tid - 32, h.index}]
          h:release()
          c:advance()
        end
        out[tid] = sum
      end)
    end)
    runs({}, 7, function(out)
      local tid = arch.thread_idx()
      local array = pipeline.MbarrierArray {num_stages = 2, arrivals = 32}
      pipeline.agent_sync()
      array:arrive_mbarrier(0)
      array:wait(0, 0)
      array:arrive_and_expect_tx_with_dst(1, 0)
      array:wait(1, 0)
      array:arrive_cp_async_mbarrier(1)
      array:wait(1, 1)
      assert.is_nil(array:max())
      local order = pipeline.PipelineOrder {depth = 2, length = 1, group_id = 0,
        producer_group = Group(Agent.Thread, 32)}
      local state = order.state:clone()
      order:wait(state)
      order:arrive(state)
      assert.equal(1, state.index)
      arch.mbarrier_wait(order:get_barrier_for_current_stage_idx(0), 0)
      local store = pipeline.PipelineTmaStore {num_stages = 2}
      store:producer_acquire()
      store:producer_commit()
      store:consumer_wait()
      store:consumer_release()
      store:producer_tail()
      out[tid] = 7
    end)
  end)
end)

describe("Hopper's names", function()
  both("of copies by threads, of enumerations", function()
    local x = kernels.tensor({64}, cute.i32, function(i) return 3 * i end)
    for mode, kind in pairs {ALWAYS = "ca", GLOBAL = "cg"} do
      local wide = kind == "cg" and 4 or 2
      local op = cpasync.CopyG2SOp(cpasync.LoadCacheMode[mode])
      local program = runs({}, function(i) return i < 16 and 12 * i or 0 end,
        function(out, mX)
          local tid = arch.thread_idx()
          local s = cute.make_smem_tensor(cute.i32, cute.make_layout {64}, 16)
          local atom = cute.make_copy_atom(op, cute.i32,
            {num_bits_per_copy = 32 * wide})
          cute.when(tid:lt(64 // wide), function()
            cute.copy(atom, cute.local_tile(mX, {wide}, {tid}),
                      cute.local_tile(s, {wide}, {tid}))
          end)
          arch.cp_async_commit_group()
          arch.cp_async_wait_group(0)
          arch.sync_threads()
          cute.when(tid:lt(16), function() out[tid] = s[tid * 4] end)
        end, x)
      assert.truthy(program:cuda "sm_90a":find("cp.async." .. kind, 1, true))
    end
    raises("CopyG2SOp: no cache mode 'cs'", function()
      cpasync.CopyG2SOp(cpasync.LoadCacheMode.STREAMING)
    end)
    raises("an operation such as CopyBulkTensorTileG2SOp() is needed",
      function()
        cpasync.make_tiled_tma_atom(cpasync.CopyG2SOp(), x,
                                    cute.make_layout {32}, {32})
      end)
    assert.equal("UniversalCopy<uint64_t>",
      cute.make_copy_atom(nvgpu.CopyUniversalOp(), cute.f32, 64).name)
    assert.equal("UniversalFMA<float>", nvgpu.MmaUniversalOp(cute.f32).name)
    raises("MmaUniversalOp: no multiply-add of i8", function()
      nvgpu.MmaUniversalOp "i8"
    end)
    runs({}, 5, function(out)
      local tid = arch.thread_idx()
      arch.store(out.iterator + tid, 5, {
        sem = nvgpu.MemoryOrder.RELEASE, scope = nvgpu.MemoryScope.GPU})
      arch.store(out.iterator + tid, 5, {cop = nvgpu.StoreCacheMode.STREAMING})
      arch.load(out.iterator + tid, nil, {cop = nvgpu.LoadCacheMode.GLOBAL})
      arch.load(out.iterator + tid, nil, {level1_eviction_priority =
        nvgpu.CacheEvictionPriority.NO_ALLOCATE})
    end)
  end)

  both("of warpgroups' products", function()
    local A = kernels.tensor({64, 32}, cute.bf16, function(i) return i % 5 end)
    local layouts = utils.LayoutEnum
    local a = layouts.from_tensor(A)
    assert.equal(layouts.ROW_MAJOR, a)
    local mma = utils.sm90_make_trivial_tiled_mma(cute.bf16, cute.bf16,
      a:sm90_mma_major_mode(), layouts.ROW_MAJOR:mma_major_mode(), cute.f32,
      {1, 1, 1}, {64, 64}, warpgroup.OperandSource.SMEM)
    local layout = utils.sm90_make_smem_layout_a(a, {64, 64, 32}, cute.bf16, 1)
    local out = cute.zeros({64, 64}, cute.f32)
    local call = cute.kernel("k", function(mA, mD)
      local tid = arch.thread_idx()
      local s = utils.SmemAllocator():allocate_tensor(cute.bf16, layout, 1024)
      for i = 0, 15 do
        local e = i * 128 + tid
        s[{e // 32, e % 32, 0}] = mA[{e // 32, e % 32}]
      end
      arch.fence_view_async_shared()
      arch.sync_threads()
      local thr = mma:get_slice(tid)
      local tCrA = mma:make_fragment_A(thr:partition_A(s))
      local tCrB = mma:make_fragment_B(thr:partition_B(s))
      local acc = mma:make_fragment_C(thr:partition_C(mD))
      mma:set(warpgroup.Field.ACCUMULATE, false)
      assert.is_false(mma:get(warpgroup.Field.ACCUMULATE))
      warpgroup.fence()
      cute.gemm(mma, acc, tCrA(_, _, _, 0), tCrB(_, _, _, 0), acc)
      warpgroup.commit_group()
      warpgroup.wait_group(0)
      cute.autovec_copy(acc, thr:partition_C(mD))
    end)(A, out)
    call:launch {grid = 1, block = 128, device = device}
    for m = 0, 63, 7 do
      for n = 0, 63, 5 do
        local sum = 0
        for k = 0, 31 do sum = sum + A[{m, k}] * A[{n, k}] end
        assert.equal(sum, out[{m, n}])
      end
    end
    kernels.compiles(call:trace {block = 128}, {"sm_90a"})
  end)
end)

describe("Hopper's names", function()
  it("of layouts and schedulers", function()
    local layouts = utils.LayoutEnum
    local row, col = layouts.ROW_MAJOR, layouts.COL_MAJOR
    local first_mode = cute.make_layout({64, 8, 2}, {1, 64, 512})
    assert.equal(col, layouts.from_tensor(first_mode))
    assert.same({"K", "MN"}, {row:mma_major_mode(), col:sm90_mma_major_mode()})
    assert.same({true, false, true, false, true, false}, {row:is_k_major_a(),
      row:is_m_major_a(), row:is_k_major_b(), row:is_n_major_b(),
      row:is_n_major_c(), row:is_m_major_c()})
    assert.same({false, true, false, true, false, true}, {col:is_k_major_a(),
      col:is_m_major_a(), col:is_k_major_b(), col:is_n_major_b(),
      col:is_n_major_c(), col:is_m_major_c()})
    assert.equal("COL_MAJOR", tostring(col))
    raises("neither of the first two modes of", function()
      layouts.from_tensor(cute.make_layout({4, 4}, {2, 8}))
    end)
    for name, of in pairs {row = row, col = col} do
      assert.equal(tostring(utils.sm90_make_smem_layout_epi(cute.bf16, name,
        {64, 32}, 2)), tostring(utils.sm90_make_smem_layout_epi(cute.bf16, of,
        {64, 32}, 2)))
      assert.equal(utils.sm90_get_smem_store_op(name, cute.bf16, cute.f32).name,
        utils.sm90_get_smem_store_op(of, cute.bf16, cute.f32).name)
    end
    raises("no layout 'wide' (row or col)", function()
      utils.sm90_make_smem_layout_epi(cute.bf16, "wide", {64, 32}, 2)
    end)
    local by_place = utils.PersistentTileSchedulerParams({6, 4, 1}, {1, 1, 1},
                                                         2, false)
    assert.same({2, false}, {by_place.swizzle_size, by_place.raster_along_m})
    assert.is_true(utils.PersistentTileSchedulerParams({6, 4, 1}, nil, 2)
      .raster_along_m)
  end)

  it("stand for something, all that count", function()
    local list = names.read(os.getenv "CUTELUA_NAMES_FILE"
      or "../shared/dsl-names.txt")
    if not list then return pending "needs the list of names" end
    local _, all = names.count(list, "hopper")
    assert.is_true(all.have >= 100)
    for _, full in ipairs(all.missing) do
      assert.is_string(names.LEFT_OUT[full], full)
    end
  end)
end)
-- SPDX-License-Identifier: MIT
