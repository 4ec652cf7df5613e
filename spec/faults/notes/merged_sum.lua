-- Lanes add up sums of exponentials that are relative to different maxima.
-- run: notes
-- expect: note: merged_sum.lua:21: this line adds sums of exponentials of
--   several lanes, but each lane subtracted a maximum of its own;
--   multiply each lane's sum by exp(own maximum - common maximum)
--   first
local cute = require "cute"

cute.kernel("softmax", function(x, y)
  local lane, row = cute.arch.thread_idx(), cute.arch.block_idx()
  local m, l = -math.huge, 0.0
  for k in cute.range(lane, 256, 32) do
    local most = cute.max(m, x[{row, k}])
    l = l * cute.exp(m - most) + cute.exp(x[{row, k}] - most)
    m = most
  end
  local all = cute.arch.warp_reduction_max(m)
  local factor = 1.0
  -- mend: factor = cute.exp(m - all)
  -- mend: l = l * factor
  l = cute.arch.warp_reduction_sum(l)
  for k in cute.range(lane, 256, 32) do
    y[{row, k}] = cute.exp(x[{row, k}] - all) / l
  end
end)(cute.rand({4, 256}, cute.f32), cute.zeros({4, 256}, cute.f32))
  :launch {grid = 4, block = 32, device = "sim"}
