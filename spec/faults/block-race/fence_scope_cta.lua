-- Block 0 hands data over to block 1 by a flag. Fault: the scope of the fence
-- before the flag is the block.
-- expect: cutelua: simulator: kernel hand_over: 1 fault [kernel-fault]
-- expect: spec/faults/block-race/fence_scope_cta.lua:41 in main chunk
-- expect: fence_scope_cta.lua:38: read by block (1,0,0) and write by block
--   (0,0,0) with nothing to order them: element 63 of global tensor 'data'
--   [block-race]
-- expect: coordinate (63) of (64):(1)
-- expect: first access: block (1,0,0), thread (0,0,0), 2 times
-- expect: second access: fence_scope_cta.lua:23, thread 63
-- expect: an access or a fence of the kernel has a scope that does not reach
--   other blocks, cta or cluster: give it scope = "gpu", or use
--   fence_acq_rel_gpu()
local cute = require "cute"
local arch = cute.arch
local RELAXED = {sem = "relaxed", scope = "gpu"}

local function thread0(f) cute.when(arch.thread_idx():eq(0), f) end

local k = cute.kernel("hand_over", function(data, flag, y)
  local t = arch.thread_idx()
  cute.when(arch.block_idx():eq(0), function()
    data[t] = t
    arch.sync_threads()
    thread0(function()
      arch.fence_acq_rel_cta()  -- wrong
      -- mend: arch.fence_acq_rel_gpu()
      arch.store(flag.iterator, 1, RELAXED)
    end)
  end, function()
    thread0(function()
      cute.loop(function()
        return arch.load(flag.iterator, nil, RELAXED):eq(0)
      end, function() end)
      arch.fence_acq_rel_gpu()
    end)
    arch.sync_threads()
    y[t] = data[63 - t]
  end)
end)
k(cute.zeros({64}, cute.i32), cute.zeros({1}, cute.i32),
  cute.zeros({64}, cute.i32)):launch {grid = 2, block = 64, device = "sim",
                                      seed = 1}
