-- Each step of a product multiplies the same column of a.
-- run: notes
-- expect: note: broadcast.lua:17: 'c' is not the product of 'a' and 'b':
--   element … is …, but a… times b… is …; does each step of each loop
--   read the right elements, and does each sum reach the right
--   element? cute.partial_ok(c) says that this is intended
local cute = require "cute"

cute.kernel("product", function(a, b, c)
  local x, y = cute.arch.thread_idx()
  local sum = 0.0
  for k in cute.range(16) do
    local step = x  -- wrong
    -- mend: local step = k
    sum = sum + a[{y, step}] * b[{x, k}]
  end
  c[{y, x}] = sum
end)(cute.rand({16, 16}, cute.f32), cute.rand({16, 16}, cute.f32),
  cute.zeros({16, 16}, cute.f32))
  :launch {grid = 1, block = {16, 16}, device = "sim"}
