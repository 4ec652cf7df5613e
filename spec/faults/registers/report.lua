-- The example of the error kind `registers` in docs/errors.md.
-- expect: cutelua: simulator: kernel k: 1 fault [kernel-fault]
-- expect: spec/faults/registers/report.lua:13 in run
-- expect: report.lua:19: setmaxnreg.dec cannot change 24 registers a
--   thread to 40 [registers]
-- expect: setmaxregister_decrease releases registers, setmaxregister_increase
--   requests them
local cute = require "cute"
local X = cute.zeros({32, 32}, cute.f32)
local function run(launch, f, ...)
  launch.grid, launch.block = launch.grid or 1, launch.block or 32
  launch.device = "sim"
  cute.kernel("k", f)(...):launch(launch)
end

run({block = 128}, function(mX)
  cute.arch.setmaxregister_decrease(24)
  cute.arch.sync_threads()
  cute.arch.setmaxregister_decrease(40)  -- wrong
  -- mend: cute.arch.setmaxregister_increase(40)
end, X)
