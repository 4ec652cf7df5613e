-- The example of the error kind `deadlock` in docs/errors.md.
-- expect: cutelua: simulator: kernel k: 1 fault [kernel-fault]
-- expect: spec/faults/deadlock/report.lua:15 in run
-- expect: report.lua:20: no warp can go on: 1 warp waits (warp 0) at barrier 1,
--   where 32 threads arrived and 64 are needed; 1 warp exited without arriving
--   [deadlock]
-- expect: no running thread arrives there: let the missing threads call
--   cute.arch.barrier_arrive(1, n), or name the number n of the threads that
--   arrive
local cute = require "cute"
local X = cute.zeros({32, 32}, cute.f32)
local function run(launch, f, ...)
  launch.grid, launch.block = launch.grid or 1, launch.block or 32
  launch.device = "sim"
  cute.kernel("k", f)(...):launch(launch)
end

run({block = 64}, function(mX)
  cute.when(cute.arch.warp_idx():eq(0), function()
    cute.arch.barrier(1, 64)      -- warp 1 does not come  -- wrong
    -- mend: cute.arch.barrier(1, 64)
  -- mend: end, function()
    -- mend: cute.arch.barrier_arrive(1, 64)
  end)
end, X)
