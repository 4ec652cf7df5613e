-- Copies a matrix in tiles of 16 x 16. Fault: the condition compares the row
-- with the number of columns.
-- expect: cutelua: simulator: kernel k: 1 fault [kernel-fault]
-- expect: wide_condition.lua:17: read outside global tensor 'x': coordinate …
--   of (40,70) [out-of-bounds]
-- expect: the condition around this access is true for coordinate … of mode 0
--   (40 elements): is its bound, or the coordinate, wrong?
local cute = require "cute"
local X = cute.zeros({40, 70}, cute.f32)
local Y = cute.zeros({48, 80}, cute.f32)
cute.kernel("k", function(x, y)
  local tx, ty = cute.arch.thread_idx()
  local bx, by = cute.arch.block_idx()
  local row, col = by * 16 + ty, bx * 16 + tx
  cute.when(row:lt(x.shape[2]) & col:lt(70), function()  -- wrong
    -- mend: cute.when(row:lt(x.shape[1]) & col:lt(70), function()
    y[{row, col}] = x[{row, col}]
  end)
end)(X, Y):launch {grid = {5, 3}, block = {16, 16}, device = "sim", seed = 1}
