-- Adds 1 to a matrix, tile by tile. Fault: the axes of the grid are exchanged.
-- expect: cutelua: simulator: kernel k: 1 fault [kernel-fault]
-- expect: axes_of_grid.lua:13: write outside global tensor 'C': coordinate
--   (24,…) of (24,32) [out-of-bounds]
-- expect: the coordinates of this line reach 32 x 24, but 'C' is 24 x 32: are
--   the two coordinates exchanged, or the axes x and y of the grid, 3 x 4, or
--   is the tensor passed transposed?
local cute = require "cute"
local C = cute.zeros({24, 32}, cute.f32)
local k = cute.kernel("k", function(C)
  local tx, ty = cute.arch.thread_idx()
  local bx, by = cute.arch.block_idx()
  C[{by * 8 + ty, bx * 8 + tx}] = 1
end)
local grid = {24 // 8, 32 // 8}  -- wrong
-- mend: local grid = {32 // 8, 24 // 8}
k(C):launch {grid = grid, block = {8, 8}, device = "sim", seed = 1}
