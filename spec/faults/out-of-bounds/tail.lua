-- Stores a matrix by tiles that do not divide it. Fault: the store has no
-- predicate. The advice must not mention exchanged coordinates.
-- expect: cutelua: simulator: kernel k: 1 fault [kernel-fault]
-- expect: tail.lua:13: write outside global tensor 'C': coordinate … of
--   (24,64) [out-of-bounds]
-- expect: predicate the access, or check that the tile divides the tensor's
--   shape
local cute = require "cute"
local C = cute.zeros({24, 64}, cute.f32)
local k = cute.kernel("k", function(C)
  local bx, by = cute.arch.block_idx()
  local i, j = bx * 64 + cute.arch.thread_idx(), by * 8
  for c = 0, 7 do C[{i, j + c}] = 1 end  -- wrong
  -- mend: cute.when(i:lt(24), function()
    -- mend: for c = 0, 7 do C[{i, j + c}] = 1 end
  -- mend: end)
end)
k(C):launch {grid = {1, 8}, block = 64, device = "sim", seed = 1}
