-- The script of scale.c: a kernel, and a function that chooses its grid.
local cute = require "cute"

local scale = cute.kernel("scale", function(x, y, factor)
  local i = cute.arch.block_idx() * 128 + cute.arch.thread_idx()
  cute.when(i:lt(cute.size(x)), function() y[i] = x[i] * factor end)
end)

local function scaled(x, y, factor)
  scale(x, y, factor):launch {grid = cute.ceil_div(cute.size(x), 128),
                              block = 128, device = "sim"}
  return cute.size(x)
end

return {scale = scale, scaled = scaled}
-- SPDX-License-Identifier: MIT
