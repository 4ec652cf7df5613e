-- Each lane finds its best element; the warp then reduces pairs.
local cute = require "cute"
local arch = cute.arch

local argmax = cute.kernel("argmax", function(X, Y, n)
  local row, lane = arch.block_idx(), arch.thread_idx()
  local most = -2147483647
  local at = n
  for j in cute.range(lane, n, 32) do
    cute.when(X[{row, j}]:gt(most), function()
      -- wrong: cute.when(X[{row, j}]:ge(most), function()
      most, at = X[{row, j}], j
    end)
  end
  local best = arch.warp_reduction_max(most)
  local candidate = cute.where(most:eq(best), at, n)
  -- wrong: local candidate = cute.where(most:ge(best), lane, n)
  local first = arch.warp_reduction(candidate, cute.min)
  -- wrong: local first = arch.warp_reduction(candidate, cute.max)
  cute.when(lane:eq(0), function() Y[row] = first end)
end)

return function(a)
  argmax(a.X, a.Y, a.N):launch {grid = a.M, block = 32}
end
-- SPDX-License-Identifier: MIT
