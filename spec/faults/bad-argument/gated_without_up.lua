-- Fault: the epilogue of a gated product takes one vector instead of two.
-- expect: cutelua: ops.gemm: the epilogue at
--   spec/faults/bad-argument/gated_without_up.lua:12 has 1 parameter, but a
--   gated product gives it two vectors: write function(gate, up, at)
--   [bad-argument]
-- expect: spec/faults/bad-argument/gated_without_up.lua:11 in main chunk

local cute = require "cute"
local ops = cute.ops
local X, W = cute.ones({16, 16}, cute.bf16), cute.ones({32, 16}, cute.bf16)
ops.gemm(X, W, {device = "sim", gated = true,
  epilogue = function(gate) return ops.silu(gate) end})  -- wrong
-- mend:   epilogue = function(gate, up) return ops.silu(gate) * up end})
