-- The example of the error kind `out-of-bounds` in docs/errors.md.
-- expect: cutelua: simulator: kernel k: 1 fault [kernel-fault]
-- expect: spec/faults/out-of-bounds/report.lua:11 in run
-- expect: report.lua:14: write outside global tensor 'mX': coordinate (32,31)
--   of (32,32) [out-of-bounds]
-- expect: predicate the access, or check that the tile divides the tensor's
--   shape
local cute = require "cute"
local X = cute.zeros({32, 32}, cute.f32)
local function run(f, ...)
  cute.kernel("k", f)(...):launch {grid = 1, block = 32, device = "sim"}
end

run(function(mX) mX[{cute.arch.thread_idx() + 1, 31}] = 1 end, X)  -- wrong
-- mend: run(function(mX)
  -- mend: local i = cute.arch.thread_idx() + 1
  -- mend: cute.when(i:lt(32), function() mX[{i, 31}] = 1 end)
-- mend: end, X)
