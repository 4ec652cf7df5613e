-- The example of the error kind `assertion` in docs/errors.md.
-- expect: cutelua: simulator: kernel k: 1 fault [kernel-fault]
-- expect: spec/faults/assertion/report.lua:8 in run
-- expect: report.lua:12: assertion failed: too many threads [assertion]
local cute = require "cute"
local X = cute.zeros({32, 32}, cute.f32)
local function run(f, ...)
  cute.kernel("k", f)(...):launch {grid = 1, block = 32, device = "sim"}
end

run(function(mX)
  cute.testing.assert_(cute.arch.thread_idx():lt(31), "too many threads")  -- wrong
  -- mend: cute.testing.assert_(cute.arch.thread_idx():lt(32), "too many threads")
end, X)
