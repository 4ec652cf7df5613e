-- One warp fills a ring by stores, and another warp reads it. Fault: nothing
-- waits for an empty stage.
-- expect: cutelua: simulator: kernel roles: 1 fault [kernel-fault]
-- expect: spec/faults/race/roles_no_ask.lua:46 in main chunk
-- expect: roles_no_ask.lua:33: write after a read by another warp with no
--   barrier in between: element 0 of shared tensor 's' [race]
-- expect: first access: roles_no_ask.lua:40, thread 63
-- expect: before it is refilled, wait until all threads have read: use an
--   mbarrier that counts the readers, each of which arrives after its
--   read; if one lane arrives for its warp, call sync_warp() before it
--   does…
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
      -- mend: arch.mbarrier_wait(empty + i, 1 - turn)
      s[{lane, i}] = r:to(cute.f32)
      arch.mbarrier_arrive(full + i)
    end
  end, function()
    for r in cute.range(ROUNDS) do
      local i, turn = r % STAGES, r // STAGES % 2
      arch.mbarrier_wait(full + i, turn)
      local v = s[{31 - lane, i}]
      arch.mbarrier_arrive(empty + i)
      y[lane + 32 * r] = v
    end
  end)
end)
k(Y):launch {grid = 1, block = 64,
  device = "sim:sm_90a", seed = 1}
