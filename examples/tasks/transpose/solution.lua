-- A tile of 32 x 32 elements passes through shared memory. Its rows have one
-- extra element, so that the elements of a column are in different banks.
local cute = require "cute"
local arch = cute.arch

local transpose = cute.kernel("transpose", function(X, Y, m, n)
  local tile = cute.make_smem_tensor(cute.f16,
    cute.make_layout({32, 32}, {33, 1}))
  local lane, row = arch.thread_idx()
  local m0, n0 = arch.block_idx()
  m0, n0 = m0 * 32, n0 * 32
  for r = 0, 31, 8 do
    local i, j = m0 + row + r, n0 + lane
    cute.when(i:lt(m) & j:lt(n), function()
      -- wrong: cute.when(i:lt(n) & j:lt(m), function()
      tile[{row + r, lane}] = X[{i, j}]
    end)
  end
  arch.sync_threads()
  -- wrong: arch.sync_warp()
  for r = 0, 31, 8 do
    local j, i = n0 + row + r, m0 + lane
    cute.when(i:lt(m) & j:lt(n), function()
      Y[{j, i}] = tile[{lane, row + r}]
      -- wrong: Y[{j, i}] = tile[{row + r, lane}]
    end)
  end
end)

return function(a)
  transpose(a.X, a.Y, a.M, a.N):launch {block = {32, 8},
    grid = {(a.M + 31) // 32, (a.N + 31) // 32}}
end
-- SPDX-License-Identifier: MIT
