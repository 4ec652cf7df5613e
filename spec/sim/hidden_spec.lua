-- Faults that a GPU mostly hides: sources of copies that change on their way,
-- instructions that look like an order of memory and are none. Each is told
-- with its lines, in the right words, and its clean twin is not.
local cute = require "cute"
local order = require "spec.sim.order"
local support = require "spec.support"
local arch, _ = cute.arch, cute._
local found, line, smem = order.found, order.line, order.smem

local function nothing() end

local function tensor(n, dtype) return cute.ones({n}, dtype or cute.f32) end

-- The report of one launch.
local function report(f, block, ...)
  return support.report(cute.kernel("k", f)(...):launch {grid = 1,
    block = block, device = "sim:sm_90a", faults = "return"})
end

-- kernel(fix) races at its lines `at`, and is clean when fix does its work.
local function planted(kind, fix, block, kernel, make)
  local at = {}
  local text = found(kernel(nothing, at), block, make())
  assert.equal(("%s %d %d"):format(kind, math.min(at[1], at[2]),
                                   math.max(at[1], at[2])), text)
  assert.equal("", (found(kernel(fix, at), block, make())))
end

describe("sources of copies", function()
  local g2s = cute.make_tiled_copy(
    cute.make_copy_atom("SM80_CP_ASYNC_CACHEALWAYS", cute.f32, 128),
    cute.make_layout {32}, cute.make_layout {4})

  it("of cp.async change before the wait", function()
    planted("race", function()
      arch.cp_async_wait_group(0)
      arch.sync_warp()
    end, 32, function(fix, at)
      return function(x, y)
        local t = arch.thread_idx()
        local s, thr = smem(128, cute.f32), g2s:get_slice(t)
        at[1] = line() + 1
        cute.copy(g2s, thr:partition_S(x), thr:partition_D(s))
        arch.cp_async_commit_group()
        fix()
        at[2] = line() + 1
        x[t] = 2.0
        arch.cp_async_wait_group(0)
        arch.sync_threads()
        y[t] = s[t]
      end
    end, function() return tensor(128), tensor(32) end)
    local r = report(function(x)
      local t = arch.thread_idx()
      local s, thr = smem(128, cute.f32), g2s:get_slice(t)
      cute.copy(g2s, thr:partition_S(x), thr:partition_D(s))
      arch.cp_async_commit_group()
      x[t * 4] = 2.0
      arch.cp_async_wait_group(0)
    end, 32, tensor(128))
    assert.equal("write after a read by a cp.async whose end was not waited "
      .. "for: element 0 of global tensor 'x'", r.reports[1].message)
  end)

  local function bulk(kernel)
    local cpasync = cute.nvgpu.cpasync
    local atom = cute.make_copy_atom(cpasync.CopyBulkG2SOp(), cute.f32)
    return function(x, y)
      local t = arch.thread_idx()
      local s = cute.make_smem_tensor(cute.f32, cute.make_layout {64}, 128)
      local bar = arch.alloc_smem(cute.i64, 1)
      cute.when(t:eq(0), function()
        arch.mbarrier_init(bar, 1)
        arch.mbarrier_init_fence()
      end)
      arch.sync_threads()
      kernel(x, t, function()
        local from, to = cpasync.group_bulk_copy_modes(x, s)
        cute.when(t:eq(0), function()
          arch.mbarrier_arrive_and_expect_tx(bar, 256)
          cute.copy(atom, from, to, {mbar_ptr = bar})
        end)
      end, function() arch.mbarrier_wait(bar, 0) end)
      y[t] = s[t]
    end
  end

  it("of bulk copies change before their end", function()
    for _, early in ipairs {true, false} do
      local r = report(bulk(function(x, t, load, wait)
        load()
        if not early then wait() end
        cute.when(t:lt(32), function() x[t] = 2.0 end)
        if early then wait() end
      end), 64, tensor(64), tensor(64))
      if not early then
        assert.is_true(r.ok)
      else
        assert.equal("race", r.reports[1].kind)
        assert.matches("write after a read by a bulk copy whose end was not "
          .. "waited for: element %d+ of global tensor 'x'",
          r.reports[1].message)
      end
    end
  end)

  it("of bulk copies were written by threads: a fence is needed", function()
    for fence, told in pairs {["async"] = false, ["async.global"] = false,
                              ["async.shared"] = true, none = true} do
      local r = report(bulk(function(x, t, load, wait)
        x[t] = 2.0
        if fence ~= "none" then arch.fence_proxy(fence) end
        arch.sync_threads()
        load()
        wait()
      end), 64, tensor(64), tensor(64))
      assert.equal(told, not r.ok, fence)
      if told then
        assert.matches("read by a bulk copy after a thread's write, with no "
          .. "fence_proxy.*global tensor 'x'", r.reports[1].message)
        assert.matches('async.global', tostring(r))
      end
    end
  end)
end)

describe("what is no order of memory", function()
  -- Warp 0 reads a stage by ldmatrix, one lane hands it back, warp 1 fills it.
  it("ldmatrix before one lane's release", function()
    local ldsm = cute.make_copy_atom("SM75_U32x4_LDSM_N", cute.f16)
    local mma = cute.make_tiled_mma("SM80_16x8x16_F32F16F16F32_TN")
    local tiled = cute.make_tiled_copy_A(ldsm, mma)
    planted("race", arch.sync_warp, 64, function(fix, at)
      return function(y)
        local t, lane = arch.thread_idx(), arch.lane_idx()
        local s = cute.make_smem_tensor(cute.f16, cute.make_layout({16, 16},
          {16, 1}), 128)
        local f = smem(1)
        cute.when(t:eq(0), function() f[0] = 0 end)
        cute.when(t:lt(16), function()
          for k = 0, 15 do s[{t, k}] = 1.0 end
        end)
        arch.sync_threads()
        cute.when(arch.warp_idx():eq(0), function()
          local thr = tiled:get_slice(lane)
          local r = mma:get_slice(lane):make_fragment_A(
            mma:get_slice(lane):partition_A(s))
          at[1] = line() + 1
          cute.copy(tiled, thr:partition_S(s), thr:retile(r))
          fix()
          cute.when(lane:eq(0), function()
            arch.store(f.iterator, 1, order.REL)
          end)
          y[t] = r[0]:to(cute.f32)
        end, function()
          order.poll(f.iterator, 1, order.ACQ)
          at[2] = line() + 1
          s[{lane // 2, lane % 2}] = 2.0
        end)
      end
    end, function() return tensor(32) end)
  end)
end)

describe("words", function()
  it("a cp.async that nobody committed belongs to no group", function()
    local g2s = cute.make_tiled_copy(
      cute.make_copy_atom("SM80_CP_ASYNC_CACHEALWAYS", cute.f32, 128),
      cute.make_layout {32}, cute.make_layout {4})
    local r = report(function(x, y)
      local t = arch.thread_idx()
      local s, thr = smem(128, cute.f32), g2s:get_slice(t)
      cute.copy(g2s, thr:partition_S(x), thr:partition_D(s))
      arch.cp_async_wait_group(0)
      arch.sync_threads()
      y[t] = s[t]
    end, 32, tensor(128), tensor(32))
    assert.equal("read of shared memory while a cp.async to it is in flight "
      .. "(it is in no group: commit missing): element 0 of shared tensor 's'",
      r.reports[1].message)
    assert.matches("cp_async_commit_group", tostring(r))
  end)

  it("a missing barrier comes before what was read too early", function()
    for seed = 1, 6 do
      local r = order.run(seed, 128, function(y)
        local t, s = arch.thread_idx(), smem(128)
        s[t] = t
        y[t] = s[127 - t]
      end, cute.zeros({128}, cute.i32))
      assert.equal("race", r.reports[1].kind)
      assert.matches("put sync_threads%(%) between the two lines", tostring(r))
    end
  end)

  it("an operation of 32 threads in a warp of fewer", function()
    local ldsm = cute.make_copy_atom("SM75_U32x4_LDSM_N", cute.f16)
    local mma = cute.make_tiled_mma("SM80_16x8x16_F32F16F16F32_TN")
    local tiled = cute.make_tiled_copy_A(ldsm, mma)
    local r = report(function(y)
      local t = arch.thread_idx()
      local s = cute.make_smem_tensor(cute.f16, cute.make_layout({16, 16},
        {16, 1}), 128)
      for k = 0, 15 do s[{t % 16, k}] = 1.0 end
      arch.sync_threads()
      local thr = tiled:get_slice(t % 32)
      local r = mma:get_slice(t % 32):make_fragment_A(
        mma:get_slice(t % 32):partition_A(s))
      cute.copy(tiled, thr:partition_S(s), thr:retile(r))
      y[t] = r[0]:to(cute.f32)
    end, 48, tensor(48))
    assert.equal("an operation of 32 threads in a warp that has 16",
                 r.reports[1].message)
  end)
end)
