-- The script of the example: one kernel, and one operation of cute.ops.
local cute = require "cute"

local add = cute.kernel("add", function(x, y, z)
  local i = cute.arch.block_idx() * 128 + cute.arch.thread_idx()
  for _ in cute.when(i:lt(cute.size(x))) do z[i] = x[i] + y[i] end
end)

local M = {}

function M.add(x, y)
  local z = cute.zeros_like(x)
  add(x, y, z):launch {grid = cute.ceil_div(cute.size(x), 128), block = 128}
  return z
end

function M.gelu(x) return cute.ops.elementwise(cute.ops.gelu, x) end

return M
-- SPDX-License-Identifier: MIT
