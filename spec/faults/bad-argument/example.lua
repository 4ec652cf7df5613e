-- The example of the error kind `bad-argument` in docs/errors.md.
-- expect: cutelua: bad argument #1 to 'cute.make_layout' (integer or tuple
--   expected, got "8,4") [bad-argument]
-- expect: spec/faults/bad-argument/example.lua:8 in main chunk
-- expect: use cute.make_layout(shape, stride?, layouts...)
local cute = require "cute"

cute.make_layout("8,4")           -- a string is not a shape  -- wrong
-- mend: cute.make_layout({8, 4})
-- mend: cute.layout "(8,4):(1,8)"         -- CuTe notation goes through cute.layout
