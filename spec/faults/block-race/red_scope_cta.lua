-- Blocks count the elements of each value with atomics. Fault: the scope of the
-- atomics is the block.
-- expect: cutelua: simulator: kernel histogram: 1 fault [kernel-fault]
-- expect: spec/faults/block-race/red_scope_cta.lua:24 in main chunk
-- expect: red_scope_cta.lua:19: write by block (1,0,0) and write by block
--   (0,0,0) with nothing to order them: element 0 of global tensor 'bins'
--   [block-race]
-- expect: coordinate (0) of (16):(1)
-- expect: first access: block (1,0,0), thread (0,0,0), 16 times
-- expect: second access: thread 0
-- expect: an access or a fence of the kernel has a scope that does not reach
--   other blocks, cta or cluster: give it scope = "gpu", or use
--   fence_acq_rel_gpu()
local cute = require "cute"
local arch = cute.arch

local k = cute.kernel("histogram", function(x, bins)
  local bin = bins.iterator + x[arch.block_idx() * 32 + arch.thread_idx()]
  arch.red(bin, 1, {op = "add", scope = "cta"})  -- wrong
  -- mend: arch.red(bin, 1, {op = "add", scope = "gpu"})
end)
local x = cute.zeros({64}, cute.i32)
for i = 0, 63 do x[i] = i % 16 end
k(x, cute.zeros({16}, cute.i32)):launch {grid = 2, block = 32, device = "sim"}
