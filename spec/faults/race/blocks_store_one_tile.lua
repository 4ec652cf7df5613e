-- Fault: both blocks of a cluster store to the tile of the first block.
-- expect: cutelua: simulator: kernel square: 1 fault [kernel-fault]
-- expect: spec/faults/race/blocks_store_one_tile.lua:14 in main chunk
-- expect: blocks_store_one_tile.lua:18: write after a write by a thread of
--   another block with nothing that orders them at cluster scope: element 0 of
--   global tensor 'y' [race]
-- expect: first access: thread 0
-- expect: let one block write it, or use an atomic; do the tiles of the blocks
--   overlap?
local cute = require "cute"
local arch = cute.arch

local y = cute.zeros({64}, cute.f32)
cute.kernel("square", function(x, y)
  local block, t = arch.block_idx(), arch.thread_idx()
  local at = t  -- wrong
  -- mend: local at = block * 32 + t
  y[at] = x[block * 32 + t] * x[block * 32 + t]
end)(cute.rand({64}, cute.f32), y):launch {grid = 2, block = 32,
  cluster = {2, 1, 1}, device = "sim:sm_90a"}
