-- Fault: an mbarrier counts more arrivals than the peer block makes.
-- run: check --surgeon
-- expect: check: kernel k: bug
-- expect: cluster_count.lua:32: no warp can go on: 2 warps wait (warp 0, 1) at
--   mbarrier 'bar'[0] for the end of phase 0 (parity 0), which lacks 32 of 96
--   arrivals [deadlock]
-- expect: made: cluster_count.lua:24
-- expect: initialize the mbarrier with the number of threads that arrive in a
--   phase, or let the missing threads arrive
-- expect: fixed by mbarrier_init(..., 64) at cluster_count.lua:24
local cute = require "cute"
local arch = cute.arch

local function meet()
  arch.cluster_arrive()
  arch.cluster_wait()
end

local k = cute.kernel("k", function(out)
  local t, rank = arch.thread_idx(), arch.block_idx_in_cluster()
  local s = cute.make_smem_tensor(cute.i32, cute.make_layout(64))
  local bar = arch.alloc_smem(cute.i64, 1)
  cute.when(t:eq(0), function()
    arch.mbarrier_init(bar, 96)
    arch.mbarrier_init_fence()
  end)
  meet()
  local peer = cute.make_tensor(arch.map_dsmem_ptr(s.iterator, 1 - rank),
                                s.layout)
  peer[t] = rank * 100 + t
  arch.mbarrier_arrive(bar, 1 - rank, 1, {scope = "cluster"})
  arch.mbarrier_wait(bar, 0, {scope = "cluster"})
  out[rank * 64 + t] = s[63 - t]
  meet()
end)
k(cute.zeros({128}, cute.i32)):launch {grid = 2, block = 64, cluster = 2,
                                       device = "sim"}
