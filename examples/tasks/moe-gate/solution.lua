local cute = require "cute"
local arch = cute.arch

local gate = cute.kernel("gate", function(G, E, W, tokens, experts)
  local t = arch.block_idx() * 32 + arch.thread_idx()
  cute.when(t:lt(tokens), function()
    local g0, g1, e0, e1 = -math.huge, -math.huge, 0, 0
    for e in cute.range(experts) do
      local g = G[{t, e}]
      cute.when(g:gt(g0), function()
        g1, e1 = g0, e0
        -- wrong: g1, e1 = g, e0
        g0, e0 = g, e
      end, function()
        cute.when(g:gt(g1), function() g1, e1 = g, e end)
        -- wrong: cute.when(g:gt(g0), function() g1, e1 = g, e end)
      end)
    end
    local d = cute.exp(g1 - g0)
    E[{t, 0}], E[{t, 1}] = e0, e1
    W[{t, 0}], W[{t, 1}] = 1 / (1 + d), d / (1 + d)
    -- wrong: W[{t, 0}], W[{t, 1}] = d / (1 + d), 1 / (1 + d)
  end)
end)

return function(a)
  gate(a.G, a.E, a.W, a.T, a.N):launch {grid = (a.T + 31) // 32, block = 32}
end
-- SPDX-License-Identifier: MIT
