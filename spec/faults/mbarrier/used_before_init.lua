-- One thread initializes an mbarrier at which all warps wait. Fault: no barrier
-- of the block follows, and another warp waits before the initialization.
-- expect: cutelua: simulator: kernel k: 1 fault [kernel-fault]
-- expect: used_before_init.lua:17: mbarrier 'full'[0] is used with nothing that
--   orders its mbarrier_init before the use [mbarrier]
-- expect: put sync_threads() between mbarrier_init and the first use; in a
--   cluster, mbarrier_init_fence() and the cluster barrier (cluster_arrive,
--   cluster_wait)
local cute = require "cute"
local arch = cute.arch
local k = cute.kernel("k", function(y)
  local t = arch.thread_idx()
  local full = arch.alloc_smem(cute.i64, 1)
  cute.when(t:eq(0), function() arch.mbarrier_init(full, 1) end)
  -- mend: arch.sync_threads()
  cute.when(t:eq(0), function() arch.mbarrier_arrive(full) end)
  arch.mbarrier_wait(full, 0)
  y[t] = 1
end)
local y = cute.zeros({256}, cute.f32)
k(y):launch {grid = 1, block = 256, device = "sim", seed = 7}
