-- Each product has an element of A and an element of B of different K steps.
-- run: notes
-- expect: note: wrong_step.lua:16: 'c' is not the product of 'a' and 'b':
--   element … is …, but a… times b… is …; … cute.partial_ok(c) says
--   that this is intended
local cute = require "cute"

cute.kernel("product", function(a, b, c)
  local x, y = cute.arch.thread_idx()
  local s = cute.make_smem_tensor(cute.f32, cute.make_layout({16, 16}, {16, 1}))
  local sum = 0.0
  s[{y, x}] = b[{y, x}]
  cute.arch.sync_threads()
  for k = 0, 15 do sum = sum + a[{y, k}] * s[{(k + x) % 16, x}] end  -- wrong
  -- mend: for k = 0, 15 do sum = sum + a[{y, k}] * s[{k, x}] end
  c[{y, x}] = sum
end)(cute.rand({16, 16}, cute.f32), cute.rand({16, 16}, cute.f32),
  cute.zeros({16, 16}, cute.f32))
  :launch {grid = 1, block = {16, 16}, device = "sim"}
