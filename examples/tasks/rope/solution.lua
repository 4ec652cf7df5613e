local cute = require "cute"
local arch = cute.arch

local rope = cute.kernel("rope", function(X, C, S, Y, pairs_of_row)
  local s, part = arch.block_idx()
  local p = part * 64 + arch.thread_idx()
  cute.when(p:lt(pairs_of_row), function()
    local x, y = X[{s, 2 * p}], X[{s, 2 * p + 1}]
    -- wrong: local x, y = X[{s, p}], X[{s, pairs_of_row + p}]
    local c, d = C[{s, p}], S[{s, p}]
    -- wrong: local d, c = C[{s, p}], S[{s, p}]
    Y[{s, 2 * p}] = x * c - y * d
    -- wrong: Y[{s, 2 * p}] = x * c + y * d
    Y[{s, 2 * p + 1}] = x * d + y * c
  end)
end)

return function(a)
  rope(a.X, a.C, a.S0, a.Y, a.P):launch {grid = {a.S, (a.P + 63) // 64},
                                         block = 64}
end
-- SPDX-License-Identifier: MIT
