-- Exchanges the halves of a tensor. Fault: input and output are one tensor, so
-- that a block overwrites elements that another block reads.
-- expect: cutelua: simulator: kernel k: 1 fault [kernel-fault]
-- expect: in_place.lua:12: read by block (1,0,0) and write by block (0,0,0)
--   with nothing to order them: element 0 of global tensor 'x' [block-race]
-- expect: parameters 'x' and 'y' get the same memory: should one of them be
--   another tensor, so that no block writes what another block reads?
local cute = require "cute"
local X, Y = cute.zeros({64}, cute.f32), cute.zeros({64}, cute.f32)
local k = cute.kernel("k", function(x, y)
  local i = cute.arch.block_idx() * 32 + cute.arch.thread_idx()
  y[i] = x[(i + 32) % 64]
end)
local out = X  -- wrong
-- mend: local out = Y
k(X, out):launch {grid = 2, block = 32, device = "sim", seed = 1}
