-- The example of the error kind `mbarrier` in docs/errors.md.
-- expect: cutelua: simulator: kernel k: 1 fault [kernel-fault]
-- expect: spec/faults/mbarrier/report.lua:14 in run
-- expect: report.lua:24: mbarrier 'bar'[0] counts 2 arrivals a phase; 32
--   arrivals come at once when 2 are missing [mbarrier]
-- expect: the other: report.lua:20
-- expect: initialize the mbarrier with the number of threads that arrive in a
--   phase, or let one lane arrive
local cute = require "cute"
local X = cute.zeros({32, 32}, cute.f32)
local function run(launch, f, ...)
  launch.grid, launch.block = launch.grid or 1, launch.block or 32
  launch.device = "sim"
  cute.kernel("k", f)(...):launch(launch)
end

run({block = 64}, function(mX)
  local bar = cute.arch.alloc_smem(cute.i64, 1)
  cute.when(cute.arch.thread_idx():eq(0), function()
    cute.arch.mbarrier_init(bar, 2)      -- two warps, but each lane arrives  -- wrong
    -- mend: cute.arch.mbarrier_init(bar, 2)
  end)
  cute.arch.sync_threads()
  cute.arch.mbarrier_arrive(bar)  -- wrong
  -- mend: cute.when(cute.arch.lane_idx():eq(0), function()
    -- mend: cute.arch.mbarrier_arrive(bar)
  -- mend: end)
  cute.arch.mbarrier_wait(bar, 0)
end, X)
