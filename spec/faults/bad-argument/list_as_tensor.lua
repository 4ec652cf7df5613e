-- Fault: an operation gets a list of numbers instead of a tensor.
-- expect: cutelua: ops.elementwise: the list {1.0, 2.0} is not a tensor: write
--   cute.tensor(list, cute.f32) [bad-argument]
-- expect: spec/faults/bad-argument/list_as_tensor.lua:7 in main chunk

local cute = require "cute"
local y = cute.ops.elementwise(cute.ops.relu, {1.0, 2.0})  -- wrong
-- mend: local y = cute.ops.elementwise(cute.ops.relu,
-- mend:   cute.tensor({1.0, 2.0}, cute.f32), {device = "sim"})
assert(y(1) == 2)
