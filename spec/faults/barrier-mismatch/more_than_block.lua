-- Fault: a named barrier is for more threads than the block has.
-- expect: cutelua: simulator: kernel k: 1 fault [kernel-fault]
-- expect: spec/faults/barrier-mismatch/more_than_block.lua:11 in main chunk
-- expect: more_than_block.lua:12: a barrier for 256 threads in a block of 128
--   [barrier-mismatch]
-- expect: all threads that use a barrier must name the same number of threads
--   and arrive once
local cute = require "cute"
local arch = cute.arch
local Y = cute.zeros({128}, cute.f32)
cute.kernel("k", function(y)
  arch.barrier(1, 256)  -- wrong
  -- mend: arch.barrier(1, 128)
  y[arch.thread_idx()] = 1.0
end)(Y):launch {grid = 1, block = 128, device = "sim", seed = 1}
