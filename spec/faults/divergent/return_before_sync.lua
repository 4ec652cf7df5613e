-- Fault: some threads of a warp return before a barrier of the block.
-- expect: cutelua: simulator: kernel k: 1 fault [kernel-fault]
-- expect: spec/faults/divergent/return_before_sync.lua:12 in main chunk
-- expect: return_before_sync.lua:17: only 4 of the warp's 32 threads reach an
--   operation that all of them must execute together; 28 have returned
--   [divergent]
-- expect: let all threads reach it: put cute.when around the work in place of
--   cute.return_if before it
local cute = require "cute"
local arch = cute.arch
local Y = cute.zeros({100}, cute.f32)
cute.kernel("k", function(y)
  local t = arch.thread_idx()
  cute.return_if(t:ge(100))  -- wrong
  local s = cute.make_smem_tensor(cute.f32, cute.make_layout(128))
  s[t] = 1.0
  arch.sync_threads()
  -- mend: cute.return_if(t:ge(100))
  y[t] = s[99 - t]
end)(Y):launch {grid = 1, block = 128, device = "sim", seed = 1}
