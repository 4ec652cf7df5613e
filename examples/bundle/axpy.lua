-- The script of main.c: a kernel for vectors of any length, y = a x + y.
local cute = require "cute"

local axpy = cute.kernel("axpy", function(x, y, a)
  local i = cute.arch.block_idx() * 128 + cute.arch.thread_idx()
  for _ in cute.when(i:lt(cute.size(x, 0))) do y[i] = a * x[i] + y[i] end
end)

local function vector()
  return cute.symbolic {dtype = cute.f32, shape = {"n"}, align = 16}
end
local function data() return cute.rand({1000}, cute.f32) end

cute.bundle.add("axpy", axpy, {vector(), vector(), 2.0, block = 128,
  grid = function(x) return cute.bundle.ceil_div(x[1], 128) end,
  examples = {{data(), data(), 3.0}}})
-- SPDX-License-Identifier: MIT
