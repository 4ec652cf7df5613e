-- The example of the error kind `foreign-value` in docs/errors.md.
-- expect: cutelua: a value traced in another kernel was used in 'k'
--   [foreign-value]
-- expect: spec/faults/foreign-value/example.lua:14 in kernel k
-- expect: hint: pass it as an argument of the kernel
local cute = require "cute"
local X = cute.zeros({32, 32}, cute.f32)
local function run(f, ...)
  cute.kernel("k", f)(...):launch {grid = 1, block = 32, device = "sim"}
end

local saved  -- wrong
run(function() saved = cute.arch.thread_idx() end)  -- wrong
run(function(mX) mX[{saved, 0}] = 1 end, X)  -- wrong
-- mend: run(function(mX) mX[{cute.arch.thread_idx(), 0}] = 1 end, X)
