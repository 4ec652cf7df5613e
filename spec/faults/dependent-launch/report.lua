-- The example of the error kind `dependent-launch` in docs/errors.md.
-- expect: cutelua: simulator: kernel k: 1 fault [kernel-fault]
-- expect: spec/faults/dependent-launch/report.lua:14 in run
-- expect: report.lua:21: read of memory that the previous launch writes, with
--   no griddepcontrol_wait() in between: element 0 of global tensor 'mX'
--   [dependent-launch]
-- expect: call cute.arch.griddepcontrol_wait() before the first access to
--   memory that the launches share
local cute = require "cute"
local X = cute.zeros({32, 32}, cute.f32)
local function run(launch, f, ...)
  if type(launch) == "function" then return run({}, launch, f, ...) end
  launch.grid, launch.block, launch.device = 1, 32, "sim"
  cute.kernel("k", f)(...):launch(launch)
end

run(function(mX) mX[{cute.arch.lane_idx(), 0}] = 1 end, X)
run({pdl = true}, function(mX)
  local lane = cute.arch.lane_idx()
  -- mend: cute.arch.griddepcontrol_wait()
  mX[{lane, 1}] = mX[{lane, 0}]
end, X)
