-- All lanes use a maximum that shuffles bring to lane 0 alone.
-- run: notes
-- expect: note: incomplete_maximum.lua:14: lanes 1 to 31 use this maximum or
--   minimum although it lacks the values of other lanes, because
--   shfl.down brings no value where no lane is at its distance;
--   warp_reduction_max and warp_reduction_min give it to all
local cute = require "cute"

cute.kernel("scale", function(x, y)
  local lane, row = cute.arch.thread_idx(), cute.arch.block_idx()
  local v = x[{row, lane}]
  local most = cute.abs(v)
  for _, d in ipairs {16, 8, 4, 2, 1} do
    most = cute.max(most, cute.arch.shuffle_sync_down(most, d))  -- wrong
    -- mend: most = cute.max(most, cute.arch.shuffle_sync_bfly(most, d))
  end
  y[{row, lane}] = v / most
end)(cute.rand({4, 32}, cute.f32), cute.zeros({4, 32}, cute.f32))
  :launch {grid = 4, block = 32, device = "sim"}
