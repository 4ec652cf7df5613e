-- Fault: the source of a copy changes before the peer has the data.
-- expect: cutelua: simulator: kernel faulty: 1 fault [kernel-fault]
-- expect: spec/faults/race/peer_copy_source_changed.lua:52 in main chunk
-- expect: peer_copy_source_changed.lua:48: write after a read by a bulk copy
--   whose completion was not waited for: element 32 of shared tensor 's' [race]
-- expect: first access: peer_copy_source_changed.lua:44
-- expect: wait for it (at its mbarrier, or with cp_async_bulk_wait_group or
--   warpgroup.wait_group), then at a barrier
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
  s[t] = 1
  arch.fence_view_async_shared()
  arch.sync_threads()
  thread0(function()
    arch.mbarrier_arrive_and_expect_tx(bar, 256)
    local from, to = cpasync.group_bulk_copy_modes(s, d)
    cute.copy(SEND, from, to, {mbar_ptr = bar, cta_rank = 1 - rank})
  end)
  arch.mbarrier_wait(bar, 0)  -- waits only for the incoming copy
  -- mend: meet()
  s[t] = 2
  y[rank * 64 + t] = d[t] + s[t]
  meet()
end)
k(cute.zeros({128}, cute.f32)):launch {grid = 2, cluster = 2, block = 64,
  device = "sim:sm_90a", seed = 1}
