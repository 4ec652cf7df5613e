-- One block sums in a fixed order, so that equal inputs give equal bits.
local cute = require "cute"
local arch = cute.arch

local dot = cute.kernel("dot", function(X, Y, D, n)
  local t, lane, warp = arch.thread_idx(), arch.lane_idx(), arch.warp_idx()
  local parts = cute.make_smem_tensor(cute.f32, cute.make_layout(8))
  local sum = 0.0
  for i in cute.range(t, n, 256) do sum = sum + X[i] * Y[i] end
  -- wrong: for i in cute.range(t, n, 256) do sum = sum + X[i] * X[i] end
  sum = arch.warp_reduction_sum(sum)
  cute.when(lane:eq(0), function() parts[warp] = sum end)
  arch.sync_threads()
  -- wrong: arch.sync_warp()
  cute.when(t:eq(0), function()
    local all = parts[0]
    for w = 1, 7 do all = all + parts[w] end
    -- wrong: for w = 1, 6 do all = all + parts[w] end
    D[0] = all
  end)
end)

return function(a)
  dot(a.X, a.Y, a.D, a.N):launch {grid = 1, block = 256}
end
-- SPDX-License-Identifier: MIT
