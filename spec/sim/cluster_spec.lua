-- Clusters in the simulator: blocks that run together, their barrier, arrivals
-- at each other's mbarriers, their end; and what else sm_90 brought: registers
-- that warps pass on, launches that overlap, named barriers of roles.
local cute = require "cute"
local support = require "spec.support"
local arch = cute.arch

local SEEDS = 5

local function line() return debug.getinfo(2, "l").currentline end

local function launch(f, opts, ...)
  local all = {grid = 4, cluster = 2, block = 64, device = "sim:sm_90a",
               output = false, faults = "return"}
  for name, value in pairs(opts) do all[name] = value end
  return support.report(cute.kernel("k", f)(...):launch(all))
end

-- What is found over the seeds, each thing once, and how many find something.
local function found(f, opts, ...)
  local list, some = {}, 0
  for seed = 1, SEEDS do
    opts.seed = seed
    local report = launch(f, opts, ...)
    if not report.ok then some = some + 1 end
    for _, r in ipairs(report.reports) do
      local text = ("%d %s: %s"):format(r.line, r.kind, r.message)
      if not list[text] then list[#list + 1] = text end
      list[text] = true
    end
  end
  table.sort(list)
  return table.concat(list, "\n"), some
end

-- Every seed tells what matches, and nothing does not match.
local function tells(pattern, f, opts, ...)
  local text, some = found(f, opts, ...)
  assert.equal(SEEDS, some, text)
  for told in text:gmatch "[^\n]+" do assert.matches(pattern, told) end
end

local function clean(f, opts, ...) assert.equal("", (found(f, opts, ...))) end

---------------------------------------------------------------------------
-- The cluster's barrier and its end
---------------------------------------------------------------------------

-- Stages that both blocks free for each other. o: what is left out.
local function ring(o, at)
  local STAGES, ROUNDS = 2, 5
  local function each(first, last, f)
    for k in cute.range(first, last) do f(k % STAGES, k // STAGES % 2) end
  end
  return function()
    local lane, ranks = arch.lane_idx(), arch.cluster_size()
    local full = arch.alloc_smem(cute.i64, STAGES)
    local empty = arch.alloc_smem(cute.i64, STAGES)
    cute.when(arch.thread_idx():eq(0), function()
      for k = 0, STAGES - 1 do
        arch.mbarrier_init(full + k, 1)
        arch.mbarrier_init(empty + k, ranks)
      end
      if not o.no_fence then arch.mbarrier_init_fence() end
    end)
    if o.only_block then arch.sync_threads() else
      if o.strong then arch.cluster_arrive() else
        arch.cluster_arrive_relaxed()
      end
      if not o.no_wait then arch.cluster_wait() end
    end
    cute.when(arch.warp_idx():eq(0), function()
      cute.when(lane:eq(0), function()
        each(0, ROUNDS, function(stage, turn)
          arch.mbarrier_wait(empty + stage, 1 - turn)
          arch.mbarrier_arrive(full + stage)
        end)
        if o.no_tail then return end
        each(ROUNDS, ROUNDS + STAGES, function(stage, turn)
          arch.mbarrier_wait(empty + stage, 1 - turn)
        end)
      end)
    end)
    cute.when(arch.warp_idx():eq(1), function()
      each(0, ROUNDS, function(stage, turn)
        arch.mbarrier_wait(full + stage, turn)
        cute.when(lane:lt(ranks), function()
          at.arrive = line() + 1
          arch.mbarrier_arrive(empty + stage, lane)
        end)
      end)
    end)
    if o.meet then
      o.meet()
      arch.cluster_wait()
    end
  end
end

describe("a cluster", function()
  it("runs together, up to 16 blocks and 256 warps", function()
    for _, how in ipairs {{}, {cluster = 4}, {grid = {2, 4}, cluster = {1, 4}},
        {grid = 16, cluster = 16}, {grid = 8, cluster = 8, block = 1024}} do
      clean(ring({}, {}), how)
    end
    support.raises("a cluster of 512 warps; the simulator runs at most 256",
      launch, ring({}, {}), {grid = 16, cluster = 16, block = 1024})
  end)

  it("needs a fence or an order between making barriers and using them",
    function()
    clean(ring({strong = true, no_fence = true}, {}), {})
    local unordered = "^%d+ mbarrier: mbarrier '%w+'%[%d%] is used with "
      .. "nothing that orders its mbarrier_init before"
    tells(unordered, ring({no_fence = true}, {}), {})
    tells("^%d+ mbarrier: mbarrier '%w+'%[%d%] is used",
          ring({only_block = true}, {}), {})
    tells("^%d+ mbarrier: mbarrier '%w+'%[%d%] is used", ring({no_wait = true},
      {}), {})
  end)

  it("must not end while others still arrive", function()
    local at = {}
    tells("^%d+ exited%-block: shared memory of block %(%d,0,0%), which may "
      .. "have ended: none of its threads waits for this$",
      ring({no_tail = true}, at), {})
    assert.matches("^" .. at.arrive, (found(ring({no_tail = true}, {}), {})))
    -- a barrier that orders nothing does not help; one that does, does
    tells("exited%-block", ring({no_tail = true,
                                 meet = arch.cluster_arrive_relaxed}, {}), {})
    clean(ring({no_tail = true, meet = arch.cluster_arrive}, {}), {})
  end)

  it("meets at its barrier, those apart that have ended", function()
    clean(function()
      cute.return_if(arch.warp_idx():eq(1))
      arch.cluster_arrive()
      arch.cluster_wait()
      arch.cluster_arrive()
      arch.cluster_wait()
    end, {})
    tells("waits at the cluster's barrier without having arrived", function()
      arch.cluster_wait()
    end, {})
    tells("arrives twice at the cluster's barrier with no cluster_wait in "
      .. "between", function()
      arch.cluster_arrive()
      arch.cluster_arrive()
    end, {})
    local text, some = found(function()
      cute.when(arch.block_idx_in_cluster():eq(0), function()
        arch.cluster_arrive()
        arch.cluster_wait()
      end, function()
        arch.barrier(1, 128)
      end)
    end, {block = 128})
    assert.equal(0, some, text)
    text = found(function()
      cute.when(arch.block_idx_in_cluster():eq(0), function()
        arch.cluster_arrive()
        arch.cluster_wait()
      end, function()
        cute.when(arch.warp_idx():eq(0), function() arch.barrier(1, 64) end)
      end)
    end, {})
    assert.matches("2 warps wait %(warp 0, 1%) at the cluster's barrier, to "
      .. "which 32 of 128 threads did not come", text)
    assert.matches("1 warp waits %(warp 0%) at barrier 1, where 32 threads "
      .. "came and 64 are needed", text)
  end)

  it("reaches no block beyond it", function()
    tells("write outside shared tensor 'bar': block 2 of a cluster of 2",
      function(two)
      local bar = arch.alloc_smem(cute.i64, 1)
      cute.when(arch.thread_idx():eq(0), function()
        arch.mbarrier_init(bar, 1)
        arch.mbarrier_arrive(bar, two)
      end)
    end, {}, 2)
  end)

  it("says in which block a fault is", function()
    local o = cute.zeros({64}, cute.i32)
    local report = launch(function(out)
      local s = cute.make_smem_tensor(cute.i32, cute.make_layout {64})
      local tid = arch.thread_idx()
      s[tid] = tid
      cute.when(arch.block_idx_in_cluster():eq(1), function()
        out[tid] = s[63 - tid]
      end)
    end, {grid = {2, 4}, cluster = {1, 2}}, o)
    assert.equal("race", report.reports[1].kind)
    assert.same({0, 1, 0}, report.reports[1].block)
  end)
end)

---------------------------------------------------------------------------
-- Registers
---------------------------------------------------------------------------

describe("setmaxnreg", function()
  -- Three warpgroups: the first one gives back, the others take.
  local function roles(dec, inc)
    return function()
      cute.when(arch.warp_idx():lt(4), function()
        if dec then arch.setmaxregister_decrease(dec) end
      end, function()
        arch.setmaxregister_increase(inc)
      end)
    end
  end
  local ONE = {grid = 1, cluster = 1, block = 384}

  it("passes on what the block has", function()
    clean(roles(24, 240), ONE)
    clean(roles(40, 232), ONE)
  end)

  it("waits for registers that never come", function()
    tells("^%d+ deadlock: no warp can go on: %d warps? waits? %([%w, ]+%) at "
      .. "setmaxnreg for 240 registers a thread: they have 168, and others "
      .. "gave back %d+ a thread", roles(32, 240), ONE)
    tells("they have 168, and others gave back 0 a thread", roles(nil, 232),
          ONE)
  end)

  it("takes upwards, gives downwards", function()
    tells("registers: setmaxnreg decreases threads that have 168 registers to "
      .. "200", function() arch.setmaxregister_decrease(200) end, ONE)
    tells("registers: setmaxnreg increases threads that have 168 registers to "
      .. "160", function() arch.setmaxregister_increase(160) end, ONE)
  end)
end)

---------------------------------------------------------------------------
-- Launches that overlap
---------------------------------------------------------------------------

describe("a launch that may begin before the one in front is done", function()
  local function fill(x) x[arch.thread_idx()] = 1 end
  local function copy(wait, all)
    return function(x, y)
      local tid = arch.thread_idx()
      if wait and all then arch.griddepcontrol_wait() end
      if wait and not all then
        cute.when(arch.warp_idx():eq(0), arch.griddepcontrol_wait)
        arch.sync_threads()
      end
      y[tid] = x[tid]
    end
  end
  local function after(first, second, pdl)
    return function(x, y)
      launch(first, {grid = 1, cluster = 1}, x)
      return launch(second, {grid = 1, cluster = 1, pdl = pdl}, x, y)
    end
  end

  it("waits before it uses what that one writes", function()
    local x, y = cute.zeros({64}, cute.i32), cute.zeros({64}, cute.i32)
    assert.is_true(after(fill, copy(true, true), true)(x, y).ok)
    assert.is_true(after(fill, copy(true, false), true)(x, y).ok)
    assert.is_true(after(fill, copy(false), false)(x, y).ok)
    local report = after(fill, copy(false), true)(x, y)
    assert.equal(1, #report.reports)
    assert.equal("dependent-launch", report.reports[1].kind)
    assert.matches("^read of what the launch before this one writes, with no "
      .. "griddepcontrol_wait%(%) in between: element %d+ of global tensor 'x'",
      report.reports[1].message)
  end)

  it("waits before it writes what that one reads", function()
    local x, y = cute.ones({64}, cute.i32), cute.zeros({64}, cute.i32)
    launch(copy(false), {grid = 1, cluster = 1}, x, y)
    local report = launch(function(a) a[arch.thread_idx()] = 2 end,
      {grid = 1, cluster = 1, pdl = true}, x)
    assert.matches("^write of what the launch before this one reads, with no "
      .. "griddepcontrol_wait%(%) in between: element %d+ of global tensor 'a'",
      report.reports[1].message)
    launch(copy(false), {grid = 1, cluster = 1}, x, y)
    local z = cute.zeros({64}, cute.i32)
    assert.is_true(launch(copy(false), {grid = 1, cluster = 1, pdl = true}, x,
      z).ok)
  end)
end)

---------------------------------------------------------------------------
-- Roles that take turns
---------------------------------------------------------------------------

-- Two warps that work on tiles by turns: each waits for its own barrier and
-- arrives at the other's.
local function turns(o)
  return function(out, n)
    local w = arch.warp_idx()
    local tile = cute.var(w)
    cute.return_if(w:eq(2))  -- takes no part
    cute.loop(function() return tile:get():lt(n) end, function()
      cute.when(tile:get():gt(0), function()
        arch.barrier(w + 1, o.count and 96 or 64)
      end)
      out[tile:get()] = out[tile:get()] + 1
      local function pass() arch.barrier_arrive(2 - w, 64) end
      if o.always then pass() else
        cute.when((tile:get() + 1):lt(n), pass)
      end
      tile:set(tile:get() + 2)
    end)
  end
end

describe("turns of two warps", function()
  local function opts() return {grid = 1, cluster = 1, block = 96} end

  it("end as they began", function()
    for n = 0, 5 do
      local o = cute.zeros({8}, cute.i32)
      clean(turns {}, opts(), o, n)
    end
  end)

  it("tell an arrival that nobody waits for", function()
    local o = cute.zeros({8}, cute.i32)
    for n = 1, 4 do
      tells("^%d+ barrier%-mismatch: the block ends with 32 of 64 threads at "
        .. "barrier %d: nobody waits for those who arrived$",
        turns {always = true}, opts(), o, n)
    end
  end)

  it("tell a wrong count", function()
    local o = cute.zeros({8}, cute.i32)
    local text, some = found(turns {count = true}, opts(), o, 4)
    assert.equal(SEEDS, some)
    assert.matches("a barrier for %d+ threads that others use for %d+", text)
  end)
end)
