-- Fault: a method of `at`, an epilogue's argument, is called with a dot.
-- expect: cutelua: 'at:col' is a method, but was called with a dot, on tensor
--   ptr[f32,gmem] o (32):(1) [bad-argument]
-- expect: spec/faults/bad-argument/epilogue_dot.lua:11 in f
-- expect: write at:col(...) with a colon

local cute = require "cute"
local A, B = cute.ones({16, 16}, cute.bf16), cute.ones({32, 16}, cute.bf16)
local bias = cute.ones({32}, cute.f32)
cute.ops.gemm(A, B, {device = "sim", epilogue = function(acc, at)
  return acc + at.col(bias)  -- wrong
-- mend:   return acc + at:col(bias)
end})
