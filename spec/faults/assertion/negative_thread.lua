-- Fault: threads of the first warp slice a copy for the second warp.
-- expect: cutelua: simulator: kernel k: 1 fault [kernel-fault]
-- expect: spec/faults/assertion/negative_thread.lua:20 in main chunk
-- expect: negative_thread.lua:15: get_slice gets the negative thread index -32
--   [assertion]
-- expect: first in block (0,0,0), thread (0,0,0)
-- expect: let only the threads of the tile slice it: tid - n belongs into
--   cute.when(tid:ge(n), function() ... end)
local cute = require "cute"

local copy = cute.make_tiled_copy(cute.make_copy_atom(
  cute.nvgpu.CopyUniversalOp(), cute.f32), cute.make_layout(32),
  cute.make_layout(1))
local k = cute.kernel("k", function(mX, mY)
  local slice = copy:get_slice(cute.arch.thread_idx() - 32)  -- wrong
  -- mend: local slice = copy:get_slice(cute.arch.thread_idx() % 32)
  cute.copy(copy, slice:partition_S(mX), slice:partition_D(mY))
end)
local x, y = cute.ones({32}, cute.f32), cute.zeros({32}, cute.f32)
k(x, y):launch {grid = 1, block = 64, device = "sim"}
-- SPDX-License-Identifier: MIT
