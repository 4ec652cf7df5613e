-- Faults that people shipped (spec/shipped.lua): rings through shared memory,
-- phases of mbarriers, barriers of roles.
local cute = require "cute"
local shipped = require "spec.shipped"
local arch, cpasync = cute.arch, cute.nvgpu.cpasync
local pipeline = cute.pipeline
local Group, Agent = pipeline.CooperativeGroup, pipeline.Agent
local warpgroup = cute.nvgpu.warpgroup
local _ = cute._
local when = cute.when
local LOAD, STORE, line, thread0 =
  shipped.LOAD, shipped.STORE, shipped.line, shipped.thread0
local f32, i32, smem, barriers =
  shipped.f32, shipped.i32, shipped.smem, shipped.barriers
local run64 = shipped.run64
local CASES, case = shipped.cases()

-- ---- rings through shared memory ----

-- Two stages, loaded and stored by one thread: the refill waits for the store
-- of its own stage, not for that of the one before alone.
case("a refill behind wait_group(stages - 1) of the stage's own store",
  {block = 32}, {"race", "refill", "store"}, function(bad, at)
  return {f32(256), f32(256)}, function(x, y)
    local s, full = smem(128), barriers {1, 1}
    thread0(function()
      for t = 0, 3 do
        local i = t % 2
        if t >= 2 then
          arch.cp_async_bulk_wait_group(bad and t - 1 or 0, true)
        end
        arch.mbarrier_arrive_and_expect_tx(full + i, 256)
        local from, to = run64(x, t, s, i)
        if t >= 2 then
          at.refill = at.refill or line() + 1
          cute.copy(LOAD, from, to, {mbar_ptr = full + i})
        else
          cute.copy(LOAD, from, to, {mbar_ptr = full + i})
        end
        arch.mbarrier_wait(full + i, t // 2)
        local out, back = run64(s, i, y, t)
        at.store = line() + 1
        cute.copy(STORE, out, back)
        arch.cp_async_bulk_commit_group()
      end
      arch.cp_async_bulk_wait_group(0)
    end)
  end
end)

-- Groups are a thread's: lane 1 waits for lane 0's store.
case("a wait_group in another thread than the store's", {block = 32},
  {"race", "write", "store"}, function(bad, at)
  return {f32(64)}, function(y)
    local t, s = arch.thread_idx(), smem(64)
    s[t], s[t + 32] = 1, 1
    arch.fence_view_async_shared()
    arch.sync_warp()
    when(t:eq(0), function()
      local from, to = run64(s, 0, y)
      at.store = line() + 1
      cute.copy(STORE, from, to)
      arch.cp_async_bulk_commit_group()
    end)
    when(t:eq(bad and 1 or 0), function()
      arch.cp_async_bulk_wait_group(0, true)
    end)
    arch.sync_warp()
    at.write = line() + 1
    s[t] = 2
  end
end)

-- A buffer read by all warps, filled again behind the mbarrier that they
-- arrive at: reads and the copy are of two proxies.
case("ld.shared, an mbarrier, the refill, and no proxy fence", {block = 160},
  {"race", "refill", "read", note = true}, function(bad, at)
  return {f32(128), f32(128)}, function(x, y)
    local t, s = arch.thread_idx(), smem(64)
    local full = barriers {1, 1, 128}
    when(t:eq(128), function()
      for k = 0, 1 do
        if k == 1 then arch.mbarrier_wait(full + 2, 0) end
        if k == 1 and not bad then arch.fence_view_async_shared() end
        arch.mbarrier_arrive_and_expect_tx(full + k, 256)
        local from, to = run64(x, k, s)
        at.refill = line() + 1
        cute.copy(LOAD, from, to, {mbar_ptr = full + k})
      end
    end)
    when(t:lt(128), function()
      arch.mbarrier_wait(full, 0)
      at.read = line() + 1
      y[t] = s[t % 64]
      arch.mbarrier_arrive(full + 2)
    end)
    arch.mbarrier_wait(full + 1, 0)
    when(t:lt(64), function() y[t] = y[t] + s[t] end)
  end
end)

-- Row statistics ride in the stage that wgmma reads: the stage is handed back
-- behind wgmma's wait, the threads' own reads of it lack a fence.
case("statistics that threads read from a stage of wgmma's", {block = 160},
  {"race", "refill", "read", note = true}, function(bad, at)
  local mma = cute.make_tiled_mma(
    warpgroup.MmaF16BF16Op("bf16", "f32", {64, 64, 16}, "SMEM"))
  local rows = cute.tile_to_shape(warpgroup.make_smem_layout_atom("K_SW128",
    "bf16"), {64, 64})
  local load, cX = cpasync.make_tiled_tma_atom(
    cpasync.CopyBulkTensorTileG2SOp(), cute.zeros({64, 64}, cute.bf16), rows,
    {64, 64})
  return {load, cX, f32(64), cute.zeros({64, 64}, cute.f32)},
    function(a, c, stats, d)
    local tid = arch.thread_idx()
    local s = cute.make_smem_tensor(cute.bf16, rows, 1024)
    local lse = smem(64)
    local pipe = pipeline.PipelineTmaAsync {num_stages = 1,
      tx_count = a.tx_bytes + 256, producer_group = Group(Agent.Thread),
      consumer_group = Group(Agent.Warp, 4)}
    local ts, tg = cpasync.tma_partition(a, 0, cute.make_layout(1),
      cute.group_modes(s, 0, 2), cute.group_modes(cute.local_tile(c, {64, 64},
      {0, 0}), 0, 2))
    when(tid:eq(128), function()
      local write = pipe:make_producer_state()
      for k in cute.range(2) do  -- luacheck: ignore k
        pipe:producer_acquire(write)
        local full = pipe:producer_get_barrier(write)
        cute.copy(a, tg, ts, {tma_bar_ptr = full})
        local from, to = run64(stats, 0, lse)
        at.refill = line() + 1
        cute.copy(LOAD, from, to, {mbar_ptr = full})
        write:advance()
      end
    end)
    when(tid:lt(128), function()
      local read = pipe:make_consumer_state()
      local thr = mma:get_slice(tid)
      local acc = thr:partition_fragment_C(cute.make_layout {64, 64})
      mma:set("ACCUMULATE", false)
      for k in cute.range(2) do  -- luacheck: ignore k
        pipe:consumer_wait(read)
        warpgroup.fence()
        cute.gemm(mma, acc, mma:make_fragment_A(thr:partition_A(s)),
                  mma:make_fragment_B(thr:partition_B(s)), acc)
        warpgroup.commit_group()
        at.read = line() + 1
        local l = lse[tid % 64]
        warpgroup.wait_group(0)
        for i = 0, cute.size(acc) - 1 do acc[i] = acc[i] + l end
        if not bad then arch.fence_view_async_shared() end
        arch.sync_warp()
        pipe:consumer_release(read)
        read:advance()
      end
      cute.autovec_copy(acc, thr:partition_C(d))
    end)
  end
end)

-- A fence in a loop that some launches run zero times.
case("a proxy fence in a loop of no steps", {block = 64},
  {"race", "store", "zero"}, function(bad, at)
  return {f32(64), 0}, function(y, n)
    local t, s = arch.thread_idx(), smem(64)
    at.zero = line() + 1
    s[t] = 0
    for k in cute.range(n) do
      s[t] = s[t] + k:to(cute.f32)
      arch.fence_view_async_shared()
    end
    if not bad then arch.fence_view_async_shared() end
    arch.sync_threads()
    thread0(function()
      local from, to = run64(s, 0, y)
      at.store = line() + 1
      cute.copy(STORE, from, to)
      arch.cp_async_bulk_commit_group()
      arch.cp_async_bulk_wait_group(0)
    end)
  end
end)

-- The fence comes before the last of the stores.
case("a proxy fence in front of the stores", {block = 64},
  {"race", "store", "fill"}, function(bad, at)
  return {f32(64)}, function(y)
    local t, s = arch.thread_idx(), smem(64)
    if bad then arch.fence_view_async_shared() end
    at.fill = line() + 1
    s[t] = t:to(cute.f32)
    if not bad then arch.fence_view_async_shared() end
    arch.sync_threads()
    thread0(function()
      local from, to = run64(s, 0, y)
      at.store = line() + 1
      cute.copy(STORE, from, to)
      arch.cp_async_bulk_commit_group()
      arch.cp_async_bulk_wait_group(0)
    end)
  end
end)

-- Shared memory is zeroed, for the rest of a tile, and then loaded.
case("zeros by threads, then a load over them", {block = 64},
  {"race", "load", "zero"}, function(bad, at)
  return {f32(64), f32(64)}, function(x, y)
    local t, s = arch.thread_idx(), smem(64)
    local bar = barriers {1}
    at.zero = line() + 1
    s[t] = 0
    if not bad then arch.fence_view_async_shared() end
    arch.sync_threads()
    thread0(function()
      arch.mbarrier_arrive_and_expect_tx(bar, 256)
      local from, to = run64(x, 0, s)
      at.load = line() + 1
      cute.copy(LOAD, from, to, {mbar_ptr = bar})
    end)
    arch.mbarrier_wait(bar, 0)
    y[t] = s[t]
  end
end)

-- cp.async is of the threads' proxy: wgmma needs a fence behind its wait.
case("cp.async, its wait and a barrier, then wgmma", {block = 128},
  {"race", "mma", "copy"}, function(bad, at)
  local mma = cute.make_tiled_mma(
    warpgroup.MmaF16BF16Op("bf16", "f32", {64, 64, 16}, "SMEM"))
  local rows = cute.tile_to_shape(warpgroup.make_smem_layout_atom("K_SW128",
    "bf16"), {64, 64})
  local copy = cute.make_tiled_copy_tv(cute.make_copy_atom(cpasync.CopyG2SOp(),
    cute.bf16, {num_bits_per_copy = 128}), cute.make_layout({16, 8}, {8, 1}),
    cute.make_layout {1, 8})
  return {cute.zeros({64, 64}, cute.bf16), cute.zeros({64, 64}, cute.f32)},
    function(x, d)
    local tid = arch.thread_idx()
    local s = cute.make_smem_tensor(cute.bf16, rows, 1024)
    local part, thr = copy:get_slice(tid), mma:get_slice(tid)
    at.copy = line() + 1
    cute.copy(copy, part:partition_S(x), part:partition_D(s))
    arch.cp_async_commit_group()
    arch.cp_async_wait_group(0)
    if not bad then arch.fence_view_async_shared() end
    arch.sync_threads()
    local acc = thr:partition_fragment_C(cute.make_layout {64, 64})
    warpgroup.fence()
    mma:set("ACCUMULATE", false)
    at.mma = line() + 1
    cute.gemm(mma, acc, mma:make_fragment_A(thr:partition_A(s)),
              mma:make_fragment_B(thr:partition_B(s)), acc)
    warpgroup.commit_group()
    warpgroup.wait_group(0)
    cute.autovec_copy(acc, thr:partition_C(d))
  end
end)

-- ---- phases ----

-- A persistent block has three steps a tile in two stages, and begins each
-- tile with the states of the first.
case("states of a ring that begin anew with each tile", {block = 64},
  {"*", "*"}, function(bad)
  return {f32(384), f32(384)}, function(x, y)
    local tid = arch.thread_idx()
    local s = cute.make_smem_tensor(cute.f32, cute.make_layout {64, 2}, 128)
    local pipe = pipeline.PipelineTmaAsync {num_stages = 2, tx_count = 256,
      producer_group = Group(Agent.Thread),
      consumer_group = Group(Agent.Thread, 32)}
    when(tid:eq(32), function()
      local write = pipe:make_producer_state()
      for tile in cute.range(2) do
        for k in cute.range(3) do
          pipe:producer_acquire(write)
          local from, to = cpasync.group_bulk_copy_modes(
            cute.local_tile(x, {64}, {tile * 3 + k}), s(_, write.index))
          cute.copy(LOAD, from, to,
            {mbar_ptr = pipe:producer_get_barrier(write)})
          write:advance()
        end
      end
    end)
    when(tid:lt(32), function()
      local read = pipe:make_consumer_state()
      for tile in cute.range(2) do
        if bad then read.index, read.phase = 0, 0 end
        for k in cute.range(3) do
          pipe:consumer_wait(read)
          y[(tile * 3 + k) * 64 + tid] = s[{tid, read.index}]
          arch.fence_view_async_shared()
          pipe:consumer_release(read)
          read:advance()
        end
      end
    end)
  end
end)

-- try_wait gives up after a while: its answer counts.
case("a try_wait whose answer nobody looks at", {block = 64},
  {"async-in-flight", "read"}, function(bad, at)
  return {f32(64), f32(64)}, function(x, y)
    local t, s = arch.thread_idx(), smem(64)
    local bar = barriers {1}
    thread0(function()
      arch.mbarrier_arrive_and_expect_tx(bar, 256)
      local from, to = run64(x, 0, s)
      cute.copy(LOAD, from, to, {mbar_ptr = bar})
    end)
    local ok = arch.mbarrier_try_wait(bar, 0)
    if not bad then
      when(~ok, function() arch.mbarrier_wait(bar, 0) end)
    end
    at.read = line() + 1
    y[t] = s[t] + cute.where(ok, 1.0, 0.0)
    if bad then arch.mbarrier_wait(bar, 0) end
  end
end)

-- Elements where bytes are expected.
case("tx of elements, not bytes", {block = 64}, {"*", "read"},
  function(bad, at)
  return {f32(64), f32(64)}, function(x, y)
    local t, s = arch.thread_idx(), smem(64)
    local bar = barriers {1}
    thread0(function()
      arch.mbarrier_arrive_and_expect_tx(bar, bad and 64 or 256)
      local from, to = run64(x, 0, s)
      cute.copy(LOAD, from, to, {mbar_ptr = bar})
    end)
    at.read = line() + 1
    arch.mbarrier_wait(bar, 0)
    y[t] = s[t]
  end
end)

-- A tile beyond the end is not asked for, its bytes are expected.
case("bytes of a copy that a branch leaves out", {block = 64},
  {"deadlock", "wait"}, function(bad, at)
  return {f32(64), f32(64), 1}, function(x, y, n)
    local t, s = arch.thread_idx(), smem(128)
    local bar = barriers {1}
    thread0(function()
      arch.mbarrier_arrive_and_expect_tx(bar, bad and 512
        or cute.where(n:gt(1), 512, 256))
      for k = 0, 1 do
        when(cute.lt(k, n), function()
          local from, to = run64(x, 0, s, k)
          cute.copy(LOAD, from, to, {mbar_ptr = bar})
        end)
      end
    end)
    at.wait = line() + 1
    arch.mbarrier_wait(bar, 0)
    y[t] = s[t]
  end
end)

-- The loader goes through ceil(k / 2) tiles, the readers through k // 2.
case("one more tile is loaded than read", {block = 64},
  {"exited-block", "copy"}, function(bad, at)
  return {f32(256), f32(256), 7}, function(x, y, n)
    local tid = arch.thread_idx()
    local s = cute.make_smem_tensor(cute.f32, cute.make_layout {64, 2}, 128)
    local pipe = pipeline.PipelineTmaAsync {num_stages = 2, tx_count = 256,
      producer_group = Group(Agent.Thread),
      consumer_group = Group(Agent.Thread, 32)}
    when(tid:eq(32), function()
      local write = pipe:make_producer_state()
      for k in cute.range((n + 1) // 2) do
        pipe:producer_acquire(write)
        local from, to = cpasync.group_bulk_copy_modes(
          cute.local_tile(x, {64}, {k}), s(_, write.index))
        at.copy = line() + 1
        cute.copy(LOAD, from, to, {mbar_ptr = pipe:producer_get_barrier(write)})
        write:advance()
      end
    end)
    when(tid:lt(32), function()
      local read = pipe:make_consumer_state()
      for k in cute.range(bad and n // 2 or (n + 1) // 2) do
        pipe:consumer_wait(read)
        y[k * 64 + tid] = s[{tid, read.index}]
        arch.fence_view_async_shared()
        pipe:consumer_release(read)
        read:advance()
      end
    end)
  end
end)

-- ---- barriers of roles ----

-- Two warpgroups stage their tiles behind barriers of one number.
case("two warpgroups that share a barrier's number", {block = 256},
  {"*", "*"}, function(bad)
  return {f32(256)}, function(y)
    local t = arch.thread_idx()
    local s = smem(256)
    local group = t // 128
    for k in cute.range(3) do
      s[t] = t:to(cute.f32) + k:to(cute.f32)
      arch.barrier {barrier_id = bad and 1 or group + 1,
                    number_of_threads = 128}
      y[t] = s[group * 128 + (127 - t % 128)]
      arch.barrier {barrier_id = bad and 1 or group + 1,
                    number_of_threads = 128}
    end
  end
end)

-- Two warpgroups take turns by two barriers; the first turn must be given.
case("turns that nobody begins", {block = 256}, {"deadlock", "turn"},
  function(bad, at)
  return {f32(256)}, function(y)
    local t = arch.thread_idx()
    local group = t // 128
    if not bad then
      when(group:eq(1), function() arch.barrier_arrive(1, 256) end)
    end
    for k in cute.range(2) do
      at.turn = line() + 1
      arch.barrier {barrier_id = group + 1, number_of_threads = 256}
      y[t] = k:to(cute.f32)
      when(group:eq(0) | k:lt(1), function()
        arch.barrier_arrive(2 - group, 256)
      end)
    end
  end
end)

-- The tile of the next round is put where slow warps still read the last one.
case("a tile's number in shared memory, without a second barrier",
  {block = 64}, {"race", "put", "read"}, function(bad, at)
  return {i32(1), i32(64)}, function(counter, y)
    local t, s = arch.thread_idx(), smem(4, cute.i32)
    for _k = 1, 3 do  -- luacheck: ignore _k
      thread0(function()
        local ticket = arch.atomic_add(counter.iterator, 1)
        at.put = line() + 1
        s[0] = ticket
      end)
      arch.sync_threads()
      at.read = line() + 1
      y[t] = y[t] + s[0]
      if not bad then arch.sync_threads() end
    end
  end
end)

-- One buffer for two reductions over warps.
case("a second reduction in the buffer of the first", {block = 64},
  {"race", "second", "first"}, function(bad, at)
  return {f32(64), f32(64)}, function(x, y)
    local t, w, s = arch.thread_idx(), arch.warp_idx(), smem(2)
    local v = x[t]
    when(arch.lane_idx():eq(0), function() s[w] = v end)
    arch.sync_threads()
    at.first = line() + 1
    local top = cute.max(s[0], s[1])
    if not bad then arch.sync_threads() end
    when(arch.lane_idx():eq(0), function()
      at.second = line() + 1
      s[w] = v - top
    end)
    arch.sync_threads()
    y[t] = s[0] + s[1]
  end
end)

-- Thread 0 waits for its store, the others fill the buffer without meeting it.
case("a wait for the store in front of nobody's barrier", {block = 64},
  {"race", "fill", "store"}, function(bad, at)
  return {f32(128)}, function(y)
    local t, s = arch.thread_idx(), smem(64)
    for k = 0, 1 do
      if k == 1 then
        thread0(function() arch.cp_async_bulk_wait_group(0, true) end)
        if not bad then arch.sync_threads() end
      end
      at.fill = line() + 1
      s[t] = t:to(cute.f32)
      arch.fence_view_async_shared()
      arch.sync_threads()
      thread0(function()
        local from, to = run64(s, 0, y, k)
        at.store = line() + 1
        cute.copy(STORE, from, to)
        arch.cp_async_bulk_commit_group()
      end)
    end
    thread0(function() arch.cp_async_bulk_wait_group(0) end)
  end
end)

-- Two halves of a block, one of which frees the stage.
case("an empty barrier that counts one of two readers", {block = 96},
  {"*", "*"}, function(bad)
  return {f32(256), f32(256)}, function(x, y)
    local t, s = arch.thread_idx(), smem(64)
    local bar = barriers {1, bad and 1 or 2}
    when(t:eq(64), function()
      for k in cute.range(4) do
        arch.mbarrier_wait(bar + 1, (k + 1) % 2)
        arch.mbarrier_arrive_and_expect_tx(bar, 256)
        local from, to = cpasync.group_bulk_copy_modes(
          cute.local_tile(x, {64}, {k}), s)
        cute.copy(LOAD, from, to, {mbar_ptr = bar})
      end
    end)
    when(t:lt(64), function()
      for k in cute.range(4) do
        arch.mbarrier_wait(bar, k % 2)
        y[k * 64 + t] = s[t]
        arch.fence_view_async_shared()
        arch.sync_warp()
        when(arch.lane_idx():eq(0), function()
          if not bad then return arch.mbarrier_arrive(bar + 1) end
          when(arch.warp_idx():eq(0), function()
            arch.mbarrier_arrive(bar + 1)
          end)
        end)
      end
    end)
  end
end)

describe("a fault of a ring, a phase or a role", function()
  for _k, c in ipairs(CASES) do  -- luacheck: ignore _k
    it("is told: " .. c.name, function() assert.is_nil(shipped.untold(c)) end)
    it("is mended: " .. c.name, function() assert.is_nil(shipped.told(c)) end)
  end
end)
