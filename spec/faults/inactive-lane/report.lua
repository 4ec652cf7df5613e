-- The example of the error kind `inactive-lane` in docs/errors.md.
-- expect: cutelua: simulator: kernel k: 1 fault [kernel-fault]
-- expect: spec/faults/inactive-lane/report.lua:11 in run
-- expect: report.lua:17: shuffle reads lane 16, which does not take part in it
--   [inactive-lane]
-- expect: read only from lanes in the mask: use a narrower width, or a mask
--   with more lanes
local cute = require "cute"
local X = cute.zeros({32, 32}, cute.f32)
local function run(f, ...)
  cute.kernel("k", f)(...):launch {grid = 1, block = 32, device = "sim"}
end

run(function(mX)
  local tid = cute.arch.thread_idx()
  cute.when(tid:lt(16), function()  -- wrong
    mX[{tid, 0}] = cute.arch.shuffle_sync_down(mX[{tid, 1}], 1, 32, 0xffff)  -- wrong
  end)  -- wrong
  -- mend: local x = cute.arch.shuffle_sync_down(mX[{tid, 1}], 1)
  -- mend: cute.when(tid:lt(16), function() mX[{tid, 0}] = x end)
end, X)
