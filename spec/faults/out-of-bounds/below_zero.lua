-- Shifts the columns of a matrix by one. Fault: the load has no lower bound.
-- expect: cutelua: simulator: kernel k: 1 fault [kernel-fault]
-- expect: below_zero.lua:14: read outside global tensor 'X': coordinate (0,-1)
--   of (2,32) [out-of-bounds]
-- expect: coordinate -1 of mode 1 is below 0: predicate the access with
--   i:ge(0), too
local cute = require "cute"
local X, Y = cute.zeros({2, 32}, cute.f32), cute.zeros({2, 33}, cute.f32)
local k = cute.kernel("k", function(X, Y)
  local row, at = cute.arch.block_idx(), cute.arch.thread_idx() - 1
  local inside = at:lt(32)  -- wrong
  -- mend: local inside = at:ge(0)
  local x = cute.var(0.0, cute.f32)
  cute.when(inside, function() x.value = X[{row, at}] end)
  Y[{row, at + 1}] = x.value
end)
k(X, Y):launch {grid = 2, block = 33, device = "sim", seed = 1}
