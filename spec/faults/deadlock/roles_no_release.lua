-- One warp fills a ring by stores, and another warp reads it. Fault: no reader
-- arrives at the mbarrier of an empty stage.
-- expect: cutelua: simulator: kernel roles: 1 fault [kernel-fault]
-- expect: spec/faults/deadlock/roles_no_release.lua:47 in main chunk
-- expect: roles_no_release.lua:32: no warp can go on: 1 warp waits (warp 0) at
--   mbarrier 'empty'[0] for the end of phase 0 (parity 0), which lacks 32 of 32
--   arrivals [deadlock]
-- expect: made: roles_no_release.lua:25
-- expect: no running thread arrives there: initialize the mbarrier with the
--   number of threads that do, or let the missing threads arrive
-- expect: 1 more may follow from it
local cute = require "cute"
local arch, _ = cute.arch, cute._

local STAGES, ROUNDS = 2, 6
local Y = cute.zeros({32 * ROUNDS}, cute.f32)
local k = cute.kernel("roles", function(y)
  local warp, lane = arch.warp_idx(), arch.lane_idx()
  local s = cute.make_smem_tensor(cute.f32, cute.make_layout {32, STAGES})
  local full = arch.alloc_smem(cute.i64, STAGES)
  local empty = arch.alloc_smem(cute.i64, STAGES)
  cute.when(arch.thread_idx():eq(0), function()
    for i = 0, STAGES - 1 do
      arch.mbarrier_init(full + i, 32)
      arch.mbarrier_init(empty + i, 32)
    end
  end)
  arch.sync_threads()
  cute.when(warp:eq(0), function()
    for r in cute.range(ROUNDS) do
      local i, turn = r % STAGES, r // STAGES % 2
      arch.mbarrier_wait(empty + i, 1 - turn)
      s[{lane, i}] = r:to(cute.f32)
      arch.mbarrier_arrive(full + i)
    end
  end, function()
    for r in cute.range(ROUNDS) do
      local i, turn = r % STAGES, r // STAGES % 2
      arch.mbarrier_wait(full + i, turn)
      local v = s[{31 - lane, i}]
      arch.lane_idx()  -- wrong
      -- mend: arch.mbarrier_arrive(empty + i)
      y[lane + 32 * r] = v
    end
  end)
end)
k(Y):launch {grid = 1, block = 64,
  device = "sim:sm_90a", seed = 1}
