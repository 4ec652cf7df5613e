-- A tiled transposition does not exchange the coordinates of the tile.
-- run: notes
-- expect: note: swapped_copy.lua:14: 'y' is not a copy of 'x': element … is
--   …, but x… is …; the elements have the values that belong to the
--   tile on the other side of the diagonal: are two coordinates of a
--   tile swapped? cute.partial_ok(y) says that this is intended
local cute = require "cute"
local T = 16

cute.kernel("transpose", function(x, y)
  local c, r = cute.arch.thread_idx()
  local n, m = cute.arch.block_idx()
  local v = x[{m * T + r, n * T + c}]
  y[{m * T + c, n * T + r}] = v  -- wrong
  -- mend: y[{n * T + c, m * T + r}] = v
end)(cute.rand({64, 64}, cute.f32), cute.zeros({64, 64}, cute.f32))
  :launch {grid = {4, 4}, block = {T, T}, device = "sim"}
