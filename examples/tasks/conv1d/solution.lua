local cute = require "cute"
local arch = cute.arch

local conv = cute.kernel("conv", function(X, W, Y, n, taps)
  local c, part = arch.block_idx()
  local s = part * 64 + arch.thread_idx()
  cute.when(s:lt(n), function()
    local sum = 0.0
    for k in cute.range(taps) do
      local from = s + k - taps + 1
      -- wrong: local from = s - k
      cute.when(from:ge(0), function()
        -- wrong: cute.when(from:gt(0), function()
        sum = sum + W[{c, k}] * X[{c, from}]
        -- wrong: sum = sum + W[{c, taps - 1 - k}] * X[{c, from}]
      end)
    end
    Y[{c, s}] = sum
  end)
end)

return function(a)
  conv(a.X, a.W, a.Y, a.S, a.K):launch {grid = {a.C, (a.S + 63) // 64},
                                        block = 64}
end
-- SPDX-License-Identifier: MIT
