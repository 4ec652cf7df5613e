-- The example of the error kind `inadmissible` in docs/errors.md.
-- expect: cutelua: cute.composition: stride 6 is not divisible by extent 8 (4:6
--   on (8,6):(1,10)) [inadmissible]
-- expect: spec/faults/inadmissible/example.lua:14 in main chunk
-- expect: left: (8,6):(1,10)
-- expect: right: 4:6
-- expect: e.g. coordinate 2 of 4:6 is coordinate 12 of (8,6):(1,10): offset 14,
--   where equal steps of 6 would give 12
-- expect: hint: print both operands, or run the call in cute.explain(function()
--   ... end)
local cute = require "cute"

local a = cute.layout "(8,6):(1,10)"
cute.composition(a, cute.layout "4:6")   -- 8 is not divisible by 6  -- wrong
-- mend: cute.composition(a, cute.layout "4:2")
