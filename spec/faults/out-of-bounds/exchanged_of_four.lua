-- Copies rows of heads. Fault: the coordinates of the row and of the head are
-- exchanged.
-- expect: cutelua: simulator: kernel k: 1 fault [kernel-fault]
-- expect: exchanged_of_four.lua:15: read outside global tensor 'x': coordinate
--   (0,0,4,0) of (2,24,4,8) [out-of-bounds]
-- expect: the coordinates of this line reach 2 x 4 x 24 x 8, but 'x' is 2 x 24
--   x 4 x 8: are the coordinates of modes 1 and 2 exchanged, or is the tensor
--   passed transposed?
local cute = require "cute"
local X = cute.zeros({2, 24, 4, 8}, cute.f32)
local Y = cute.zeros({2, 24, 4, 8}, cute.f32)
cute.kernel("k", function(x, y)
  local t, head, batch = cute.arch.thread_idx(), cute.arch.block_idx()
  for e = 0, 7 do
    local value = x[{batch, head, t, e}]  -- wrong
    -- mend: local value = x[{batch, t, head, e}]
    y[{batch, t, head, e}] = value
  end
end)(X, Y):launch {grid = {4, 2}, block = 24, device = "sim", seed = 1}
