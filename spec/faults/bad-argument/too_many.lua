-- Fault: a call has one argument more than its function takes.
-- expect: cutelua: bad argument #3 to 'cute.coalesce' (at most 2 arguments
--   expected, got 3; #3 is 2) [bad-argument]
-- expect: spec/faults/bad-argument/too_many.lua:7 in main chunk
-- expect: use cute.coalesce(layout, profile?)
local cute = require "cute"
cute.coalesce(cute.layout "4:1", {1}, 2)
