-- A warp scans 32 elements at a time, by shuffles over 1, 2, 4, 8, 16 lanes.
local cute = require "cute"
local arch = cute.arch

local scan = cute.kernel("scan", function(X, Y, n)
  local row, lane = arch.block_idx(), arch.thread_idx()
  local before = 0.0
  for first in cute.range(0, n, 32) do
    local j = first + lane
    local v = 0.0
    cute.when(j:lt(n), function() v = X[{row, j}] end)
    for k = 0, 4 do
      -- wrong: for k = 0, 3 do
      local left = arch.shuffle_sync_up(v, 1 << k)
      v = v + cute.where(lane:ge(1 << k), left, 0.0)
      -- wrong: v = v + left
    end
    cute.when(j:lt(n), function() Y[{row, j}] = before + v end)
    -- wrong: cute.when(j:lt(n), function() Y[{row, j}] = v end)
    before = before + arch.shuffle_sync(v, 31)
  end
end)

return function(a)
  scan(a.X, a.Y, a.N):launch {grid = a.M, block = 32}
end
-- SPDX-License-Identifier: MIT
