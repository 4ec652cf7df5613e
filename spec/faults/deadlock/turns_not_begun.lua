-- Two warpgroups take turns. Fault: nothing arrives at the barrier of group 0.
-- expect: cutelua: simulator: kernel faulty: 1 fault [kernel-fault]
-- expect: spec/faults/deadlock/turns_not_begun.lua:24 in main chunk
-- expect: turns_not_begun.lua:17: no warp can go on: 4 warps wait (warp 0, 1,
--   2, 3) at barrier 1, where 128 threads arrived and 256 are needed [deadlock]
-- expect: some threads or bytes never arrive at the barrier that other threads
--   wait at
local cute = require "cute"
local arch = cute.arch
local when = cute.when

local k = cute.kernel("faulty", function(y)
  local t = arch.thread_idx()
  local group = t // 128
  -- mend: when(group:eq(1), function() arch.barrier_arrive(1, 256) end)
  for k in cute.range(2) do
    arch.barrier {barrier_id = group + 1, number_of_threads = 256}
    y[t] = k:to(cute.f32)
    when(group:eq(0) | k:lt(1), function()
      arch.barrier_arrive(2 - group, 256)
    end)
  end
end)
k(cute.zeros({256}, cute.f32)):launch {grid = 1, block = 256,
  device = "sim:sm_90a", seed = 1}
