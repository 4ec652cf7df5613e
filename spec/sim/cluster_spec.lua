-- Tests clusters in the simulator: blocks that run together, cluster barriers,
-- arrivals at another block's mbarriers, and blocks that exit. Also tests other
-- features of sm_90: register transfer between warps, overlapping launches,
-- named barriers of warps with the same role.
local cute = require "cute"
local seeds = require "spec.seeds"
local support = require "spec.support"
local arch = cute.arch

local SEEDS = seeds.COUNT

local function line() return debug.getinfo(2, "l").currentline end

local launch, found = seeds.with {grid = 4, cluster = 2, block = 64}

-- Asserts that each seed has reports, and that all reports match the
-- pattern.
local function tells(pattern, f, opts, ...)
  local text, some = found(f, opts, ...)
  assert.equal(SEEDS, some, text)
  for told in text:gmatch "[^\n]+" do assert.matches(pattern, told) end
end

local function clean(f, opts, ...) assert.equal("", (found(f, opts, ...))) end

---------------------------------------------------------------------------
-- The cluster's barrier and its end
---------------------------------------------------------------------------

-- Returns a kernel with a ring of stages, in which the blocks of a cluster
-- signal to each other that stages are free. `o` names parts to omit.
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

describe("a grid", function()
  it("has up to 2^27 blocks, which an estimate does not run", function()
    local call = cute.kernel("k", function(x)
      x[arch.thread_idx()] = 1
    end)(cute.zeros({32}, cute.i32))
    local function opts(...)
      return {grid = {...}, block = 32, device = "sim"}
    end
    for _, f in ipairs {"launch", "check"} do
      support.raises("a grid of (2147483647,65535,65535) blocks is too large: "
        .. "the simulator runs at most 134217728 blocks [bad-launch]",
        call[f], call, opts(2147483647, 65535, 65535))
      support.raises("blocks is too large", call[f], call, opts(1 << 26, 3))
      call[f](call, opts(1 << 27, 2, 0))
    end
    assert.is_true(call:estimate(opts(2147483647, 65535)).seconds > 0)
  end)
end)

describe("a cluster", function()
  it("runs together, up to 16 blocks and 256 warps #long", function()
    for _, how in ipairs {{}, {cluster = 4}, {grid = {2, 4}, cluster = {1, 4}},
        {grid = 16, cluster = 16}, {grid = 8, cluster = 8, block = 1024}} do
      clean(ring({}, {}), how)
    end
    support.raises("a cluster of 512 warps is too large: the simulator runs at "
      .. "most 256",
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
    local at = support.recorder()
    tells("^%d+ exited%-block: access to shared memory of block %(%d,0,0%), "
      .. "which may have exited: none of its threads waits for this access$",
      ring({no_tail = true}, at), {})
    assert.matches("^" .. at.arrive, (found(ring({no_tail = true}, {}), {})))
    -- A cluster barrier at the end prevents the fault, unless its arrival is
    -- relaxed.
    tells("exited%-block", ring({no_tail = true,
                                 meet = arch.cluster_arrive_relaxed}, {}), {})
    clean(ring({no_tail = true, meet = arch.cluster_arrive}, {}), {})
  end)

  it("meets at its barrier, without threads that have ended", function()
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
    assert.matches("2 warps wait %(warp 0, 1%) at the cluster barrier, where "
      .. "32 of 128 threads did not arrive", text)
    assert.matches("1 warp waits %(warp 0%) at barrier 1, where 32 threads "
      .. "arrived and 64 are needed", text)
  end)

  it("reaches no block beyond it", function()
    tells("write outside shared tensor 'bar': block 2 of a cluster of "
      .. "2",
      function(two)
      local bar = arch.alloc_smem(cute.i64, 1)
      cute.when(arch.thread_idx():eq(0), function()
        arch.mbarrier_init(bar, 1)
        arch.mbarrier_arrive(bar, two)
      end)
    end, {}, 2)
  end)

  it("names the block of a fault", function()
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

  it("race with blocks of other clusters in global memory", function()
    local o = cute.zeros({1}, cute.i32)
    local report = launch(function(out)
      local x, y = arch.block_idx()
      out[0] = x + 10 * y
    end, {grid = {2, 6}, cluster = {2, 3}, block = 32}, o)
    assert.equal(2, #report.reports)
    assert.matches("of another block with nothing that orders them at "
      .. "cluster scope", report.reports[1].message)
    local between = report.reports[2].message
    local y1, y2 = between:match(
      "block %(%d,(%d),0%) and write by block %(%d,(%d),0%)")
    assert.is_true(y1 // 3 ~= y2 // 3, between)
  end)
end)

---------------------------------------------------------------------------
-- Shared memory of other blocks
---------------------------------------------------------------------------

local function meet(relaxed)
  if relaxed then arch.cluster_arrive_relaxed() else arch.cluster_arrive() end
  arch.cluster_wait()
end

describe("shared memory of another block", function()
  -- Returns a kernel in which every thread writes to the next block's shared
  -- memory, and reads what the preceding block wrote into its own block.
  local function exchange(o)
    return function(out)
      local tid, rank = arch.thread_idx(), arch.block_idx_in_cluster()
      local ranks, n = arch.cluster_size(), arch.block_dim()
      local s = cute.make_smem_tensor(cute.i32, cute.make_layout {64})
      local peer = cute.make_tensor(
        arch.map_dsmem_ptr(s.iterator, (rank + 1) % ranks), s.layout)
      if not o.no_first then meet() end
      peer[tid] = rank * 100 + tid
      if o.fence then o.fence() end
      if not o.no_meet then meet(o.relaxed) end
      out[arch.block_idx() * n + tid] = s[n - 1 - tid]
    end
  end

  it("is written", function()
    for ranks = 1, 5 do
      for _, n in ipairs {1, 31, 64} do
        local o = cute.zeros({2 * ranks * n}, cute.i32)
        clean(exchange {}, {grid = 2 * ranks, cluster = ranks, block = n}, o)
        for b = 0, 2 * ranks - 1 do
          for t = 0, n - 1 do
            assert.equal((b + ranks - 1) % ranks * 100 + n - 1 - t,
                         o(b * n + t))
          end
        end
      end
    end
  end)

  it("is ordered by the cluster's barrier, unless that is relaxed", function()
    local o = cute.zeros({256}, cute.i32)
    local text, some = found(exchange {no_meet = true}, {}, o)
    assert.equal(SEEDS, some)
    assert.matches("uninitialised: read", text)
    text, some = found(exchange {relaxed = true}, {}, o)
    assert.equal(SEEDS, some)
    assert.matches("race: read after a write", text)
    assert.matches("exited%-block: ", text)
    clean(exchange {relaxed = true, fence = arch.fence_acq_rel_cluster}, {}, o)
    clean(exchange {relaxed = true, fence = arch.fence_acq_rel_gpu}, {}, o)
    text = found(exchange {relaxed = true, fence = arch.fence_acq_rel_cta}, {},
                 o)
    assert.matches("race: read after a write", text)
  end)

  it("is read only while its block exists", function()
    local function read(last)
      return function(out)
        local tid, rank = arch.thread_idx(), arch.block_idx_in_cluster()
        local s = cute.make_smem_tensor(cute.i32, cute.make_layout {64})
        local peer = arch.map_dsmem_ptr(s.iterator, 1 - rank)
        s[tid] = rank * 100 + tid
        meet()
        out[arch.block_idx() * 64 + tid] =
          cute.make_tensor(peer, s.layout)[63 - tid]
        if last then meet() end
      end
    end
    local o = cute.zeros({256}, cute.i32)
    clean(read(true), {}, o)
    for i = 0, 255 do
      assert.equal((1 - i // 64 % 2) * 100 + 63 - i % 64, o(i))
    end
    tells("exited%-block: access to shared memory of block", read(false), {}, o)
  end)

  it("may be overwritten after others read it only if ordered", function()
    local function again(ordered)
      return function(out)
        local tid, rank = arch.thread_idx(), arch.block_idx_in_cluster()
        local s = cute.make_smem_tensor(cute.i32, cute.make_layout {64})
        local peer = cute.make_tensor(
          arch.map_dsmem_ptr(s.iterator, 1 - rank), s.layout)
        s[tid] = tid
        meet()
        out[tid] = peer[tid]
        if ordered then meet() end
        s[tid] = 7
        meet()
      end
    end
    local o = cute.zeros({64}, cute.i32)
    clean(again(true), {grid = 2}, o)
    tells("race: %w+ after a %w+ by a thread of another block", again(false),
          {grid = 2}, o)
  end)

  it("is added to by atomics", function()
    local o = cute.zeros({4}, cute.i32)
    clean(function(out)
      local s = cute.make_smem_tensor(cute.i32, cute.make_layout {1})
      cute.when(arch.thread_idx():eq(0), function() s[0] = 0 end)
      meet()
      arch.atomic_add(arch.map_dsmem_ptr(s.iterator, 0), arch.lane_idx())
      meet()
      cute.when(arch.thread_idx():eq(0), function()
        out[arch.block_idx()] = s[0]
      end)
    end, {grid = 4, cluster = 4}, o)
    assert.equal(4 * 2 * 496, o(0))
    assert.equal(0, o(1))
  end)
end)

describe("shared memory of another block", function()
  -- Returns a kernel in which block 0 writes to block 1's shared memory and
  -- arrives at block 1's mbarrier.
  local function handed(arrives, waits)
    return function(out)
      local lane, rank = arch.lane_idx(), arch.block_idx_in_cluster()
      local bar = arch.alloc_smem(cute.i64, 1)
      local s = cute.make_smem_tensor(cute.i32, cute.make_layout {32})
      cute.when(lane:eq(0), function()
        arch.mbarrier_init(bar, 32)
        arch.mbarrier_init_fence()
      end)
      meet(true)
      cute.when(rank:eq(0), function()
        local peer = cute.make_tensor(arch.map_dsmem_ptr(s.iterator, 1),
                                      s.layout)
        peer[lane] = lane
        arch.mbarrier_arrive(bar, 1, 1, arrives)
      end, function()
        arch.mbarrier_wait(bar, 0, waits)
        out[lane] = s[31 - lane]
      end)
    end
  end

  it("is handed over by arrivals for the cluster, not for the block", function()
    local CTA, CLUSTER = {scope = "cta"}, {scope = "cluster"}
    local opts = {grid = 2, block = 32}
    local o = cute.zeros({32}, cute.i32)
    clean(handed(CLUSTER, CLUSTER), opts, o)
    for l = 0, 31 do assert.equal(31 - l, o(l)) end
    for _, case in ipairs {{CTA, CLUSTER}, {nil, CLUSTER}, {CLUSTER, CTA},
        {CLUSTER}, {{relaxed = true, scope = "cluster"}, CLUSTER}} do
      local text, some = found(handed(case[1], case[2]), opts, o)
      assert.equal(SEEDS, some)
      assert.matches("race: read after a write", text)
    end
  end)
end)

describe("data of a copy for another block", function()
  local by4 = cute.make_tiled_copy(cute.make_copy_atom(
    "SM80_CP_ASYNC_CACHEALWAYS", cute.f32, 128), cute.make_layout {32},
    cute.make_layout {4})
  local bulk = cute.make_copy_atom(cute.nvgpu.cpasync.CopyBulkG2SOp(), cute.f32)

  -- Ways to copy 128 elements: {number of arrivals that the mbarrier `bar`
  -- counts, function that copies}.
  local WAYS = {
    ["cp.async"] = {32, function(x, s, bar)
      local thr = by4:get_slice(arch.lane_idx())
      cute.copy(by4, thr:partition_S(x), thr:partition_D(s))
      arch.cp_async_mbarrier_arrive_noinc(bar)
    end},
    ["a group of cp.async"] = {32, function(x, s, bar)
      local thr = by4:get_slice(arch.lane_idx())
      cute.copy(by4, thr:partition_S(x), thr:partition_D(s))
      arch.cp_async_commit_group()
      arch.cp_async_wait_group(0)
      arch.mbarrier_arrive(bar)
    end},
    ["a bulk copy"] = {1, function(x, s, bar)
      local from, to = cute.nvgpu.cpasync.group_bulk_copy_modes(x, s)
      cute.when(arch.lane_idx():eq(0), function()
        arch.mbarrier_arrive_and_expect_tx(bar, 512)
        cute.copy(bulk, from, to, {mbar_ptr = bar})
      end)
    end},
  }

  -- Returns a kernel in which block 0 copies data, waits for the copy, and
  -- arrives at block 1's mbarrier. Block 1 waits there and reads the data.
  local function passed(way, how, at)
    return function(x, out)
      local lane, rank = arch.lane_idx(), arch.block_idx_in_cluster()
      local here, there = arch.alloc_smem(cute.i64, 1),
        arch.alloc_smem(cute.i64, 1)
      local s = cute.make_smem_tensor(cute.f32, cute.make_layout {128}, 128)
      cute.when(lane:eq(0), function()
        arch.mbarrier_init(here, way[1])
        arch.mbarrier_init(there, 32)
        arch.mbarrier_init_fence()
      end)
      arch.cluster_arrive()
      arch.cluster_wait()
      cute.when(rank:eq(0), function()
        way[2](x, s, here)
        arch.mbarrier_wait(here, 0)
        arch.mbarrier_arrive(there, 1, 1, how)
      end, function()
        arch.mbarrier_wait(there, 0, how)
        local peer = cute.make_tensor(arch.map_dsmem_ptr(s.iterator, 0),
                                      s.layout)
        at.read = line() + 1
        for k = 0, 3 do out[lane * 4 + k] = peer[lane * 4 + k] end
      end)
      arch.cluster_arrive()
      arch.cluster_wait()
    end
  end

  it("is handed over by arrivals for the cluster, not for the block", function()
    local opts, at = {grid = 2, block = 32}, support.recorder()
    local x = cute.zeros({128}, cute.f32)
    for i = 0, 127 do x[i] = i end
    for name, way in pairs(WAYS) do
      local y = cute.zeros({128}, cute.f32)
      clean(passed(way, {scope = "cluster"}, at), opts, x, y)
      for i = 0, 127 do assert.equal(i, y[i], name) end
      for _, how in ipairs {{scope = "cta"}, {}} do
        tells("^%d+ race: read after a write by ", passed(way, how, at), opts,
              x, y)
        assert.matches("^" .. at.read .. " ", (found(passed(way, how, {}),
                                                     opts, x, y)))
      end
    end
  end)
end)

describe("st.async", function()
  -- Returns a kernel of two blocks. In each block, half of the threads send
  -- their values to the other block by st.async. `o` has changes.
  local function send(o)
    return function(x, out)
      local tid, rank = arch.thread_idx(), arch.block_idx_in_cluster()
      local bar = arch.alloc_smem(cute.i64, 1)
      local s = cute.make_smem_tensor(cute.f32, cute.make_layout {256}, 16)
      cute.when(tid:eq(0), function()
        arch.mbarrier_init(bar, 1)
        arch.mbarrier_init_fence()
        if not o.late then
          arch.mbarrier_arrive_and_expect_tx(bar, o.bytes or 1024)
        end
      end)
      arch.cluster_arrive_relaxed()
      arch.cluster_wait()
      local v = {}
      for k = 0, 3 do v[k + 1] = x[(rank * 64 + tid) * 4 + k] end
      arch.store_async_dsmem(s.iterator + tid * 4, v, bar, 1 - rank)
      if o.late then
        cute.when(tid:eq(0), function()
          arch.mbarrier_arrive_and_expect_tx(bar, 1024)
        end)
      end
      if not o.no_wait then arch.mbarrier_wait(bar, 0) end
      if o.clobber then s[tid * 4] = 0.0 end
      if o.unread then return end
      for k = 0, 3 do out[(rank * 64 + tid) * 4 + k] = s[255 - tid * 4 - k] end
    end
  end
  local function data()
    local x = cute.zeros({512}, cute.f32)
    for i = 0, 511 do x[i] = i * 0.5 end
    return x, cute.zeros({512}, cute.f32)
  end

  it("brings values before or after their bytes are expected",
    function()
    for _, o in ipairs {{}, {late = true}} do
      local x, y = data()
      clean(send(o), {grid = 2}, x, y)
      for r = 0, 1 do
        for i = 0, 255 do
          assert.equal((1 - r) * 128 + (255 - i) * 0.5, y(r * 256 + i))
        end
      end
    end
  end)

  it("is in flight until a thread waits", function()
    local x, y = data()
    local text, some = found(send {no_wait = true}, {grid = 2}, x, y)
    assert.equal(SEEDS, some)
    assert.matches("async%-in%-flight", text)
    text, some = found(send {no_wait = true, unread = true}, {grid = 2}, x, y)
    assert.equal(SEEDS, some)
    assert.matches("exited%-block: ", text)
    text, some = found(send {no_wait = true, unread = true, clobber = true},
                       {grid = 2}, x, y)
    assert.equal(SEEDS, some)
    assert.matches("race: write after a write", text)
  end)

  it("needs exactly its number of expected bytes", function()
    local x, y = data()
    local text, some = found(send {bytes = 1040}, {grid = 2}, x, y)
    assert.equal(SEEDS, some)
    assert.matches("2 warps wait %(warp 0, 1%) at mbarrier 'bar'%[0%] for the "
      .. "end of phase 0 %(parity 0%), which lacks 16 bytes", text)
    text = found(send {bytes = 512}, {grid = 2}, x, y)
    assert.matches("async%-in%-flight", text)
  end)
end)

---------------------------------------------------------------------------
-- Start of a block
---------------------------------------------------------------------------

describe("shared memory of a block", function()
  local TOLD = "unstarted%-block: element %d+ of distributed shared tensor "
    .. "'there' of block %(%d,0,0%), which may not have started: no cluster "
    .. "barrier comes before this access$"
  local function meet_relaxed()
    arch.cluster_arrive_relaxed()
    arch.cluster_wait()
  end
  local TWO, OUT = {grid = 2}, cute.zeros({128}, cute.i32)
  -- Returns a kernel in which each thread accesses its element of shared memory
  -- in the other block.
  local function exchange(before, how)
    return function(out)
      local s = cute.make_smem_tensor(cute.i32, cute.make_layout {64}, 16)
      local tid, rank = arch.thread_idx(), arch.block_idx_in_cluster()
      if how == "atomic" then s[tid] = 0 end
      before()
      local there = cute.make_tensor(arch.map_dsmem_ptr(s.iterator, 1 - rank),
                                     s.layout)
      if how == "atomic" then
        arch.atomic_exch(there.iterator + tid, tid, {sem = "relaxed",
                                                     scope = "cluster"})
      else
        there[tid] = tid
      end
      meet()
      out[tid + 64 * rank] = s[tid]
    end
  end

  it("does not exist before the block runs", function()
    tells(TOLD, exchange(function() end), TWO, OUT)
    tells(TOLD, exchange(arch.sync_threads), TWO, OUT)
    local text = found(exchange(function() end, "atomic"), TWO, OUT)
    assert.matches("unstarted%-block: element %d+ of distributed shared ", text)
  end)

  it("exists after the cluster's barrier, relaxed or not", function()
    clean(exchange(meet), TWO, OUT)
    clean(exchange(meet_relaxed), TWO, OUT)
    clean(exchange(meet, "atomic"), TWO, OUT)
  end)

  -- Returns a kernel in which only warp 0 waits at the cluster barrier. The
  -- other warps then wait for warp 0 in hear().
  local function by_one(hear, relaxed)
    return exchange(function()
      if relaxed then arch.cluster_arrive_relaxed() else
        arch.cluster_arrive()
      end
      cute.when(arch.warp_idx():eq(0), arch.cluster_wait)
      hear()
      cute.when(arch.warp_idx():ne(0), arch.cluster_wait)
    end)
  end

  it("exists for threads that meet one from the cluster's barrier", function()
    clean(by_one(arch.sync_threads), TWO, OUT)
    clean(by_one(arch.sync_threads, true), TWO, OUT)
  end)

  it("exists for readers of a value that the block released", function()
    local function flag(sem)
      return function(f, out)
        local s = cute.make_smem_tensor(cute.i32, cute.make_layout {2}, 16)
        local tid, rank = arch.thread_idx(), arch.block_idx_in_cluster()
        local there = cute.make_tensor(
          arch.map_dsmem_ptr(s.iterator, 1 - rank), s.layout)
        local function at(k) return f.iterator + k end
        cute.when(tid:eq(0), function()
          arch.store(at(rank), 1, {sem = sem and "release" or "relaxed",
                                   scope = "gpu"})
          cute.loop(function()
            return arch.load(at(1 - rank), cute.i32, {
              sem = sem and "acquire" or "relaxed", scope = "gpu"}):eq(0)
          end, function() end)
          there[0] = 1
        end)
        meet()
        out[rank] = s[0]
      end
    end
    local report = launch(flag(true), TWO, cute.zeros({2}, cute.i32), OUT)
    assert.is_true(report.ok, tostring(report))
    report = launch(flag(false), TWO, cute.zeros({2}, cute.i32), OUT)
    assert.matches("unstarted%-block", tostring(report))
  end)
end)

---------------------------------------------------------------------------
-- Registers
---------------------------------------------------------------------------

describe("setmaxnreg", function()
  -- Returns a kernel of three warpgroups. The first warpgroup releases
  -- registers, and the other two take them.
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

  it("distributes the block's registers", function()
    clean(roles(24, 240), ONE)
    clean(roles(40, 232), ONE)
  end)

  it("waits for registers that never come", function()
    tells("^%d+ deadlock: no warp can go on: %d warps? waits? %([%w, ]+%) at "
      .. "setmaxnreg for 240 registers a thread: these threads have 168, and "
      .. "other warps released %d+ a thread", roles(32, 240), ONE)
    tells("these threads have 168, and other warps released 0 a "
      .. "thread", roles(nil, 232),
          ONE)
  end)

  it("is one instruction of all four warps", function()
    local function some(n, f, other)
      return function() cute.when(arch.warp_idx():lt(n), f, other) end
    end
    local function dec(n)
      return function() arch.setmaxregister_decrease(n) end
    end
    tells("registers: warp 2 exited without executing the setmaxnreg for 40 "
      .. "registers that warp 0 executed: all warps of a warpgroup %(0 to 3%) "
      .. "must execute it$",
      some(2, dec(40)), ONE)
    tells("registers: warp 6 exited without .* warp 4 executed: all warps of a "
      .. "warpgroup %(4 to 7%) must execute it$", some(6, dec(40)), ONE)
    tells("registers: warp %d executes setmaxnreg for %d+ registers and warp "
      .. "%d another one, for %d+: all warps of a warpgroup %(0 to 3%) must "
      .. "execute the same one$", some(2, dec(24), dec(40)),
      {grid = 1, cluster = 1, block = 128})
    tells("registers: warp %d executes setmaxnreg for 40 registers and warp %d "
      .. "another one, for 40: ", some(2, dec(40), dec(40)),
      {grid = 1, cluster = 1, block = 128})
    clean(some(4, dec(40), dec(32)),
          {grid = 1, cluster = 1, block = 256})
    local all = launch(function()
      cute.when(arch.warp_idx():lt(2), dec(24))
      cute.when(arch.warp_idx():ge(4), function()
        arch.setmaxregister_increase(240)
      end)
    end, ONE)
    assert.equal("registers deadlock",
                 all.reports[1].kind .. " " .. all.reports[2].kind)
  end)

  it("follows the preceding one of all four warps", function()
    local function twice(between, first)
      return function()
        if first then cute.when(arch.warp_idx():lt(4), first) end
        arch.setmaxregister_decrease(40)
        between()
        arch.setmaxregister_increase(64)
      end
    end
    local function group()
      arch.barrier {barrier_id = 1 + arch.warp_idx() // 4,
                    number_of_threads = 128}
    end
    local TWO = {grid = 1, cluster = 1, block = 256}
    clean(twice(arch.sync_threads), TWO)
    clean(twice(group), TWO)
    clean(function()
      arch.setmaxregister_decrease(40)
      arch.setmaxregister_decrease(40)
    end, TWO)
    tells("registers: warp %d executes its next setmaxnreg with nothing that "
      .. "orders it after warp %d's previous one: warps of a warpgroup "
      .. "%(%d to %d%) must synchronize in between$", twice(arch.sync_warp),
      TWO)
    tells("registers: warp %d executes its next setmaxnreg with nothing ",
          twice(group, function() arch.setmaxregister_decrease(56) end), TWO)
  end)

  it("increases or decreases, as its variant says", function()
    tells("registers: setmaxnreg.dec cannot change 168 registers a "
      .. "thread to 200", function() arch.setmaxregister_decrease(200) end, ONE)
    tells("registers: setmaxnreg.inc cannot change 168 registers a "
      .. "thread to 160", function()
        cute.when(arch.warp_idx():lt(4), function()
          arch.setmaxregister_increase(160)
        end, function() arch.setmaxregister_increase(168) end)
      end, ONE)
  end)

  -- The numbers are those of `ptxas -v` of CUDA 13.0, which prints "Used 240
  -- registers" and "Used 168 registers".
  it("starts with no more registers than the largest increase", function()
    local function two(n)
      return function()
        cute.when(arch.warp_idx():lt(4), function()
          arch.setmaxregister_decrease(24)
        end, function() arch.setmaxregister_increase(n) end)
      end
    end
    local TWO = {grid = 1, cluster = 1, block = 256}
    clean(two(240), TWO)
    clean(two(168), TWO)
  end)
end)

---------------------------------------------------------------------------
-- Launches that overlap
---------------------------------------------------------------------------

describe("a launch that may begin before the preceding one ends", function()
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

  it("waits before it uses what the preceding one writes", function()
    local x, y = cute.zeros({64}, cute.i32), cute.zeros({64}, cute.i32)
    assert.is_true(after(fill, copy(true, true), true)(x, y).ok)
    assert.is_true(after(fill, copy(true, false), true)(x, y).ok)
    assert.is_true(after(fill, copy(false), false)(x, y).ok)
    local report = after(fill, copy(false), true)(x, y)
    assert.equal(1, #report.reports)
    assert.equal("dependent-launch", report.reports[1].kind)
    assert.matches("^read of memory that the previous launch writes, with no "
      .. "griddepcontrol_wait%(%) in between: element %d+ of global tensor 'x'",
      report.reports[1].message)
  end)

  it("waits before it writes what the preceding one reads", function()
    local x, y = cute.ones({64}, cute.i32), cute.zeros({64}, cute.i32)
    launch(copy(false), {grid = 1, cluster = 1}, x, y)
    local report = launch(function(a) a[arch.thread_idx()] = 2 end,
      {grid = 1, cluster = 1, pdl = true}, x)
    assert.matches("^write of memory that the previous launch reads, with no "
      .. "griddepcontrol_wait%(%) in between: element %d+ of global tensor 'a'",
      report.reports[1].message)
    launch(copy(false), {grid = 1, cluster = 1}, x, y)
    local z = cute.zeros({64}, cute.i32)
    assert.is_true(launch(copy(false), {grid = 1, cluster = 1, pdl = true}, x,
      z).ok)
  end)

  it("waits before it writes memory that a graph reuses", function()
    local where = {device = "sim"}
    local x, y = cute.ones({64}, cute.i32), cute.zeros({64}, cute.i32)
    local function try(wait)
      local one = cute.kernel(copy(false))
      local two = cute.kernel(copy(wait, true))
      local g = cute.graph(function()
        local a = cute.full({64}, 3, cute.i32, where)
        one(a, y):launch {grid = 1, block = 64, device = "sim:sm_90a"}
        a:close()
        local b = cute.empty({64}, cute.i32, where)
        two(x, b):launch {grid = 1, block = 64, device = "sim:sm_90a",
                          pdl = true}
      end, where)
      return pcall(g.launch, g)
    end
    assert.is_true(try(true))
    local ok, message = try(false)
    assert.is_false(ok)
    assert.matches("write of memory that the previous launch reads", message)
  end)

  -- Returns a kernel that writes `to` and permits the next launch to start. It
  -- does so before its own wait ("ahead"), only in its first block ("one"), or
  -- after the wait.
  local function between(how)
    return function(to)
      local let = arch.griddepcontrol_launch_dependents
      if how == "ahead" then let()
      elseif how == "one" then
        cute.when(arch.block_idx():eq(0), let)
      end
      arch.griddepcontrol_wait()
      if how == "behind" then let() end
      to[arch.block_idx() * 64 + arch.thread_idx()] = 2
    end
  end
  local function third(how, wait)
    local x, y = cute.zeros({64}, cute.i32), cute.zeros({128}, cute.i32)
    local z = cute.zeros({64}, cute.i32)
    launch(fill, {grid = 1, cluster = 1}, x)
    assert.is_true(launch(between(how), {grid = 2, cluster = 1, pdl = true},
                          y).ok)
    return launch(copy(wait, true), {grid = 1, cluster = 1, pdl = true}, x, z)
  end

  it("waits for earlier launches, if the last one triggers early",
     function()
    for _, how in ipairs {"behind", "one"} do
      assert.is_true(third(how, false).ok, how)
    end
    assert.is_true(third("ahead", true).ok)
    local report = third("ahead", false)
    assert.equal(1, #report.reports)
    assert.matches("^read of memory that an earlier launch, which the previous "
      .. "launch had not waited for when it let this launch start, writes, "
      .. "with no griddepcontrol_wait%(%) in between: element %d+ of global "
      .. "tensor 'x'", report.reports[1].message)
  end)
end)

---------------------------------------------------------------------------
-- A buffer that is reused
---------------------------------------------------------------------------

describe("a staging buffer in a loop", function()
  local function loop(o)
    return function(out)
      local tid = arch.thread_idx()
      local s = cute.make_smem_tensor(cute.i32, cute.make_layout {64})
      for k in cute.range(4) do
        s[tid] = tid + k
        arch.barrier(1, 64)
        cute.when(arch.warp_idx():eq(0), function()
          out[tid] = out[tid] + s[tid] + s[63 - tid]
        end)
        if not o.once then arch.barrier(2, 64) end
      end
    end
  end

  it("needs a barrier after its last use, too", function()
    local opts, o = {grid = 1, cluster = 1}, cute.zeros({32}, cute.i32)
    clean(loop {}, opts, o)
    tells("^%d+ race: %w+ after a %w+ by another warp", loop {once = true},
          opts, o)
  end)
end)

---------------------------------------------------------------------------
-- Alternating roles
---------------------------------------------------------------------------

-- Returns a kernel of two warps that process tiles alternately. Each warp waits
-- at its own mbarrier, and arrives at the other warp's mbarrier.
local function turns(o)
  return function(out, n)
    local w = arch.warp_idx()
    local tile = cute.var(w)
    cute.return_if(w:eq(2))  -- warp 2 exits at once
    cute.loop(function() return tile:get():lt(n) end, function()
      cute.when(tile:get():gt(0), function()
        arch.barrier(w + 1, o.count and 96 or 64)
      end)
      cute.when(arch.lane_idx():eq(0), function()
        out[tile:get()] = out[tile:get()] + 1
      end)
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

  it("report an arrival that no thread waits for", function()
    local o = cute.zeros({8}, cute.i32)
    for n = 1, 4 do
      tells("^%d+ barrier%-mismatch: the block exits with 32 of 64 threads "
        .. "arrived at barrier %d, where no thread waits for them$",
        turns {always = true}, opts(), o, n)
    end
  end)

  it("report a wrong count", function()
    local o = cute.zeros({8}, cute.i32)
    local text, some = found(turns {count = true}, opts(), o, 4)
    assert.equal(SEEDS, some)
    assert.matches("a barrier for %d+ threads that other warps use for %d+",
      text)
  end)
end)
-- SPDX-License-Identifier: MIT
