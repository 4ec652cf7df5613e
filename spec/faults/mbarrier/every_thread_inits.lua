-- Initializes an mbarrier and waits at it. Fault: every thread initializes it.
-- expect: cutelua: simulator: kernel k: 1 fault [kernel-fault]
-- expect: spec/faults/mbarrier/every_thread_inits.lua:21 in main chunk
-- expect: every_thread_inits.lua:14: mbarrier 'b'[0] is initialized a second
--   time, for 64 arrivals, with no mbarrier_inval between [mbarrier]
-- expect: let one thread initialize it, cute.when(tid:eq(0), function() ...
--   end), then call sync_threads()
local cute = require "cute"
local arch = cute.arch
local y = cute.zeros({64}, cute.f32)
local k = cute.kernel("k", function(y)
  local tid = arch.thread_idx()
  local b = cute.make_smem_tensor(cute.i64, 1)
  arch.mbarrier_init(b, 64)  -- wrong
  -- mend: cute.when(tid:eq(0), function() arch.mbarrier_init(b, 64) end)
  arch.sync_threads()
  arch.mbarrier_arrive(b)
  arch.mbarrier_wait(b, 0)
  y[tid] = 1.0
end)
k(y):launch {grid = 1, block = 64, device = "sim", seed = 1}
