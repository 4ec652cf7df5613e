-- The example of the error kind `unstarted-block` in docs/errors.md.
-- expect: cutelua: simulator: kernel k: 1 fault [kernel-fault]
-- expect: spec/faults/unstarted-block/report.lua:14 in run
-- expect: report.lua:23: element 0 of distributed shared tensor 'there' of
--   block (0,0,0), which may not have started: no cluster barrier comes before
--   this access [unstarted-block]
-- expect: use a cluster barrier first (cluster_arrive, cluster_wait): after it,
--   all blocks of the cluster are running
local cute = require "cute"
local X = cute.zeros({32, 32}, cute.f32)
local function run(launch, f, ...)
  launch.grid, launch.block = launch.grid or 1, launch.block or 32
  launch.device = "sim"
  cute.kernel("k", f)(...):launch(launch)
end

run({grid = 2, cluster = 2, block = 32}, function(mX)
  local s = cute.make_smem_tensor(cute.i32, cute.make_layout {32})
  local lane, rank = cute.arch.lane_idx(), cute.arch.block_idx_in_cluster()
  -- mend: cute.arch.cluster_arrive_relaxed()
  -- mend: cute.arch.cluster_wait()
  local there = cute.arch.map_dsmem_ptr(s.iterator, 1 - rank)
  cute.arch.store(there + lane, rank)
  cute.arch.cluster_arrive()
  cute.arch.cluster_wait()
  mX[{rank, lane}] = s[lane]:to(cute.f32)
end, X)
