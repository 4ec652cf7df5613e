-- Fault: a mask function has FlexAttention's four parameters, not `at`.
-- expect: cutelua: ops.attention: mask_mod has 4 parameters, but is called with
--   (at): the indices are the fields at.b, at.h, at.q and at.k [bad-argument]
-- expect: spec/faults/bad-argument/mask_of_indices.lua:8 in main chunk

local cute = require "cute"
local Q = cute.ones({1, 16, 2, 64}, cute.bf16)
cute.ops.attention(Q, Q, Q, {device = "sim:sm_80",
  mask_mod = function(_, _, q, k) return k:le(q) end})  -- wrong
-- mend:   mask_mod = function(at) return at.k:le(at.q) end})
