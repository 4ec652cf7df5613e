-- Tests wgmma in the simulator. Every family of instructions is compared,
-- element by element, with the rounding rules of the tensor cores.
local specs = require "spec.warpgroup"
local support = require "spec.support"

describe("a warpgroup's MMA", function()
  for i, c in ipairs(specs.cases) do
    it("computes " .. specs.name(c) .. support.long(i, 4), function()
      local A, B, D, E, whole = specs.operands(c)
      local want = specs.reference(c, whole or A, B, D)
      local expected = {}
      for m = 0, D.shape[1] - 1, 7 do
        for n = m % 3, c.n - 1, 5 do
          expected[#expected + 1] = {m, n, want(m, n)}
        end
      end
      local kernel, threads = specs.kernel(c)
      local report = kernel(A, B, D, E):launch {
        grid = 1, block = threads, device = "sim:sm_90a", faults = "return"}
      assert.is_true(report.ok, tostring(report))
      local got = specs.raw(D)
      for _, e in ipairs(expected) do
        assert.equal(e[3], got[{e[1], e[2]}], ("(%d,%d)"):format(e[1], e[2]))
      end
    end)
  end
end)

-- ---- reports ----

local cute = require "cute"
local values = require "spec.values"
local warpgroup = cute.nvgpu.warpgroup
local _ = cute._

-- `mma` is the MMA of all kernels here. launch(f, opts) runs f(context) in a
-- kernel with two stages of a 64 x 64 tile in shared memory.
local mma = cute.make_tiled_mma(
  warpgroup.MmaF16BF16Op("bf16", "f32", {64, 64, 16}, "SMEM"))

local function launch(f, opts)
  opts = opts or {}
  local layout = cute.tile_to_shape(warpgroup.make_smem_layout_atom("K_SW128",
    "bf16"), {64, 64, 2})
  return values.launch(function(mD)
    local tid = cute.arch.thread_idx()
    local s = cute.make_smem_tensor(cute.bf16, layout, 1024)
    local thr = mma:get_slice(tid % 128)
    local t = {s = s, tid = tid, warp = cute.arch.warp_idx()}
    t.a = mma:make_fragment_A(thr:partition_A(s))
    t.b = mma:make_fragment_B(thr:partition_B(s))
    t.acc = thr:partition_fragment_C(cute.make_layout {64, 64})
    t.store = function() cute.autovec_copy(t.acc, thr:partition_C(mD)) end
    function t.fill(stage, x)
      for k = 0, 64 * 64 // (opts.block or 128) - 1 do
        local e = k * (opts.block or 128) + tid
        s[{e // 64, e % 64, stage}] = x or 1
      end
    end
    function t.ready()
      cute.arch.fence_view_async_shared()
      cute.arch.sync_threads()
      warpgroup.fence()
      mma:set("ACCUMULATE", false)
    end
    function t.gemm(stage)
      cute.gemm(mma, t.acc, t.a(_, _, _, stage), t.b(_, _, _, stage), t.acc)
    end
    f(t)
  end, {cute.zeros({64, 64}, "f32")},
  {block = opts.block or 128, device = "sim:sm_90a", seed = opts.seed})
end

-- Launches f under three schedules, and asserts that each first report has this
-- kind, a message with this text, and a line.
local function told(kind, text, f, opts)
  for seed = 1, 3 do
    opts = opts or {}
    opts.seed = seed
    local r = values.first_fault(launch(f, opts))
    assert.equal(kind, r.kind, r.message)
    assert.truthy(r.message:find(text, 1, true), r.message)
    assert.is_number(r.line)
  end
end

describe("a warpgroup's MMA in the simulator", function()
  it("is complete at its wait, not before", function()
    values.ok(launch(function(t)
      t.fill(0) t.fill(1)
      t.ready()
      t.gemm(0) warpgroup.commit_group()
      t.gemm(1) warpgroup.commit_group()
      warpgroup.wait_group(1)
      t.fill(0, 2)             -- stage 0 has been read
      warpgroup.wait_group(0)
      t.store()
    end))
  end)

  it("reports a stage that is overwritten while it is read", function()
    local text = "write after a read by wgmma whose completion was not waited "
      .. "for: element "
    told("race", text, function(t)
      t.fill(0)
      t.ready()
      t.gemm(0) warpgroup.commit_group()
      t.fill(0, 2)
      warpgroup.wait_group(0)
    end)
    told("race", text, function(t)   -- the wait leaves the second group pending
      t.fill(0) t.fill(1)
      t.ready()
      t.gemm(0) warpgroup.commit_group()
      t.gemm(1) warpgroup.commit_group()
      warpgroup.wait_group(1)
      cute.arch.sync_threads()
      t.fill(1, 2)
      warpgroup.wait_group(0)
    end)
    -- the other warpgroup overwrites the operand
    told("race", " after a ", function(t)
      t.fill(0)
      t.ready()
      cute.when(t.tid:lt(128), function()
        t.gemm(0) warpgroup.commit_group() warpgroup.wait_group(0)
      end, function()
        cute.when(t.tid:eq(128), function() t.s[{0, 0, 0}] = 3 end)
      end)
    end, {block = 256})
  end)

  it("reports operands written with no fence, or not at all", function()
    told("race", "read by wgmma after a thread's write, with no "
      .. "fence_proxy(\"async\") in between",
      function(t)
        t.fill(0)
        cute.arch.sync_threads()
        warpgroup.fence()
        mma:set("ACCUMULATE", false)
        t.gemm(0) warpgroup.commit_group() warpgroup.wait_group(0)
      end)
    told("race", "read by wgmma after a thread's write", function(t)
      t.fill(0)
      cute.arch.fence_view_async_shared()
      warpgroup.fence()
      mma:set("ACCUMULATE", false)
      t.gemm(0) warpgroup.commit_group() warpgroup.wait_group(0)
    end)
    told("uninitialised", "of shared tensor", function(t)
      t.ready()
      t.gemm(0) warpgroup.commit_group() warpgroup.wait_group(0)
    end)
    told("uninitialised", "of register tensor", function(t)
      t.fill(0)
      t.ready()
      mma:set("ACCUMULATE", true)
      t.gemm(0) warpgroup.commit_group() warpgroup.wait_group(0)
    end)
  end)

  it("needs all four warps of a warpgroup in one operation", function()
    told("warpgroup-mismatch", "lanes of a warp name different operands",
      function(t)
        t.fill(0)
        t.ready()
        mma:set("ACCUMULATE", t.tid:lt(16))
        t.gemm(0) warpgroup.commit_group() warpgroup.wait_group(0)
      end)
    told("warpgroup-mismatch", "issues a different MMA than the rest of its "
      .. "warpgroup (warps 0 to 3), or uses different descriptors", function(t)
        t.fill(0) t.fill(1)
        t.ready()
        t.gemm(t.warp % 2) warpgroup.commit_group() warpgroup.wait_group(0)
      end)
    told("warpgroup-mismatch", "exited without issuing the MMA",
      function(t)
        t.fill(0)
        t.ready()
        cute.when(t.warp:lt(3), function()
          t.gemm(0) warpgroup.commit_group()
        end)
      end)
    told("deadlock", "an MMA of their warpgroup that warp 3 has not issued",
      function(t)
        t.fill(0)
        t.ready()
        cute.when(t.warp:lt(3), function()
          t.gemm(0) warpgroup.commit_group() warpgroup.wait_group(0)
        end)
      end)
    told("warpgroup-mismatch", "in a block of 6 warps, but warps 4 to 7",
      function(t)
        t.fill(0) t.fill(1)
        t.ready()
        cute.when(t.tid:ge(128), function()
          t.gemm(0) warpgroup.commit_group()
        end)
      end, {block = 192})
  end)
end)

-- ---- a ring of mbarriers: a warpgroup fills, another multiplies ----

local STAGES, TILES = 3, 7
-- Runs a kernel with a ring of stages. `bug` names the step to omit ("full",
-- "empty", "fence"), or is "early", with which a stage is freed too early.
local function ring(bug, seed)
  local tile = cute.tile_to_shape(warpgroup.make_smem_layout_atom("K_SW128",
    "bf16"), {64, 64, STAGES})
  local x = cute.zeros({64, 64 * TILES}, "bf16")
  x:fill(1)
  local D = cute.zeros({64, 64}, "f32")
  local report = values.launch(function(mX, mD, n)
    local arch, tid = cute.arch, cute.arch.thread_idx()
    local s = cute.make_smem_tensor(cute.bf16, tile, 1024)
    local full = arch.alloc_smem(cute.i64, STAGES)
    local empty = arch.alloc_smem(cute.i64, STAGES)
    cute.when(tid:eq(0), function()
      for k = 0, STAGES - 1 do
        arch.mbarrier_init(full + k, 128)
        arch.mbarrier_init(empty + k, 1)
      end
      arch.mbarrier_init_fence()
    end)
    arch.sync_threads()
    cute.when(tid:ge(128), function()
      for k in cute.range(n) do
        local stage, phase = k % STAGES, k // STAGES & 1
        if bug ~= "empty" then arch.mbarrier_wait(empty + stage, phase ~ 1) end
        for e in cute.range(32) do
          local r, c = (e * 128 + tid - 128) // 64, tid % 64
          s[{r, c, stage}] = mX[{r, c + k * 64}]
        end
        if bug ~= "fence" then arch.fence_view_async_shared() end
        arch.mbarrier_arrive(full + stage)
      end
    end, function()
      local thr = mma:get_slice(tid)
      local a = mma:make_fragment_A(thr:partition_A(s))
      local b = mma:make_fragment_B(thr:partition_B(s))
      local acc = thr:partition_fragment_C(mD)
      mma:set("ACCUMULATE", false)
      for k in cute.range(n) do
        local stage, phase = k % STAGES, k // STAGES & 1
        if bug ~= "full" then arch.mbarrier_wait(full + stage, phase) end
        warpgroup.fence()
        cute.gemm(mma, acc, a(_, _, _, stage), b(_, _, _, stage), acc)
        mma:set("ACCUMULATE", true)
        warpgroup.commit_group()
        warpgroup.wait_group(1)
        -- The stage of the preceding group is free now. Thread 0 signals this
        -- for its warpgroup.
        local free = k - (bug == "early" and 0 or 1)
        cute.when(tid:eq(0) & free:ge(0), function()
          arch.mbarrier_arrive(empty + free % STAGES)
        end)
      end
      warpgroup.wait_group(0)
      cute.autovec_copy(acc, thr:partition_C(mD))
    end)
  end, {x, D, TILES}, {block = 256, device = "sim:sm_90a", seed = seed})
  return report, D
end

describe("a warpgroup's MMA with mbarriers", function()
  it("runs while another warpgroup fills", function()
    for seed = 1, 3 do
      local report, D = ring(nil, seed)
      values.ok(report)
      assert.equal(64 * TILES, D[{seed, 5}])
    end
  end)

  it("is reported with a wrong wait, arrival or fence", function()
    for bug, text in pairs {
      full = "",
      fence = "with no fence_proxy(\"async\")",
      empty = "write after a read by wgmma",
      early = "write after a read by wgmma"} do
      for seed = 1, 3 do
        local r = values.first_fault((ring(bug, seed)))
        assert.equal("race", r.kind, bug)
        assert.truthy(r.message:find(text, 1, true), bug .. r.message)
      end
    end
  end)
end)

describe("B of a warpgroup's MMA", function()
  -- Each warp fills its own rows of A, which is stage 0. Thread 0 fills B,
  -- which is stage 1, a second time. One warp does not wait for that.
  it("must be known to each warp, whichever issues first", function()
    for late = 1, 3 do
      told("race", "of shared tensor 's'", function(t)
        local bar = cute.make_smem_tensor(cute.u64, {1}, 8).iterator
        local A, B = t.a(_, _, _, 0), t.b(_, _, _, 1)
        cute.when(t.tid:eq(0), function()
          cute.arch.mbarrier_init(bar, 1)
          cute.arch.mbarrier_init_fence()
        end)
        t.fill(1, 2)
        cute.arch.sync_threads()
        for k = 0, 31 do
          local e = t.warp * 1024 + k * 32 + t.tid % 32
          t.s[{e // 64, e % 64, 0}] = 1
        end
        cute.when(t.tid:eq(0), function()
          for e in cute.range(64 * 64) do t.s[{e // 64, e % 64, 1}] = 1 end
        end)
        cute.arch.fence_view_async_shared()
        cute.arch.sync_warp()
        cute.when(t.tid:eq(0), function() cute.arch.mbarrier_arrive(bar) end)
        cute.when(t.warp:ne(late), function()
          cute.arch.mbarrier_wait(bar, 0)
        end)
        warpgroup.fence()
        mma:set("ACCUMULATE", false)
        cute.gemm(mma, t.acc, A, B, t.acc)
        warpgroup.commit_group()
        warpgroup.wait_group(0)
      end)
    end
  end)
end)
-- SPDX-License-Identifier: MIT
