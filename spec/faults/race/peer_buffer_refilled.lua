-- Fault: a block refills its peer's buffer before the peer has read it.
-- expect: cutelua: simulator: kernel faulty: 1 fault [kernel-fault]
-- expect: spec/faults/race/peer_buffer_refilled.lua:51 in main chunk
-- expect: peer_buffer_refilled.lua:43: write after a write by an st.async whose
--   completion was not waited for: element 0 of shared tensor 's' [race]
-- expect: first access: the same line
-- expect: wait for it (at its mbarrier, or with cp_async_bulk_wait_group or
--   warpgroup.wait_group), then at a barrier
-- expect: 1 more may follow from it
local cute = require "cute"
local arch = cute.arch
local CLUSTER = {scope = "cluster"}

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
  local s, bar = smem(32), barriers {1, 32}
  for k = 0, 1 do
    -- mend: if k == 1 then
      -- mend: arch.mbarrier_wait(bar + 1, 0, CLUSTER)
    -- mend: end
    thread0(function() arch.mbarrier_arrive_and_expect_tx(bar, 128) end)
    arch.store_async_dsmem(s.iterator + t, t:to(cute.f32), bar, 1 - rank)
    arch.mbarrier_wait(bar, k)
    y[rank * 32 + t] = s[31 - t]
    arch.sync_warp()
    if k == 0 then arch.mbarrier_arrive(bar + 1, 1 - rank, 1, CLUSTER) end
  end
  meet()
end)
k(cute.zeros({64}, cute.f32)):launch {grid = 2, cluster = 2, block = 32,
  device = "sim:sm_90a", seed = 1}
