local cute = require "cute"
local arch = cute.arch

local gather = cute.kernel("gather", function(W, I, Y, n)
  local t, part = arch.block_idx()
  local j = part * 64 + arch.thread_idx()
  cute.when(j:lt(n), function()
    local row = I[t]
    -- wrong: local row = t
    Y[{t, j}] = W[{row, j}]
    -- wrong: Y[{t, j}] = W[{row + 1, j}]
    -- wrong: Y[{row, j}] = W[{row, j}]
  end)
end)

return function(a)
  gather(a.W, a.I, a.Y, a.D):launch {grid = {a.T, (a.D + 63) // 64}, block = 64}
end
-- SPDX-License-Identifier: MIT
