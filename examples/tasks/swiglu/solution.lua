local cute = require "cute"
local arch = cute.arch

local swiglu = cute.kernel("swiglu", function(G, U, Y, n)
  local m, part = arch.block_idx()
  local j = part * 128 + arch.thread_idx()
  -- wrong: local j = arch.thread_idx()
  cute.when(j:lt(n), function()
    local g = G[{m, j}]:to(cute.f32)
    local u = U[{m, j}]:to(cute.f32)
    -- wrong: local u = G[{m, j}]:to(cute.f32)
    Y[{m, j}] = (g / (1 + cute.exp(-g)) * u):to(cute.bf16)
    -- wrong: Y[{m, j}] = (g / (1 + cute.exp(g)) * u):to(cute.bf16)
  end)
end)

return function(a)
  local columns = (a.N + 127) // 128
  swiglu(a.G, a.U, a.Y, a.N):launch {grid = {a.M, columns}, block = 128}
end
-- SPDX-License-Identifier: MIT
