-- One warp fills a ring by stores, and another warp reads it. Fault: the reader
-- waits for the same parity in each round, so that its waits pass too early.
-- run: check
-- expect: check: kernel roles: bug
-- expect: readers_keep_parity.lua:33: no warp can go on: 1 warp waits (warp 0)
--   at mbarrier 'empty'[0] for the end of phase 3 (parity 1), which lacks 32 of
--   32 arrivals; 1 warp exited without arriving [deadlock]
-- expect: made: readers_keep_parity.lua:26
-- expect: the wait: readers_keep_parity.lua:40
-- expect: the wait passed before its phase ended: change its parity after each
--   round; readers begin with 0, and a producer that waits for an empty stage
--   begins with 1
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
      arch.mbarrier_wait(full + i, 0)  -- wrong
      -- mend: arch.mbarrier_wait(full + i, turn)
      local v = s[{31 - lane, i}]
      arch.mbarrier_arrive(empty + i)
      y[lane + 32 * r] = v
    end
  end)
end)
k(Y):launch {grid = 1, block = 64,
  device = "sim:sm_90a"}
