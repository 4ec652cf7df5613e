-- Fault: the two sides of a window are given by name, but a window is a list.
-- expect: cutelua: ops.attention: window has the key "left"; a list of two
--   numbers is needed, {left, right} [bad-argument]
-- expect: spec/faults/bad-argument/window_names.lua:8 in main chunk

local cute = require "cute"
local Q = cute.ones({1, 16, 2, 64}, cute.bf16)
cute.ops.attention(Q, Q, Q, {device = "sim:sm_80",
  window = {left = 4}})  -- wrong
-- mend:   window = {4}})
