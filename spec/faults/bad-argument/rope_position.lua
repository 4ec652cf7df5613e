-- Fault: a position of a rotary embedding is beyond its tables.
-- expect: cutelua: ops.rope: positions[1] = 4, but Cos is (4,2):(2,1):
--   positions are its rows, 0 to 3 [bad-argument]
-- expect: spec/faults/bad-argument/rope_position.lua:10 in main chunk

local cute = require "cute"
local X, Cos = cute.ones({1, 2, 1, 4}, cute.f32), cute.ones({4, 2}, cute.f32)
local at = cute.tensor({{0, 4}}, cute.i32)  -- wrong
-- mend: local at = cute.tensor({{0, 3}}, cute.i32)
cute.ops.rope(X, Cos, Cos, {positions = at, device = "sim"})
