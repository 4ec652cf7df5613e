-- Reverses blocks of 128 elements. Fault: a block has only 64 threads.
-- expect: cutelua: simulator: kernel turn: 1 fault [kernel-fault]
-- expect: spec/faults/uninitialised/few_threads.lua:29 in main chunk
-- expect: few_threads.lua:21: read of uninitialised memory: element 95 of
--   shared tensor 's' [uninitialised]
-- expect: only the first 64 of its 128 elements are written, 1 by each of the
--   block's 64 threads: does the launch have too few threads, or a loop too few
--   iterations?
local cute = require "cute"
local arch = cute.arch

local BLOCK = 128

local turn = cute.kernel("turn", function(x, y)
  local t, b = arch.thread_idx(), arch.block_idx()
  local gX, gY = cute.local_tile(x, {BLOCK}, {b}), cute.local_tile(y, {BLOCK},
    {b})
  local s = cute.make_smem_tensor(cute.f32, BLOCK)
  s[t] = gX[t]
  arch.sync_threads()
  gY[t] = s[BLOCK - 1 - t]
end)

local x, y = cute.ones({256}, cute.f32), cute.zeros({256}, cute.f32)
local threads = BLOCK
if true then  -- wrong
  threads = 64  -- wrong
end  -- wrong
turn(x, y):launch {grid = 2, block = threads, device = "sim"}
assert(y[255] == 1)
-- SPDX-License-Identifier: MIT
