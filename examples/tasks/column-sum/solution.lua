local cute = require "cute"
local arch = cute.arch

local sums = cute.kernel("sums", function(X, Y, m, n)
  local j = arch.block_idx() * 64 + arch.thread_idx()
  cute.when(j:lt(n), function()
    local sum = 0.0
    -- wrong: local sum = 1.0
    for i in cute.range(m) do sum = sum + X[{i, j}]:to(cute.f32) end
    -- wrong: for i in cute.range(n) do sum = sum + X[{i, j}]:to(cute.f32) end
    Y[j] = sum
    -- wrong: Y[j] = sum / m
  end)
end)

return function(a)
  sums(a.X, a.Y, a.M, a.N):launch {grid = (a.N + 63) // 64, block = 64}
end
-- SPDX-License-Identifier: MIT
