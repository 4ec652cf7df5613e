-- One warp fills a tile by stores, and another warp reads it. Fault: the
-- reader's wait has the wrong parity, so that it passes at once.
-- expect: cutelua: simulator: kernel tile: 1 fault [kernel-fault]
-- expect: spec/faults/uninitialised/early_wait_parity.lua:33 in main chunk
-- expect: early_wait_parity.lua:30: read of uninitialised memory (the wait at
--   mbarrier 'full'[0] passed before the end of phase 0: wrong parity): element
--   31 of shared tensor 's' [uninitialised]
-- expect: the write: early_wait_parity.lua:25
-- expect: the wait: early_wait_parity.lua:28
-- expect: wait for the parity of this phase: 0 for the first, then 1, 0, ...
-- expect: 2 more may follow from it
local cute = require "cute"
local arch = cute.arch

local X, Y = cute.ones({32}, cute.f32), cute.zeros({32}, cute.f32)
local k = cute.kernel("tile", function(x, y)
  local warp, lane = arch.warp_idx(), arch.lane_idx()
  local s = cute.make_smem_tensor(cute.f32, 32)
  local full = arch.alloc_smem(cute.i64, 1)
  cute.when(arch.thread_idx():eq(0), function()
    arch.mbarrier_init(full, 32)
  end)
  arch.sync_threads()
  cute.when(warp:eq(0), function()
    s[lane] = x[lane]
    arch.mbarrier_arrive(full)
  end, function()
    arch.mbarrier_wait(full, 1)  -- wrong
    -- mend: arch.mbarrier_wait(full, 0)
    y[lane] = s[31 - lane]
  end)
end)
k(X, Y):launch {grid = 1, block = 64,
  device = "sim:sm_90a"}
