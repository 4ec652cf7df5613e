-- Fault: sync_threads() is in a branch that only one warp takes.
-- expect: cutelua: simulator: kernel faulty: 1 fault [kernel-fault]
-- expect: spec/faults/deadlock/sync_threads_in_role.lua:29 in main chunk
-- expect: sync_threads_in_role.lua:22: no warp can go on: 1 warp waits (warp 0)
--   at barrier 0, where 32 threads arrived and 64 are needed; 1 warp exited
--   without arriving [deadlock]
-- expect: all threads of the block must execute sync_threads() equally often:
--   move it out of branches, and out of loops whose trip count differs, or use
--   cute.arch.barrier(id, n) for some warps
local cute = require "cute"
local arch = cute.arch
local when = cute.when

local function smem(n, dtype)
  return cute.make_smem_tensor(dtype or cute.f32, cute.make_layout(n), 128)
end

local k = cute.kernel("faulty", function(y)
  local t, s = arch.thread_idx(), smem(32)
  when(arch.warp_idx():eq(0), function()
    s[t] = 1
    arch.sync_threads()  -- wrong
    -- mend: arch.sync_warp()
    y[t] = s[31 - t]
  end)
  -- mend: arch.sync_threads()
  when(arch.warp_idx():eq(1), function() y[t] = 2 end)
end)
k(cute.zeros({64}, cute.f32)):launch {grid = 1, block = 64,
  device = "sim:sm_90a", seed = 1}
