local cute = require "cute"
local arch = cute.arch

local axpy = cute.kernel("axpy", function(x, y0, y, n)
  local i = arch.block_idx() * 128 + arch.thread_idx()
  cute.when(i:lt(n), function()
    -- wrong: cute.when(i:le(n), function()
    y[i] = 2 * x[i] + y0[i]
    -- wrong: y[i] = 2 * x[i] - y0[i]
  end)
end)

return function(a)
  axpy(a.X, a.Y0, a.Y, a.N):launch {grid = (a.N + 127) // 128, block = 128}
  -- wrong: axpy(a.X, a.Y0, a.Y, a.N):launch {grid = a.N // 128, block = 128}
end
-- SPDX-License-Identifier: MIT
