local cute = require "cute"
local arch = cute.arch

local scatter = cute.kernel("scatter", function(X, O, Y, n)
  local i = arch.block_idx() * 128 + arch.thread_idx()
  cute.when(i:lt(n), function()
    local to = (7 * i + O[0]) % n
    -- wrong: local to = (7 * i) % n
    -- wrong: local to = 7 * i + O[0]
    Y[to] = X[i]
    -- wrong: Y[i] = X[to]
  end)
end)

return function(a)
  scatter(a.X, a.O, a.Y, a.N):launch {grid = (a.N + 127) // 128, block = 128}
end
-- SPDX-License-Identifier: MIT
