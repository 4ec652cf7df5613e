-- The example of the error kind `divergent` in docs/errors.md.
-- expect: cutelua: simulator: kernel k: 1 fault [kernel-fault]
-- expect: spec/faults/divergent/report.lua:11 in run
-- expect: report.lua:16: only 20 of the warp's 32 threads reach an operation
--   that all of them must execute together [divergent]
-- expect: move it out of the branch, so that all threads execute it, or, if it
--   has a mask, name only the threads that execute it
local cute = require "cute"
local X = cute.zeros({32, 32}, cute.f32)
local function run(f, ...)
  cute.kernel("k", f)(...):launch {grid = 1, block = 32, device = "sim"}
end

run(function(mX)
  local tid = cute.arch.thread_idx()  -- wrong
  cute.when(tid:lt(20), function() cute.arch.sync_threads() end)  -- wrong
  -- mend: cute.arch.sync_threads()
end, X)
