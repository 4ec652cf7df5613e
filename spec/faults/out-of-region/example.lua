-- The example of the error kind `out-of-region` in docs/errors.md.
-- expect: cutelua: value 'last' of line 17 was computed inside a loop or branch
--   that has ended [out-of-region]
-- expect: spec/faults/out-of-region/example.lua:18 in kernel k
-- expect: carry it out in a local declared before the loop, or in cute.var(...)
-- expect: hint: give the variable a value before the loop or branch, and assign
--   it inside
local cute = require "cute"
local X = cute.zeros({32, 32}, cute.f32)
local function run(f, ...)
  cute.kernel("k", f)(...):launch {grid = 1, block = 32, device = "sim"}
end

run(function(mX, n)
  local last  -- wrong
  -- mend: local last = 0
  cute.when(n:gt(3), function() last = mX[{0, 0}] end)
  mX[{1, 0}] = last               -- undefined if n is 2  -- wrong
  -- mend: mX[{cute.arch.thread_idx(), 1}] = last
end, X, 4)
