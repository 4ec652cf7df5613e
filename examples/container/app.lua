-- The application in the container images. It runs on a GPU if there is one,
-- otherwise on the simulator.
local cute = require "cute"
local gpu = require "cute.gpu"

local square = cute.kernel("square", function(x)
  local i = cute.arch.thread_idx()
  x[i] = x[i] * x[i]
end)

local device = gpu.available() and "gpu" or "sim"
local x = cute.full({128}, 3, cute.f32, {device = device})
square(x):launch {grid = 1, block = 128, device = device}
print(device, x:to "host"(127))
-- SPDX-License-Identifier: MIT
