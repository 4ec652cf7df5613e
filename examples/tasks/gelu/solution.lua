local cute = require "cute"
local arch = cute.arch

local gelu = cute.kernel("gelu", function(X, Y, n)
  local i = arch.block_idx() * 128 + arch.thread_idx()
  cute.when(i:lt(n), function()
    local x = X[i]:to(cute.f32)
    -- wrong: local x = X[n - 1 - i]:to(cute.f32)
    local z = 0.7978845608 * (x + 0.044715 * x * x * x)
    -- wrong: local z = 0.7978845608 * (x + 0.044715 * x * x)
    Y[i] = (0.5 * x * (1 + cute.tanh(z))):to(cute.f16)
    -- wrong: Y[i] = (0.5 * x * (1 - cute.tanh(z))):to(cute.f16)
  end)
end)

return function(a)
  gelu(a.X, a.Y, a.N):launch {grid = (a.N + 127) // 128, block = 128}
end
-- SPDX-License-Identifier: MIT
