-- Tests mbarriers, cluster barriers, proxy fences, register counts and
-- overlapping kernels. Each operation must have the expected IR and CUDA C,
-- compile for sm_90a, and be rejected for targets without it. Also tests the
-- mbarriers of sm_80.
local cute = require "cute"
local kernels = require "spec.kernels"
local raises = require "spec.support".raises
local arch = cute.arch

-- Cases: a call, its line in the dump of the IR, and its line in the CUDA C.
local CASES = {
  {function(bar) arch.mbarrier_init(bar, 7) end,
   "mbarrier.init bar[2], 7", "mbar_init(bar_addr + 16u, 7);",
   "mbarrier.init.shared::cta.b64 [%0], %1;"},
  {function(bar) arch.mbarrier_inval(bar) end,
   "mbarrier.inval bar[2]", "mbar_inval(bar_addr + 16u);",
   "mbarrier.inval.shared::cta.b64 [%0];"},
  {function(bar) arch.mbarrier_arrive(bar) end,
   "mbarrier.arrive bar[2], 1", "mbar_arrive(bar_addr + 16u);",
   "mbarrier.arrive.shared::cta.b64 _, [%0];"},
  {function(bar, tid) arch.mbarrier_arrive(bar, nil, tid + 1) end,
   "mbarrier.arrive bar[2], %%d", "mbar_arrive(bar_addr + 16u, tid + 1);",
   "mbarrier.arrive.shared::cta.b64 _, [%0], %1;"},
  {function(bar) arch.mbarrier_arrive(bar, nil, 1, {relaxed = true}) end,
   "mbarrier.arrive.relaxed bar[2], 1",
   "mbar_arrive_relaxed_cta(bar_addr + 16u);",
   "mbarrier.arrive.relaxed.cta.shared::cta.b64 _, [%0];"},
  {function(bar, tid) arch.mbarrier_arrive(bar, tid) end,
   "mbarrier.arrive bar[2], 1, tid", "mbar_arrive_remote(bar_addr + 16u, tid);",
   "mbarrier.arrive.shared::cluster.b64 _, [there]; }"},
  {function(bar, tid)
     arch.mbarrier_arrive(arch.map_dsmem_ptr(bar, tid & 1))
     local words = arch.alloc_smem(cute.i32, 8)
     local there = cute.recast_ptr(arch.map_dsmem_ptr(words, tid & 1), nil,
                                   cute.i64)
     arch.mbarrier_expect_tx(there + 1, 16)
   end, "mbarrier.arrive bar[2], 1, %%d",
   "mbar_arrive_remote(bar_addr + 16u, i0);",
   "mbar_expect_tx_remote(words_i64_addr + 8u, 16, i0);"},
  {function(bar, tid) arch.mbarrier_arrive(bar, tid, 2,
                                           {scope = "cluster"}) end,
   "mbarrier.arrive.cluster bar[2], 2, tid",
   "mbar_arrive_release_cluster_remote(bar_addr + 16u, 2, tid);",
   "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [there], %1; }"},
  {function(bar) arch.mbarrier_arrive_and_expect_tx(bar, 512) end,
   "mbarrier.expect_tx.arrive bar[2], 512",
   "mbar_arrive_expect_tx(bar_addr + 16u, 512);",
   "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"},
  {function(bar, tid) arch.mbarrier_arrive_and_expect_tx(bar, 512, tid) end,
   "mbarrier.expect_tx.arrive bar[2], 512, tid",
   "mbar_arrive_expect_tx_remote(bar_addr + 16u, 512, tid);",
   "mbarrier.arrive.expect_tx.shared::cluster.b64 _, [there], %1; }"},
  {function(bar) arch.mbarrier_expect_tx(bar, 64) end,
   "mbarrier.expect_tx bar[2], 64", "mbar_expect_tx(bar_addr + 16u, 64);",
   "mbarrier.expect_tx.shared::cta.b64 [%0], %1;"},
  {function(bar) arch.mbarrier_expect_tx(bar, 64, 1, {scope = "cluster"}) end,
   "mbarrier.expect_tx.cluster bar[2], 64, 1",
   "mbar_expect_tx_relaxed_cluster_remote(bar_addr + 16u, 64, 1);",
   "mbarrier.expect_tx.relaxed.cluster.shared::cluster.b64 [there], %1; }"},
  {function(bar, tid) arch.mbarrier_wait(bar, tid & 1) end,
   "mbarrier.wait bar[2], %%d", "mbar_wait(bar_addr + 16u, tid & 1);",
   "WAIT: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;"},
  {function(bar) arch.mbarrier_wait(bar, 0, {scope = "cluster"}) end,
   "mbarrier.wait.cluster bar[2], 0",
   "mbar_wait_acquire_cluster(bar_addr + 16u, 0);",
   "WAIT: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%0],"},
  {function(bar, _, o)
     o[0] = cute.where(arch.mbarrier_try_wait(bar, 1), 1, 0)
   end,
   "boolean mbarrier.try_wait bar[2], 1", "mbar_try_wait(bar_addr + 16u, 1);",
   "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;"},
  {function(bar, _, o)
     o[0] = cute.where(arch.mbarrier_test_wait(bar, 0), 1, 0)
   end,
   "boolean mbarrier.try_wait.test bar[2], 0",
   "mbar_test_wait(bar_addr + 16u, 0);",
   "mbarrier.test_wait.parity.shared::cta.b64 p, [%1], %2;"},
  {function(bar) arch.cp_async_mbarrier_arrive_noinc(bar) end,
   "cp.async.mbarrier.arrive.noinc bar[2]",
   "mbar_cp_async_noinc(bar_addr + 16u);",
   "cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];"},
  {function(bar, tid)
     arch.store_async_dsmem(cute.recast_ptr(bar, nil, cute.f32), {1.0, 2.0},
                            bar, tid & 1)
   end, "st.async 64 bits bar:f32[4], bar[2], %%d, 1, 2",
   "st_async_f32x2(bar_f32_addr + 16u, bar_addr + 16u, tid & 1, 1.0f, 2.0f);",
   ".v2.f32 [to], {%3, %4}, [count]; }"},
  {function(bar, tid)
     arch.store_async_dsmem(bar, 5, bar, tid & 1)
   end, "st.async 64 bits bar[2], bar[2], %%d, 5",
   "st_async_i64x1(bar_addr + 16u, bar_addr + 16u, tid & 1, 5ll);",
   ".b64 [to], {%3}, [count]; }"},
  {function(bar, tid, o)
     local peer = arch.map_dsmem_ptr(bar, tid & 1)
     o[0] = arch.load(peer + 1):to(cute.i32)
     arch.store(cute.recast_ptr(peer, nil, cute.i32) + 1, 7)
     arch.store(peer, 6, {sem = "release", scope = "cluster"})
   end, "peer = i64 dsmem x4 align 16 at 0 bar, %%d",
   "long long *const peer = (long long *)map_shared(bar, i0);",
   "o[0] = (int)peer[3];", "int *const peer_i32 = (int *)peer;",
   "peer_i32[5] = 7;", "st_release_cluster_b64(peer + 2, 6ll);",
   "st.release.cluster.b64 [%0], %1;"},
  {function(_, _, o) o[0] = cute.where(arch.elect_one(), 1, 0) end,
   "boolean ask elect", "elect_u32(0xffffffff)", "elect.sync _|p, %1;"},
  {function() arch.mbarrier_init_fence() end, "fence mbarrier_init",
   'asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");'},
  {function() arch.fence_acq_rel_cluster() end, "fence cluster",
   'asm volatile("fence.acq_rel.cluster;" ::: "memory");'},
  {function() arch.fence_view_async_shared() end, "fence async.shared::cta",
   'asm volatile("fence.proxy.async.shared::cta;" ::: "memory");'},
  {function() arch.fence_proxy("async.shared", "cluster") end,
   "fence async.shared::cluster",
   'asm volatile("fence.proxy.async.shared::cluster;" ::: "memory");'},
  {function() arch.fence_proxy "async" end, "fence async\n",
   'asm volatile("fence.proxy.async;" ::: "memory");'},
  {function() arch.fence_proxy "async.global" end, "fence async.global",
   'asm volatile("fence.proxy.async.global;" ::: "memory");'},
  {function() arch.fence_proxy "alias" end, "fence alias",
   'asm volatile("fence.proxy.alias;" ::: "memory");', sm = 70},
  {function() arch.cluster_arrive() end, "cluster.arrive.aligned",
   'asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");'},
  {function() arch.cluster_arrive {aligned = false} end, "cluster.arrive\n",
   'asm volatile("barrier.cluster.arrive.release;" ::: "memory");'},
  {function() arch.cluster_arrive_relaxed() end,
   "cluster.arrive.relaxed.aligned",
   'asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");'},
  {function() arch.cluster_wait() end, "cluster.wait.aligned",
   'asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");'},
  {function() arch.cluster_wait {aligned = false} end, "cluster.wait\n",
   'asm volatile("barrier.cluster.wait.acquire;" ::: "memory");'},
  {function() arch.barrier(3, 64, {aligned = false}) end,
   "bar.sync.unaligned #3 64",
   'asm volatile("barrier.sync 3, 64;" ::: "memory");', sm = 70},
  {function(_, tid)
     arch.barrier_arrive(3 + tid // 64, 64, {aligned = false})
   end, "bar.arrive.unaligned 64, %%d",
   'asm volatile("barrier.arrive %0, 64;" :: "r"(', sm = 70},
  {function() arch.barrier(0, nil, {aligned = false}) end,
   "bar.sync.unaligned #0", 'asm volatile("barrier.sync 0;" ::: "memory");',
   sm = 70},
  {function() arch.setmaxregister_decrease(40) end, "setmaxnreg.dec #40",
   'asm volatile("setmaxnreg.dec.sync.aligned.u32 40;" ::: "memory");',
   specific = true},
  {function() arch.setmaxregister_increase(232) end, "setmaxnreg.inc #232",
   'asm volatile("setmaxnreg.inc.sync.aligned.u32 232;" ::: "memory");',
   specific = true},
  {function() arch.warpgroup_reg_dealloc(24) end, "setmaxnreg.dec #24",
   "24;", specific = true},
  {function() arch.warpgroup_reg_alloc(240) end, "setmaxnreg.inc #240",
   "240;", specific = true},
  {function() arch.griddepcontrol_wait() end, "griddepcontrol.wait",
   'asm volatile("griddepcontrol.wait;" ::: "memory");'},
  {function() arch.griddepcontrol_launch_dependents() end,
   "griddepcontrol.launch_dependents",
   'asm volatile("griddepcontrol.launch_dependents;" ::: "memory");'},
}

for _, c in ipairs {
  {arch.block_idx_in_cluster, "cluster_ctarank"},
  {arch.cluster_idx, "clusterid.x", "clusterid.y", "clusterid.z"},
  {arch.cluster_dim, "nclusterid.x", "nclusterid.y", "nclusterid.z"},
  {arch.block_in_cluster_idx, "cluster_ctaid.x", "cluster_ctaid.y",
   "cluster_ctaid.z"}} do
  for k = 2, #c do
    CASES[#CASES + 1] = {
      function(_, _, o) o[0] = (select(k - 1, c[1]())) end,
      "i32 sreg " .. c[k], c[k]:gsub("%.", "_") .. "()",
      "mov.u32 %0, %%" .. c[k] .. ";"}
  end
end

local function trace(f)
  return cute.kernel("k", function(o)
    local tid = arch.thread_idx()
    local bar = arch.alloc_smem(cute.i64, 4)
    f(bar + 2, tid, o)
    o[tid] = tid
  end)(cute.zeros({128}, cute.i32)):trace {
      block = 128, cluster = {2, 2, 2}}
end

describe("on Hopper", function()
  for k, c in ipairs(CASES) do
    it(("%d: %s"):format(k, (c[2]:gsub("%s", " "))), function()
      local program = trace(c[1])
      assert.truthy(program.ir:gsub("%%%d+", "%%%%d"):find(c[2], 1, true),
                    program.ir)
      for n = 3, #c do
        assert.truthy(program.source:find(c[n], 1, true), program.source)
      end
      local good = c.specific and {"sm_90a", "sm_100a"}
        or {"sm_90", "sm_90a", "sm_120"}
      if not kernels.compiles(program, good) then return end
    end)

    it(("%d is refused elsewhere"):format(k), function()
      local program = trace(c[1])
      if c.specific then
        raises("is a feature of one chip: it needs sm_90a, the target is "
          .. "sm_90", program.cuda, program, "sm_90")
      end
      if c.sm then return end
      raises("needs sm_90 or newer, the target is sm_89", program.cuda,
             program, "sm_89")
    end)
  end

  -- Traces f for a target older than sm_90. An operation that the target lacks
  -- is an error.
  local function older(f)
    return cute.kernel("k", function(o)
      local tid = arch.thread_idx()
      f(arch.alloc_smem(cute.i64, 4) + 2, tid, o)
      o[tid] = tid
    end)(cute.zeros({128}, cute.i32)):trace {block = 128}
  end

  for name, c in pairs {
    init = {CASES[1][1], CASES[1][4]}, inval = {CASES[2][1], CASES[2][4]},
    arrive = {CASES[3][1], CASES[3][4]},
    ["arrive, many"] = {CASES[4][1],
      'do asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];"\n'
      .. '      :: "r"(bar) : "memory");\n  while (--count);'},
    ["arrive, relaxed"] = {CASES[5][1], CASES[3][4]},
    ["arrive, for the block"] = {function(bar)
      arch.mbarrier_arrive(bar, nil, 1, {scope = "cta", relaxed = true})
      arch.mbarrier_arrive(bar, nil, 1, {scope = "cta"})
    end, "mbarrier.arrive.release.cta.shared::cta.b64 _, [%0];"},
    token = {function(bar, tid, o)
      local token = arch.mbarrier_arrive(bar, nil, 2, {token = true})
      arch.mbarrier_wait(bar, token)
      cute.when(arch.mbarrier_test_wait(bar, token), function() o[0] = tid end)
    end, "WAIT: mbarrier.test_wait.shared::cta.b64 p, [%0], %1;"},
    wait = {function(bar) arch.mbarrier_wait(bar, 1) end,
      "WAIT: mbarrier.test_wait.parity.shared::cta.b64 p, [%0], %1;"},
    try_wait = {function(bar, tid, o)
      local done = arch.mbarrier_try_wait(bar, 1)
        & arch.mbarrier_test_wait(bar, 1)
      cute.when(done, function() o[0] = tid end)
    end, "mbarrier.test_wait.parity.shared::cta.b64 p, [%1], %2;"},
    ["cp.async"] = {function(bar) arch.cp_async_mbarrier_arrive_noinc(bar) end,
      "cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];"},
    init_fence = {function() arch.mbarrier_init_fence() end,
      "__threadfence_block();"}} do
    it("is there from sm_80 on: " .. name, function()
      local program = older(c[1])
      local text = program:cuda "sm_80"
      assert.truthy(text:find(c[2], 1, true), text)
      assert.is_nil(text:find("try_wait.", 1, true))
      kernels.compiles(program, {"sm_80", "sm_86", "sm_89", "sm_90a"})
      if name == "init_fence" then return end
      raises("needs sm_80 or newer, the target is sm_75", program.cuda,
             program, "sm_75")
    end)
  end

  for what, f in pairs {
    ["a count of bytes at an mbarrier"] = function(bar)
      arch.mbarrier_expect_tx(bar, 16)
    end,
    ["a time limit at an mbarrier"] = function(bar, tid, o)
      local done = arch.mbarrier_try_wait(bar, 0, {time_limit = 9})
      cute.when(done, function() o[0] = tid end)
    end,
    ["scope \"cluster\""] = function(bar)
      arch.mbarrier_wait(bar, 0, {scope = "cluster"})
    end} do
    it("is there from sm_90 on: " .. what, function()
      local program = older(f)
      raises(what .. " (line ", program.cuda, program, "sm_89")
      raises("needs sm_90 or newer, the target is sm_89", program.cuda,
             program, "sm_89")
      kernels.compiles(program, {"sm_90", "sm_90a"})
    end)
  end
end)

describe("on Hopper", function()
  it("reports errors, with the values", function()
    local function bad(message, f)
      raises(message, trace, f)
    end
    bad("mbarrier_init: a count of 0; 1 to 1048575 is needed",
        function(bar) arch.mbarrier_init(bar, 0) end)
    bad("mbarrier_arrive: block 8 is outside a cluster of 8 [bad-argument]",
        function(bar) arch.mbarrier_arrive(bar, 8) end)
    bad("map_dsmem_ptr: block -1 is outside a cluster of 8 [bad-argument]",
        function(bar, tid) arch.map_dsmem_ptr(bar, -1 - tid) end)
    bad("store_async_dsmem: block 9 is outside a cluster of 8 [bad-argument]",
        function(bar, tid) arch.store_async_dsmem(bar, 1, bar, tid + 9) end)
    bad("no option 'release': there are relaxed scope", function(bar)
      arch.mbarrier_arrive(bar, 1, 1, {release = true})
    end)
    bad("mbarrier_wait: the parity must be 0 or 1, not 2",
        function(bar) arch.mbarrier_wait(bar, 2) end)
    bad("an mbarrier must be an i64 in this block's shared memory", function()
      arch.mbarrier_init(arch.alloc_smem(cute.i32, 1), 1)
    end)
    bad("an mbarrier must be an i64 in this block's shared memory, got",
        function(bar, tid)
      arch.mbarrier_wait(arch.map_dsmem_ptr(bar, tid & 1), 0)
    end)
    bad("the mbarrier is already mapped to another block's",
        function(bar, tid)
      arch.mbarrier_arrive(arch.map_dsmem_ptr(bar, tid & 1), 1)
    end)
    bad("an mbarrier must be an i64 in this block's shared memory, got",
        function(_, _, o)
      arch.mbarrier_init(cute.recast_ptr(o.iterator, nil, cute.i64), 1)
    end)
    bad("setmaxregister_increase: 100 registers; a multiple of 8 from 24 to "
      .. "256 is needed", function() arch.setmaxregister_increase(100) end)
    bad("cluster_wait: no option 'align' (did you mean aligned?): there is "
      .. "aligned",
        function() arch.cluster_wait {align = true} end)
    bad("barrier: aligned = 1; a boolean is needed", function()
      arch.barrier(1, 64, {aligned = 1})
    end)
    bad("fence_proxy: no kind 'tensor'", function()
      arch.fence_proxy "tensor"
    end)
  end)

  it("distributes as many registers as a block can have", function()
    local function bounds(min_blocks)
      local k = cute.kernel("k", {min_blocks = min_blocks}, function(o)
        local tid = arch.thread_idx()
        cute.when((tid // 128):eq(0), function()
          arch.setmaxregister_decrease(40)
        end, function() arch.setmaxregister_increase(232) end)
        o[tid] = 1
      end)
      return k(cute.zeros({384}, cute.i32)):trace {block = 384}
    end
    assert.truthy(bounds(nil).source:find("__launch_bounds__(384, 1)", 1, true))
    assert.truthy(bounds(2).source:find("__launch_bounds__(384, 2)", 1, true))
    local made = kernels.compiled(bounds(nil), "sm_90a")
    if not made then return pending "needs NVRTC" end
    assert.equal(168, made.resources.registers)
    assert.is_nil(made.log:find "setmaxnreg")
  end)

  it("waits while a condition holds", function()
    local text = trace(function(bar, tid)
      local done = arch.mbarrier_conditional_try_wait(tid:lt(32), bar, 0)
      cute.when(~done, function() arch.mbarrier_wait(bar, 0) end)
    end).source
    assert.truthy(text:find([[
  bool p0 = true;
  if (tid < 32) {
    const bool p1 = mbar_try_wait(bar_addr + 16u, 0);
    p0 = p1;
  }
]], 1, true), text)
    assert.truthy(text:find([[
  if (!p0) {
    mbar_wait(bar_addr + 16u, 0);
  }
]], 1, true), text)
  end)
end)
-- SPDX-License-Identifier: MIT
