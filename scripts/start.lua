-- Start here: a kernel that reverses each piece of a vector.
-- Run it, then change it. For example, remove its barrier: the
-- simulator then reports a race.
local cute = require "cute"

local N, BLOCK = 1024, 128  -- number of elements; threads per block

local turn = cute.kernel("turn", function(x, y)
  local tid = cute.arch.thread_idx()  -- thread index, 0 to 127
  local bid = cute.arch.block_idx()   -- block index, 0 to 7
  -- This block's pieces of x and y, and a buffer in shared memory.
  local gX = cute.local_tile(x, {BLOCK}, {bid})
  local gY = cute.local_tile(y, {BLOCK}, {bid})
  local piece = cute.make_layout {BLOCK}
  local sX = cute.make_smem_tensor(cute.f32, piece)
  sX[tid] = gX[tid]              -- each thread loads an element
  cute.arch.sync_threads()       -- wait for all loads
  gY[tid] = sX[BLOCK - 1 - tid]  -- store in reverse order
end)

local x, y = cute.zeros({N}, cute.f32), cute.zeros({N}, cute.f32)
for i = 0, N - 1 do x[i] = i end
turn(x, y):launch {grid = N // BLOCK, block = BLOCK}

for i = 0, N - 1 do  -- check: each piece is reversed
  local first = i // BLOCK * BLOCK
  assert(y[i] == first + BLOCK - 1 - i % BLOCK, "y is wrong")
end
print(("y begins with %g, %g: ok"):format(y[0], y[1]))
cute.draw "(8,4):(4,1)"  -- draws a layout: the address of each (row, column)
-- SPDX-License-Identifier: MIT
