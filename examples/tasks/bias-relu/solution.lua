local cute = require "cute"
local arch = cute.arch

local bias_relu = cute.kernel("bias_relu", function(X, B, Y, n)
  local m, part = arch.block_idx()
  local j = part * 128 + arch.thread_idx()
  cute.when(j:lt(n), function()
    local b = B[j]:to(cute.f32)
    -- wrong: local b = B[m]:to(cute.f32)
    local v = X[{m, j}]:to(cute.f32) + b
    -- wrong: local v = X[{m, j}]:to(cute.f32)
    Y[{m, j}] = cute.max(v, 0.0):to(cute.f16)
    -- wrong: Y[{m, j}] = v:to(cute.f16)
  end)
end)

return function(a)
  local columns = (a.N + 127) // 128
  bias_relu(a.X, a.B, a.Y, a.N):launch {grid = {a.M, columns}, block = 128}
end
-- SPDX-License-Identifier: MIT
