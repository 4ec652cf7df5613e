-- Fault: the load of another block's flag has the scope of a block.
-- run: check --surgeon
-- expect: check: kernel k: bug
-- expect: scope_gpu.lua:23: read by block (1,0,0) and atomic write by block
--   (0,0,0) with nothing to order them: element 0 of global tensor 'flag'
--   [block-race]
-- expect: second access: scope_gpu.lua:19, thread 0
-- expect: an access or a fence of the kernel has a scope that does not reach
--   other blocks, cta or cluster: give it scope = "gpu", or use
--   fence_acq_rel_gpu()
-- expect: fixed by scope = "gpu" at scope_gpu.lua:23
local cute = require "cute"
local arch = cute.arch

local k = cute.kernel("k", function(x, y, flag)
  local i = arch.block_idx()
  cute.when(i:eq(0), function()
    x[0] = 7
    arch.store(flag.iterator, 1, {sem = "release", scope = "gpu"})
  end)
  cute.when(i:eq(1), function()
    cute.loop(function()
      return arch.load(flag.iterator, cute.i32,
                       {sem = "acquire", scope = "cta"}):eq(0)
    end, function() end)
    y[0] = x[0]
  end)
end)
local function ints(n) return cute.zeros({n}, cute.i32) end
k(ints(1), ints(1), ints(1)):launch {grid = 2, block = 1, device = "sim"}
