local cute = require "cute"
local arch = cute.arch

local fill = cute.kernel("fill", function(X, mask, V, Y, n)
  local m, part = arch.block_idx()
  local j = part * 64 + arch.thread_idx()
  cute.when(j:lt(n), function()
    local visible = mask[{m, j}]:eq(1)
    -- wrong: local visible = mask[{m, j}]:eq(0)
    -- wrong: local visible = j:le(m)
    Y[{m, j}] = cute.where(visible, X[{m, j}], V[m])
    -- wrong: Y[{m, j}] = cute.where(visible, X[{m, j}], X[{m, 0}])
  end)
end)

return function(a)
  fill(a.X, a.mask, a.V, a.Y, a.N):launch {grid = {a.M, (a.N + 63) // 64},
                                           block = 64}
end
-- SPDX-License-Identifier: MIT
