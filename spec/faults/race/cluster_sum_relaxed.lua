-- Fault: the cluster barrier between atomics and the read is relaxed.
-- expect: cutelua: simulator: kernel faulty: 1 fault [kernel-fault]
-- expect: spec/faults/race/cluster_sum_relaxed.lua:39 in main chunk
-- expect: cluster_sum_relaxed.lua:36: read after a write by a thread of another
--   block with nothing that orders them at cluster scope: element 0 of shared
--   tensor 's' [race]
-- expect: first access: cluster_sum_relaxed.lua:31, thread 0
-- expect: put cluster_arrive() and cluster_wait() between the two lines, or use
--   an mbarrier with scope = "cluster" for both sides (PipelineTmaAsync {scope
--   = "cluster"})
-- expect: 1 more may follow from it
local cute = require "cute"
local arch = cute.arch
local when = cute.when

local function thread0(f) cute.when(arch.thread_idx():eq(0), f) end

local function meet()
  arch.cluster_arrive()
  arch.cluster_wait()
end

local function smem(n, dtype)
  return cute.make_smem_tensor(dtype or cute.f32, cute.make_layout(n), 128)
end

local k = cute.kernel("faulty", function(y)
  local t, s = arch.thread_idx(), smem(1, cute.i32)
  thread0(function() s[0] = 0 end)
  meet()
  arch.atomic_add(arch.map_dsmem_ptr(s.iterator, 0), t)
  arch.cluster_arrive_relaxed()  -- wrong
  -- mend: arch.cluster_arrive()
  arch.cluster_wait()
  when(t:eq(0) & arch.block_idx():eq(0), function()
    y[0] = s[0]
  end)
end)
k(cute.zeros({1}, cute.i32)):launch {grid = 2, cluster = 2, block = 32,
  device = "sim:sm_90a", seed = 1}
