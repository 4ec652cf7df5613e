-- Fault: an mbarrier is allocated as an i32.
-- expect: cutelua: cute.arch.mbarrier_init: an mbarrier must be an i64 in this
--   block's shared memory, got i32 in shared memory [bad-argument]
-- expect: spec/faults/bad-argument/mbarrier_of_i32.lua:14 in f
-- expect: ptr[i32,smem] o 1:0
-- expect: cute.arch.alloc_smem(cute.i64, n) has room for n of them
local cute = require "cute"
local arch = cute.arch
local Y = cute.zeros({128}, cute.f32)
cute.kernel("k", function(y)
  local b = arch.alloc_smem(cute.i32, 1)  -- wrong
  -- mend: local b = arch.alloc_smem(cute.i64, 1)
  cute.when(arch.thread_idx():eq(0), function()
    arch.mbarrier_init(b, 128)
  end)
  arch.sync_threads()
  arch.mbarrier_arrive(b)
  arch.mbarrier_wait(b, 0)
  y[arch.thread_idx()] = 1.0
end)(Y):launch {grid = 1, block = 128, device = "sim:sm_90a", seed = 1}
