-- Fault: the warps of a block execute sync_threads() in a loop whose trip count
-- differs.
-- expect: cutelua: simulator: kernel k: 1 fault [kernel-fault]
-- expect: spec/faults/deadlock/sync_in_loop_of_warp.lua:14 in main chunk
-- expect: sync_in_loop_of_warp.lua:18: no warp can go on: 3 warps wait (warp 1,
--   2, 3) at barrier 0, where 96 threads arrived and 128 are needed; 1 warp
--   exited without arriving [deadlock]
-- expect: all threads of the block must execute sync_threads() equally often:
--   move it out of branches, and out of loops whose trip count differs, or use
--   cute.arch.barrier(id, n) for some warps
local cute = require "cute"
local arch = cute.arch
local Y = cute.zeros({128}, cute.f32)
cute.kernel("k", function(y)
  local t = arch.thread_idx()
  for _ in cute.range(t // 32 + 1) do  -- wrong
  -- mend: for _ in cute.range(4) do
    arch.sync_threads()
  end
  y[t] = 1.0
end)(Y):launch {grid = 1, block = 128, device = "sim", seed = 1}
