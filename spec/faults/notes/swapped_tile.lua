-- The tile of C has the coordinate (n, m) in place of (m, n). C is square.
-- run: notes
-- expect: note: swapped_tile.lua:19: 'c' is not the product of 'a' and 'b':
--   element … is …, but a… times b… is …; the elements have the values
--   that belong to the tile on the other side of the diagonal: are two
--   coordinates of a tile swapped? cute.partial_ok(c) says that this
--   is intended
local cute = require "cute"
local T = 16

cute.kernel("product", function(a, b, c)
  local x, y = cute.arch.thread_idx()
  local n, m = cute.arch.block_idx()
  local sum = 0.0
  for k in cute.range(24) do
    sum = sum + a[{m * T + y, k}] * b[{n * T + x, k}]
  end
  -- mend: c[{m * T + y, n * T + x}] = sum
  c[{n * T + y, m * T + x}] = sum  -- wrong
end)(cute.rand({64, 24}, cute.f32), cute.rand({64, 24}, cute.f32),
  cute.zeros({64, 64}, cute.f32))
  :launch {grid = {4, 4}, block = {T, T}, device = "sim"}
