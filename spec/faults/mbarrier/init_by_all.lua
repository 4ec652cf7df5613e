-- Fault: all threads of the block initialize the mbarrier.
-- expect: cutelua: simulator: kernel k: 1 fault [kernel-fault]
-- expect: spec/faults/mbarrier/init_by_all.lua:12 in main chunk
-- expect: init_by_all.lua:15: mbarrier 'b'[0] is initialized a second time, for
--   128 arrivals, with no mbarrier_inval between [mbarrier]
-- expect: the other: the same line
-- expect: let one thread of the block initialize it:
--   cute.when(thread_idx:eq(0), ...)
local cute = require "cute"
local arch = cute.arch
local Y = cute.zeros({128}, cute.f32)
cute.kernel("k", function(y)
  local b = arch.alloc_smem(cute.i64, 1)
  local t = arch.thread_idx()
  arch.mbarrier_init(b, 128)  -- wrong
  -- mend: cute.when(t:eq(0), function() arch.mbarrier_init(b, 128) end)
  arch.sync_threads()
  arch.mbarrier_arrive(b)
  arch.mbarrier_wait(b, 0)
  y[t] = 1.0
end)(Y):launch {grid = 1, block = 128, device = "sim:sm_90a", seed = 1}
