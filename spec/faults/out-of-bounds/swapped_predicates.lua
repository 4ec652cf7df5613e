-- Copies through registers. Fault: the predicates of the load and of the store
-- are swapped. The write outside of the tensor is reported first.
-- expect: cutelua: simulator: kernel k: 2 faults [kernel-fault]
-- expect: swapped_predicates.lua:18: write outside global tensor 'y': element
--   64 of 64 [out-of-bounds]
-- expect: the condition around this access is true for coordinate 64: is its
--   bound, or the coordinate, wrong?
-- expect: swapped_predicates.lua:18: read of uninitialised memory: element 0 of
--   register tensor 'r' [uninitialised]
local cute = require "cute"
local X = cute.zeros({100}, cute.f32)
local Y = cute.zeros({64}, cute.f32)
cute.kernel("k", function(x, y)
  local t = cute.arch.thread_idx()
  local r = cute.make_rmem_tensor(1, cute.f32)
  cute.when(t:lt(64), function() r[0] = x[t] end)  -- wrong
  -- mend: cute.when(t:lt(100), function() r[0] = x[t] end)
  cute.when(t:lt(100), function() y[t] = r[0] end)  -- wrong
  -- mend: cute.when(t:lt(64), function() y[t] = r[0] end)
end)(X, Y):launch {grid = 1, block = 128, device = "sim", seed = 1}
