-- Fault: an arrival at a named barrier lacks the number of threads.
-- expect: cutelua: cute.arch.barrier_arrive: the number of threads is missing:
--   write barrier_arrive(1, n) [bad-argument]
-- expect: spec/faults/bad-argument/arrive_of_no_number.lua:8 in kernel k
local cute = require "cute"
local arch = cute.arch
cute.kernel("k", function()
  arch.barrier_arrive(1)
end)():launch {grid = 1, block = 32, device = "sim"}
