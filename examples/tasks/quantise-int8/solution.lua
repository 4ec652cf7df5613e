local cute = require "cute"
local arch = cute.arch

local quantise = cute.kernel("quantise", function(X, Q, S, n)
  local row, lane = arch.block_idx(), arch.thread_idx()
  local most = 0.0
  for j in cute.range(lane, n, 32) do
    most = cute.max(most, cute.abs(X[{row, j}]))
    -- wrong: most = cute.max(most, X[{row, j}])
  end
  local scale = arch.warp_reduction_max(most) / 127
  -- wrong: local scale = arch.warp_reduction_max(most) / 128
  for j in cute.range(lane, n, 32) do
    Q[{row, j}] = cute.roundeven(X[{row, j}] / scale):to(cute.i8)
    -- wrong: Q[{row, j}] = cute.floor(X[{row, j}] / scale):to(cute.i8)
  end
  cute.when(lane:eq(0), function() S[row] = scale end)
end)

return function(a)
  quantise(a.X, a.Q, a.S, a.N):launch {grid = a.M, block = 32}
end
-- SPDX-License-Identifier: MIT
