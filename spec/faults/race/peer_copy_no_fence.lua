-- Fault: no proxy fence separates writes from the copy to the peer.
-- expect: cutelua: simulator: kernel faulty: 1 fault [kernel-fault]
-- expect: spec/faults/race/peer_copy_no_fence.lua:51 in main chunk
-- expect: peer_copy_no_fence.lua:45: read by a bulk copy after a thread's
--   write, with no fence_proxy("async") in between: element 0 of shared tensor
--   's' [race]
-- expect: first access: peer_copy_no_fence.lua:39, thread 0
-- expect: call fence_view_async_shared() in the threads that wrote, then
--   synchronize at a barrier
local cute = require "cute"
local arch = cute.arch
local cpasync = cute.nvgpu.cpasync
local SEND = cute.make_copy_atom(cpasync.CopyBulkS2SOp(), cute.f32)

local function thread0(f) cute.when(arch.thread_idx():eq(0), f) end

local function meet()
  arch.cluster_arrive()
  arch.cluster_wait()
end

local function smem(n, dtype)
  return cute.make_smem_tensor(dtype or cute.f32, cute.make_layout(n), 128)
end

local function barriers(counts)
  local all = arch.alloc_smem(cute.i64, #counts)
  thread0(function()
    for i, n in ipairs(counts) do arch.mbarrier_init(all + (i - 1), n) end
    arch.mbarrier_init_fence()
  end)
  meet()
  return all
end

local k = cute.kernel("faulty", function(y)
  local t, rank = arch.thread_idx(), arch.block_idx_in_cluster()
  local s, d, bar = smem(64), smem(64), barriers {1}
  s[t] = t:to(cute.f32)
  -- mend: arch.fence_view_async_shared()
  arch.sync_threads()
  thread0(function()
    arch.mbarrier_arrive_and_expect_tx(bar, 256)
    local from, to = cpasync.group_bulk_copy_modes(s, d)
    cute.copy(SEND, from, to, {mbar_ptr = bar, cta_rank = 1 - rank})
  end)
  arch.mbarrier_wait(bar, 0)
  y[rank * 64 + t] = d[t]
  meet()
end)
k(cute.zeros({128}, cute.f32)):launch {grid = 2, cluster = 2, block = 64,
  device = "sim:sm_90a", seed = 1}
