-- The example of the error kind `runaway` in docs/errors.md.
-- expect: cutelua: simulator: kernel k: 1 fault [kernel-fault]
-- expect: spec/faults/runaway/report.lua:12 in run
-- expect: report.lua:16: a warp executed 1001 instructions without finishing
--   [runaway]
-- expect: check that the loop ends; if it does, raise the budget option
local cute = require "cute"
local X = cute.zeros({32, 32}, cute.f32)
local function run(launch, f, ...)
  launch.grid, launch.block = launch.grid or 1, launch.block or 32
  launch.device = "sim"
  cute.kernel("k", f)(...):launch(launch)
end

run({budget = 1000}, function(mX)
  cute.loop(function() return mX[{0, 0}]:ge(0) end, function() end)  -- wrong
  -- mend: local k = 0
  -- mend: cute.loop(function() return cute.lt(k, 10) end, function() k = k + 1 end)
end, X)
