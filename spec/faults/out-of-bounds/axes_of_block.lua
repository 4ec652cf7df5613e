-- Fills a square tile in shared memory and stores it. Fault: the results of
-- thread_idx() are taken in the wrong order.
-- expect: cutelua: simulator: kernel k: 1 fault [kernel-fault]
-- expect: axes_of_block.lua:15: write outside global tensor 'C': coordinate
--   (16,…) of (16,16) [out-of-bounds]
-- expect: the coordinates would all be inside if the axes x and y of the block,
--   16 x 4, were exchanged: are the results of thread_idx() in the order x, y,
--   z?
local cute = require "cute"
local C = cute.zeros({16, 16}, cute.f32)
local k = cute.kernel("k", function(C)
  local ty, tx = cute.arch.thread_idx()  -- wrong
  -- mend: local tx, ty = cute.arch.thread_idx()
  for j in cute.range(0, 16, 4) do
    C[{j + ty, tx}] = 1
  end
end)
k(C):launch {grid = 1, block = {16, 4}, device = "sim", seed = 1}
