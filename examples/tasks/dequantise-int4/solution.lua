-- Each thread unpacks one byte.
local cute = require "cute"
local arch = cute.arch

local dequantise = cute.kernel("dequantise", function(P, S, Y)
  local m, g = arch.block_idx()
  local t = arch.thread_idx()
  local byte, scale = P[{m, g * 16 + t}]:to(cute.i32), S[{m, g}]
  local low, high = byte & 15, byte >> 4
  -- wrong: local high, low = byte & 15, byte >> 4
  local n = g * 32 + 2 * t
  Y[{m, n}] = (low - 8):to(cute.f32) * scale
  -- wrong: Y[{m, n}] = low:to(cute.f32) * scale
  Y[{m, n + 1}] = (high - 8):to(cute.f32) * scale
  -- wrong: Y[{m, n + 1}] = (high - 8):to(cute.f32) * S[{m, 0}]
end)

return function(a)
  dequantise(a.P, a.S, a.Y):launch {grid = {a.M, a.G}, block = 16}
end
-- SPDX-License-Identifier: MIT
