-- The example of the error kind `exited-block` in docs/errors.md.
-- expect: cutelua: simulator: kernel k: 1 fault [kernel-fault]
-- expect: spec/faults/exited-block/report.lua:13 in run
-- expect: report.lua:26: access to shared memory of block (1,0,0), which may
--   have exited: none of its threads waits for this access [exited-block]
-- expect: let the block wait for it, or add a cluster barrier (cluster_arrive,
--   cluster_wait) before the block exits
local cute = require "cute"
local X = cute.zeros({32, 32}, cute.f32)
local function run(launch, f, ...)
  launch.grid, launch.block = launch.grid or 1, launch.block or 32
  launch.device = "sim"
  cute.kernel("k", f)(...):launch(launch)
end

run({grid = 2, cluster = 2, block = 32}, function(mX)
  local bar = cute.arch.alloc_smem(cute.i64, 1)
  local lane, rank = cute.arch.lane_idx(), cute.arch.block_idx_in_cluster()
  cute.when(lane:eq(0), function()
    cute.arch.mbarrier_init(bar, 1)
    cute.arch.mbarrier_init_fence()
  end)
  cute.arch.cluster_arrive_relaxed()
  cute.arch.cluster_wait()
  cute.when(lane:eq(0), function()
    cute.arch.mbarrier_arrive(bar, 1 - rank)
    -- mend: cute.arch.mbarrier_wait(bar, 0)
  end)
end, X)
