-- Faults that people shipped (spec/shipped.lua): global memory, clusters,
-- tensor maps, launches, and other ways to be early, late or elsewhere.
local cute = require "cute"
local shipped = require "spec.shipped"
local arch, cpasync = cute.arch, cute.nvgpu.cpasync
local warpgroup = cute.nvgpu.warpgroup
local _ = cute._
local when = cute.when
local LOAD, STORE, SEND, line =
  shipped.LOAD, shipped.STORE, shipped.SEND, shipped.line
local thread0, meet, f32, i32 =
  shipped.thread0, shipped.meet, shipped.f32, shipped.i32
local smem, barriers, run64 = shipped.smem, shipped.barriers, shipped.run64
local CLUSTER = {scope = "cluster"}
local CASES, case = shipped.cases()

-- ---- global memory ----

-- A part of a sum goes out by a bulk store; the flag is stored when its source
-- was read, not when it is there.
case("a flag behind wait_group.read", {grid = 2, block = 64},
  {"*", "*"}, function(bad)
  return {f32(64), f32(64), i32(1)}, function(part, y, flag)
    local t, s = arch.thread_idx(), smem(64)
    when(arch.block_idx():eq(0), function()
      s[t] = t:to(cute.f32)
      arch.fence_view_async_shared()
      arch.sync_threads()
      thread0(function()
        local from, to = run64(s, 0, part)
        cute.copy(STORE, from, to)
        arch.cp_async_bulk_commit_group()
        arch.cp_async_bulk_wait_group(0, bad)
        arch.fence_proxy "async.global"
        arch.store(flag.iterator, 1, {sem = "release", scope = "gpu"})
      end)
    end, function()
      thread0(function() shipped.await(flag) end)
      arch.sync_threads()
      y[t] = part[t]
    end)
  end
end)

-- Who waits for the store and who stores the flag are two threads.
case("a flag by another thread than the one that waits", {grid = 2,
  block = 64}, {"*", "*"}, function(bad)
  return {f32(64), f32(64), i32(1)}, function(part, y, flag)
    local t, s = arch.thread_idx(), smem(64)
    when(arch.block_idx():eq(0), function()
      s[t] = t:to(cute.f32)
      arch.fence_view_async_shared()
      arch.sync_threads()
      thread0(function()
        local from, to = run64(s, 0, part)
        cute.copy(STORE, from, to)
        arch.cp_async_bulk_commit_group()
        arch.cp_async_bulk_wait_group(0)
      end)
      if not bad then arch.sync_threads() end
      when(t:eq(32), function()
        arch.store(flag.iterator, 1, {sem = "release", scope = "gpu"})
      end)
    end, function()
      thread0(function() shipped.await(flag) end)
      arch.sync_threads()
      y[t] = part[t]
    end)
  end
end)

-- A block reads by a bulk load what another one stored, behind its flag.
case("a bulk load behind a flag, without a proxy fence", {grid = 2,
  block = 64}, {"*", "*"}, function(bad)
  return {f32(64), f32(64), i32(1)}, function(part, y, flag)
    local t, s = arch.thread_idx(), smem(64)
    local bar = barriers {1}
    when(arch.block_idx():eq(0), function()
      part[t] = t:to(cute.f32)
      arch.sync_threads()
      thread0(function()
        arch.store(flag.iterator, 1, {sem = "release", scope = "gpu"})
      end)
    end, function()
      thread0(function()
        shipped.await(flag)
        if not bad then arch.fence_proxy "async.global" end
        arch.mbarrier_arrive_and_expect_tx(bar, 256)
        local from, to = run64(part, 0, s)
        cute.copy(LOAD, from, to, {mbar_ptr = bar})
      end)
      arch.mbarrier_wait(bar, 0)
      y[t] = s[t]
    end)
  end
end)

-- The semaphore of a split-K tile goes up by a relaxed atomic.
case("a semaphore that a relaxed atomic raises", {grid = 2, block = 64},
  {"block-race", "read", "write"}, function(bad, at)
  return {f32(64), i32(1)}, function(sum, turn)
    local t, b = arch.thread_idx(), arch.block_idx()
    thread0(function() shipped.await(turn, b) end)
    arch.sync_threads()
    at.read, at.write = line() + 1, line() + 1
    sum[t] = sum[t] + 1
    arch.sync_threads()
    thread0(function()
      arch.atomic_add(turn.iterator, 1, {sem = bad and "relaxed" or "release",
                                         scope = "gpu"})
    end)
  end
end)

-- A block's own output, read again while the store is under way.
case("a generic read of what the block's bulk store writes", {block = 64},
  {"async-in-flight", "read", "store"}, function(bad, at)
  return {f32(64), f32(64)}, function(y, z)
    local t, s = arch.thread_idx(), smem(64)
    s[t] = 1
    arch.fence_view_async_shared()
    arch.sync_threads()
    thread0(function()
      local from, to = run64(s, 0, y)
      at.store = line() + 1
      cute.copy(STORE, from, to)
      arch.cp_async_bulk_commit_group()
      arch.cp_async_bulk_wait_group(0, bad)
    end)
    arch.sync_threads()
    at.read = line() + 1
    z[t] = y[t]
  end
end)

-- ---- clusters ----

-- A ring through the next block's memory: who sends waits until that was read.
case("a peer's buffer filled again before it was read", {grid = 2,
  cluster = 2, block = 32}, {"*", "*"}, function(bad)
  return {f32(64)}, function(y)
    local t, rank = arch.thread_idx(), arch.block_idx_in_cluster()
    local s, bar = smem(32), barriers({1, 32}, true)
    for k = 0, 1 do
      if k == 1 and not bad then
        arch.mbarrier_wait(bar + 1, 0, CLUSTER)
      end
      thread0(function() arch.mbarrier_arrive_and_expect_tx(bar, 128) end)
      arch.store_async_dsmem(s.iterator + t, t:to(cute.f32), bar, 1 - rank)
      arch.mbarrier_wait(bar, k)
      y[rank * 32 + t] = s[31 - t]
      arch.sync_warp()
      if k == 0 then arch.mbarrier_arrive(bar + 1, 1 - rank, 1, CLUSTER) end
    end
    meet()
  end
end)

-- Bytes are sent to the peer, the copy tells the sender's mbarrier.
case("a copy to the peer of more bytes than it expects", {grid = 2,
  cluster = 2, block = 32}, {"*", "*"}, function(bad)
  return {f32(128)}, function(y)
    local t, rank = arch.thread_idx(), arch.block_idx_in_cluster()
    local s, d, bar = smem(64), smem(64), barriers({1}, true)
    s[t], s[t + 32] = 1, 2
    arch.fence_view_async_shared()
    arch.sync_warp()
    thread0(function()
      arch.mbarrier_arrive_and_expect_tx(bar, bad and 128 or 256)
      local from, to = cpasync.group_bulk_copy_modes(s, d)
      cute.copy(SEND, from, to, {mbar_ptr = bar, cta_rank = 1 - rank})
    end)
    arch.mbarrier_wait(bar, 0)
    y[rank * 64 + t] = d[t + 32]
    meet()
  end
end)

-- Sums by atomics in block 0's memory, read behind a relaxed barrier.
case("a sum by the cluster's atomics behind a relaxed barrier", {grid = 2,
  cluster = 2, block = 32}, {"race", "read", "add"}, function(bad, at)
  return {i32(1)}, function(y)
    local t, s = arch.thread_idx(), smem(1, cute.i32)
    thread0(function() s[0] = 0 end)
    meet()
    at.add = line() + 1
    arch.atomic_add(arch.map_dsmem_ptr(s.iterator, 0), t)
    if bad then arch.cluster_arrive_relaxed() else arch.cluster_arrive() end
    arch.cluster_wait()
    when(t:eq(0) & arch.block_idx():eq(0), function()
      at.read = line() + 1
      y[0] = s[0]
    end)
  end
end)

-- Of two blocks one has no tile and leaves; the other multicasts to both.
case("a block without work that leaves a multicast's cluster", {grid = 2,
  cluster = 2, block = 32}, {"*", "*"}, function(bad)
  return {f32(64), f32(64), 1}, function(x, y, n)
    local t, b = arch.thread_idx(), arch.block_idx()
    local s, bar = smem(64), barriers({1}, true)
    local multicast = cute.make_copy_atom(cpasync.CopyBulkG2SMulticastOp(),
      cute.f32)
    local function work()
      thread0(function() arch.mbarrier_arrive_and_expect_tx(bar, 256) end)
      when(b:eq(0), function()
        thread0(function()
          local from, to = run64(x, 0, s)
          cute.copy(multicast, from, to, {mbar_ptr = bar, mcast_mask = 3})
        end)
      end)
      arch.mbarrier_wait(bar, 0)
      y[t] = s[t]
    end
    if bad then when(b:lt(n), work) else work() end
    if bad then when(b:lt(n), function() y[t] = s[t] end) end
  end
end)

-- Bytes that a peer multicasts here are expected, too.
case("a multicast whose bytes one of two blocks expects", {grid = 2,
  cluster = 2, block = 32}, {"*", "*"}, function(bad)
  return {f32(128), f32(128)}, function(x, y)
    local t, rank = arch.thread_idx(), arch.block_idx_in_cluster()
    local s, bar = smem(128), barriers({1}, true)
    local multicast = cute.make_copy_atom(cpasync.CopyBulkG2SMulticastOp(),
      cute.f32)
    thread0(function()
      arch.mbarrier_arrive_and_expect_tx(bar, bad and 256 or 512)
      local from, to = cpasync.group_bulk_copy_modes(
        cute.local_tile(x, {64}, {rank}), cute.local_tile(s, {64}, {rank}))
      cute.copy(multicast, from, to, {mbar_ptr = bar, mcast_mask = 3})
    end)
    arch.mbarrier_wait(bar, 0)
    y[rank * 64 + t] = s[t] + s[64 + t]
    meet()
  end
end)

-- ---- tensor maps, launches, registers ----

-- A map is made again for each group; its acquire stands in front of the loop.
case("one acquire of a map that changes in a loop", {block = 32},
  {"tensor-map", "copy"}, function(bad, at)
  local layout = cute.make_layout({32, 16}, {16, 1})
  local load, cX = cpasync.make_tiled_tma_atom(
    cpasync.CopyBulkTensorTileG2SOp(), cute.zeros({32, 16}, cute.f32), layout,
    {32, 16})
  return {load, cX, cute.zeros({32, 16}, cute.f32), cute.zeros({16}, cute.i64),
    f32(64)}, function(a, c, other, map, y)
    local t, bar = arch.thread_idx(), barriers {1}
    local s = cute.make_smem_tensor(cute.f32, layout, 128)
    local ts, tg = cpasync.tma_partition(a, 0, cute.make_layout(1),
      cute.group_modes(s, 0, 2), cute.zipped_divide(c, {32, 16}))
    for k = 0, 1 do
      thread0(function()
        cpasync.copy_tensormap(a, map)
        if k == 1 then cpasync.update_tma_descriptor(a, other, map) end
        cpasync.fence_tma_desc_release()
      end)
      arch.sync_warp()
      if k == 0 or not bad then cpasync.fence_tma_desc_acquire(map) end
      thread0(function()
        arch.mbarrier_arrive_and_expect_tx(bar, a.tx_bytes)
        at.copy = line() + 1
        cute.copy(a, tg(_, 0), ts, {tma_bar_ptr = bar, tma_desc_ptr = map})
      end)
      arch.mbarrier_wait(bar, k)
      y[k * 32 + t] = s[{t, 0}]
      arch.fence_view_async_shared()
      arch.sync_warp()
    end
  end
end)

-- A warp that loads waits for the launch in front, the others read, too.
case("griddepcontrol_wait in one warp, reads in another", {block = 64,
  pdl = true, before = function(x)
    cute.kernel("front", function(a)
      a[arch.thread_idx()] = 1
    end)(x):launch {grid = 1, block = 64, device = "sim:sm_90a"}
  end}, {"dependent-launch", "read"}, function(bad, at)
  return {f32(64), f32(64)}, function(x, y)
    local t = arch.thread_idx()
    when(arch.warp_idx():eq(0), arch.griddepcontrol_wait)
    if not bad then arch.sync_threads() end
    at.read = line() + 1
    y[t] = x[t]
  end
end)

-- The loader's warps give registers back in a branch that one of them misses.
case("setmaxnreg in a branch for three warps of four", {block = 128},
  {"registers", "*"}, function(bad)
  return {f32(128)}, function(y)
    when(arch.warp_idx():lt(bad and 3 or 4), function()
      arch.setmaxregister_decrease(40)
    end)
    y[arch.thread_idx()] = 1
  end
end)

-- ---- other ways to be early, late or elsewhere ----

-- The copy goes to one stage and tells the mbarrier of the next.
case("a copy that tells the next stage's mbarrier", {block = 64},
  {"*", "copy"}, function(bad, at)
  return {f32(128), f32(128)}, function(x, y)
    local t, s, full = arch.thread_idx(), smem(128), barriers {1, 1}
    for i = 0, 1 do
      thread0(function()
        arch.mbarrier_arrive_and_expect_tx(full + i, 256)
        local from, to = run64(x, i, s, i)
        at.copy = line() + 1
        cute.copy(LOAD, from, to, {mbar_ptr = full + (bad and 1 - i or i)})
      end)
    end
    for i = 0, 1 do
      arch.mbarrier_wait(full + i, 0)
      y[i * 64 + t] = s[i * 64 + t]
      if i == 0 and bad then s[64 + t] = 0 end
    end
  end
end)

-- The prologue fills all stages, the loop the first one again at once.
case("a loop that fills the prologue's stage at once", {block = 64},
  {"race", "refill", "read"}, function(bad, at)
  return {f32(192), f32(192)}, function(x, y)
    local t, s, full = arch.thread_idx(), smem(128), barriers {1, 1}
    local function ask(k)
      arch.mbarrier_arrive_and_expect_tx(full + k % 2, 256)
      local from, to = run64(x, k, s, k % 2)
      at.refill = line() + 1
      cute.copy(LOAD, from, to, {mbar_ptr = full + k % 2})
    end
    thread0(function() ask(0) ask(1) end)
    for k = 0, 2 do
      arch.mbarrier_wait(full + k % 2, k // 2)
      at.read = line() + 1
      y[k * 64 + t] = s[k % 2 * 64 + t]
      if k == 0 and not bad then
        arch.fence_view_async_shared()
        arch.sync_threads()
      end
      if k == 0 then thread0(function() ask(2) end) end
    end
  end
end)

-- ldmatrix is a thread's read, too.
case("ldmatrix from a stage, then its refill", {block = 32},
  {"race", "refill", "read", note = true}, function(bad, at)
  local rows = cute.make_layout({16, 16}, {16, 1})
  return {cute.zeros({512}, cute.f16), cute.zeros({512}, cute.f16)},
    function(x, y)
    local t, bar = arch.thread_idx(), barriers {1}
    local s = cute.make_smem_tensor(cute.f16, rows, 128)
    local load = cute.make_copy_atom(cpasync.CopyBulkG2SOp(), cute.f16)
    local ldsm = cute.make_copy_atom("SM75_U32x4_LDSM_N", cute.f16)
    local flat = cute.make_tensor(s.iterator, cute.make_layout(256))
    for k = 0, 1 do
      thread0(function()
        if k == 1 and not bad then arch.fence_view_async_shared() end
        arch.mbarrier_arrive_and_expect_tx(bar, 512)
        local from, to = cpasync.group_bulk_copy_modes(
          cute.local_tile(x, {256}, {k}), flat)
        at.refill = line() + 1
        cute.copy(load, from, to, {mbar_ptr = bar})
      end)
      arch.mbarrier_wait(bar, k)
      local got = cute.make_rmem_tensor(8, cute.f16)
      local row = cute.make_tensor(s.iterator + t % 16 * 16 + t // 16 * 8,
                                   cute.make_layout(8))
      at.read = line() + 1
      cute.copy(ldsm, row, got)
      for i = 0, 7 do y[k * 256 + t * 8 + i] = got[i] end
      arch.sync_warp()
    end
  end
end)

-- Two warpgroups multiply from one stage; the first one hands it back.
case("a stage that one of two warpgroups hands back", {block = 288},
  {"race", "refill", "mma"}, function(bad, at)
  local mma = cute.make_tiled_mma(
    warpgroup.MmaF16BF16Op("bf16", "f32", {64, 64, 16}, "SMEM"))
  local rows = cute.tile_to_shape(warpgroup.make_smem_layout_atom("K_SW128",
    "bf16"), {64, 64})
  local load, cX = cpasync.make_tiled_tma_atom(
    cpasync.CopyBulkTensorTileG2SOp(), cute.zeros({64, 64}, cute.bf16), rows,
    {64, 64})
  return {load, cX, cute.zeros({64, 128}, cute.f32)}, function(a, c, d)
    local tid = arch.thread_idx()
    local s = cute.make_smem_tensor(cute.bf16, rows, 1024)
    local bar = barriers {1, bad and 4 or 8}
    local ts, tg = cpasync.tma_partition(a, 0, cute.make_layout(1),
      cute.group_modes(s, 0, 2), cute.group_modes(cute.local_tile(c, {64, 64},
      {0, 0}), 0, 2))
    when(tid:eq(256), function()
      for k = 0, 1 do
        if k == 1 then arch.mbarrier_wait(bar + 1, 0) end
        arch.mbarrier_arrive_and_expect_tx(bar, a.tx_bytes)
        at.refill = line() + 1
        cute.copy(a, tg, ts, {tma_bar_ptr = bar})
      end
    end)
    when(tid:lt(256), function()
      local thr = mma:get_slice(tid % 128)
      local acc = thr:partition_fragment_C(cute.make_layout {64, 64})
      mma:set("ACCUMULATE", false)
      for k = 0, 1 do
        arch.mbarrier_wait(bar, k)
        warpgroup.fence()
        at.mma = line() + 1
        cute.gemm(mma, acc, mma:make_fragment_A(thr:partition_A(s)),
                  mma:make_fragment_B(thr:partition_B(s)), acc)
        warpgroup.commit_group()
        warpgroup.wait_group(0)
        if k == 0 then
          when(arch.lane_idx():eq(0)
            & arch.warp_idx():lt(bad and 4 or 8), function()
            arch.mbarrier_arrive(bar + 1)
          end)
        end
      end
      local half = cute.local_tile(d, {64, 64}, {0, tid // 128})
      cute.autovec_copy(acc, thr:partition_C(half))
    end)
  end
end)

-- Threads fill what a copy to the peer reads.
case("a copy to the peer of what threads wrote, no proxy fence", {grid = 2,
  cluster = 2, block = 64}, {"race", "send", "fill"}, function(bad, at)
  return {f32(128)}, function(y)
    local t, rank = arch.thread_idx(), arch.block_idx_in_cluster()
    local s, d, bar = smem(64), smem(64), barriers({1}, true)
    at.fill = line() + 1
    s[t] = t:to(cute.f32)
    if not bad then arch.fence_view_async_shared() end
    arch.sync_threads()
    thread0(function()
      arch.mbarrier_arrive_and_expect_tx(bar, 256)
      local from, to = cpasync.group_bulk_copy_modes(s, d)
      at.send = line() + 1
      cute.copy(SEND, from, to, {mbar_ptr = bar, cta_rank = 1 - rank})
    end)
    arch.mbarrier_wait(bar, 0)
    y[rank * 64 + t] = d[t]
    meet()
  end
end)

-- The source of a copy to the peer changes before that one said it has it.
case("the source of a copy to the peer, changed too early", {grid = 2,
  cluster = 2, block = 64}, {"race", "fill", "send"}, function(bad, at)
  return {f32(128)}, function(y)
    local t, rank = arch.thread_idx(), arch.block_idx_in_cluster()
    local s, d, bar = smem(64), smem(64), barriers({1}, true)
    s[t] = 1
    arch.fence_view_async_shared()
    arch.sync_threads()
    thread0(function()
      arch.mbarrier_arrive_and_expect_tx(bar, 256)
      local from, to = cpasync.group_bulk_copy_modes(s, d)
      at.send = line() + 1
      cute.copy(SEND, from, to, {mbar_ptr = bar, cta_rank = 1 - rank})
    end)
    arch.mbarrier_wait(bar, 0)  -- of what came, not of what went
    if not bad then meet() end
    at.fill = line() + 1
    s[t] = 2
    y[rank * 64 + t] = d[t] + s[t]
    meet()
  end
end)

-- A barrier of the block in a branch of one role.
case("sync_threads in the branch of one role", {block = 64},
  {"*", "*"}, function(bad)
  return {f32(64)}, function(y)
    local t, s = arch.thread_idx(), smem(32)
    when(arch.warp_idx():eq(0), function()
      s[t] = 1
      if bad then arch.sync_threads() else arch.sync_warp() end
      y[t] = s[31 - t]
    end)
    if not bad then arch.sync_threads() end
    when(arch.warp_idx():eq(1), function() y[t] = 2 end)
  end
end)

-- The largest of a block by an atomic, read without a barrier.
case("a maximum by atomics that is read too early", {block = 64},
  {"race", "read", "max"}, function(bad, at)
  return {i32(64), i32(64)}, function(x, y)
    local t, s = arch.thread_idx(), smem(1, cute.i32)
    thread0(function() s[0] = -1 end)
    arch.sync_threads()
    at.max = line() + 1
    arch.atomic_max(s.iterator, x[t])
    if not bad then arch.sync_threads() end
    at.read = line() + 1
    y[t] = x[t] - s[0]
  end
end)

-- A store that no group has: its thread waits for nothing.
case("a bulk store behind the commit", {block = 64},
  {"exited-block", "store"}, function(bad, at)
  return {f32(64)}, function(y)
    local t, s = arch.thread_idx(), smem(64)
    s[t] = 1
    arch.fence_view_async_shared()
    arch.sync_threads()
    thread0(function()
      if bad then arch.cp_async_bulk_commit_group() end
      local from, to = run64(s, 0, y)
      at.store = line() + 1
      cute.copy(STORE, from, to)
      if not bad then arch.cp_async_bulk_commit_group() end
      arch.cp_async_bulk_wait_group(0)
    end)
  end
end)

-- Shared memory of mbarriers is used for data while they are at work.
case("data over an mbarrier", {block = 64}, {"mbarrier", "data"},
  function(bad, at)
  return {f32(64), f32(64)}, function(x, y)
    local t, s = arch.thread_idx(), smem(64)
    local bar = barriers {1}
    local other = cute.make_tensor(bar, cute.make_layout(1))
    thread0(function()
      arch.mbarrier_arrive_and_expect_tx(bar, 256)
      local from, to = run64(x, 0, s)
      cute.copy(LOAD, from, to, {mbar_ptr = bar})
      at.data = line() + 1
      if bad then other[0] = 0 end
    end)
    arch.mbarrier_wait(bar, 0)
    y[t] = s[t]
  end
end)

-- All of a block's threads read a stage; a warp of them releases it.
case("a release by one warp for a block's readers", {block = 160},
  {"race", "refill", "read"}, function(bad, at)
  return {f32(128), f32(256)}, function(x, y)
    local t, s, full = arch.thread_idx(), smem(64), barriers {1, 1, 1}
    when(t:eq(128), function()
      for k = 0, 1 do
        if k == 1 then arch.mbarrier_wait(full + 2, 0) end
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
      arch.fence_view_async_shared()
      if bad then arch.sync_warp()
      else arch.barrier {barrier_id = 1, number_of_threads = 128} end
      thread0(function() arch.mbarrier_arrive(full + 2) end)
      arch.mbarrier_wait(full + 1, 0)
      y[128 + t] = s[t % 64]
    end)
  end
end)

-- No tiles along K: the epilogue waits for one.
case("a wait for the last of no tiles", {block = 64}, {"deadlock", "wait"},
  function(bad, at)
  return {f32(64), f32(64), 0}, function(x, y, n)
    local t, s, bar = arch.thread_idx(), smem(64), barriers {1}
    thread0(function()
      for _k in cute.range(n) do  -- luacheck: ignore _k
        arch.mbarrier_arrive_and_expect_tx(bar, 256)
        local from, to = run64(x, 0, s)
        cute.copy(LOAD, from, to, {mbar_ptr = bar})
      end
    end)
    local function wait()
      at.wait = line() + 1
      arch.mbarrier_wait(bar, 0)
      y[t] = s[t]
    end
    if bad then wait() else when(n:gt(0), wait) end
  end
end)

describe("a fault between blocks, launches or proxies", function()
  for _k, c in ipairs(CASES) do  -- luacheck: ignore _k
    it("is told: " .. c.name, function() assert.is_nil(shipped.untold(c)) end)
    it("is mended: " .. c.name, function() assert.is_nil(shipped.told(c)) end)
  end
end)
