-- The example of the error kind `uninitialised` in docs/errors.md.
-- expect: cutelua: simulator: kernel k: 1 fault [kernel-fault]
-- expect: spec/faults/uninitialised/report.lua:11 in run
-- expect: report.lua:18: read of uninitialised memory: element 1 of register
--   tensor 'r' [uninitialised]
-- expect: nothing wrote this before: is an initialisation, a copy or a barrier
--   missing?
local cute = require "cute"
local X = cute.zeros({32, 32}, cute.f32)
local function run(f, ...)
  cute.kernel("k", f)(...):launch {grid = 1, block = 32, device = "sim"}
end

run(function(mX)
  local r = cute.make_rmem_tensor({2}, cute.f32)
  r[0] = 1  -- wrong
  -- mend: r:fill(1)
  mX[{cute.arch.thread_idx(), 0}] = r[0] + r[1]
end, X)
