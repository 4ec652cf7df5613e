-- Weights and biases of a row have the thread's index in place of the column's.
-- run: notes
-- expect: note: weights_by_thread.lua:15: elements 32 to 127 of 'w' were never
--   read (96 of 128 elements); …
-- expect: note: weights_by_thread.lua:15: elements 32 to 127 of 'b' were never
--   read (96 of 128 elements); …
local cute = require "cute"

cute.kernel("scale", function(x, w, b, y)
  local t, row = cute.arch.thread_idx(), cute.arch.block_idx()
  for k in cute.range(t, 128, 32) do
    local at = t  -- wrong
    -- mend: local at = k
    local v = x[{row, k}]
    y[{row, k}] = v * w[at] + b[at]
  end
end)(cute.rand({4, 128}, cute.f32), cute.rand({128}, cute.f32),
  cute.rand({128}, cute.f32), cute.zeros({4, 128}, cute.f32))
  :launch {grid = 4, block = 32, device = "sim"}
