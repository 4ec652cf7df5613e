-- The example of the error kind `division-by-zero` in docs/errors.md.
-- expect: cutelua: simulator: kernel k: 1 fault [kernel-fault]
-- expect: spec/faults/division-by-zero/report.lua:11 in run
-- expect: report.lua:16: the result of an integer division by zero is used
--   [division-by-zero]
-- expect: make sure that the divisor is not 0, or select a safe divisor with
--   cute.where
local cute = require "cute"
local X = cute.zeros({32, 32}, cute.f32)
local function run(f, ...)
  cute.kernel("k", f)(...):launch {grid = 1, block = 32, device = "sim"}
end

run(function(mX)
  local tid = cute.arch.thread_idx()
  mX[{tid, 0}] = (100 // tid):to(cute.f32)  -- wrong
  -- mend: mX[{tid, 0}] = (100 // (tid + 1)):to(cute.f32)
end, X)
