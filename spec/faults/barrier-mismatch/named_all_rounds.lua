-- Two warps fill a buffer and two warps read it, by named barriers. Fault: the
-- readers also arrive in the last round.
-- expect: cutelua: simulator: kernel named: 1 fault [kernel-fault]
-- expect: spec/faults/barrier-mismatch/named_all_rounds.lua:37 in main chunk
-- expect: named_all_rounds.lua:31: the block exits with 64 of 128 threads
--   arrived at barrier 1, where no thread waits for them [barrier-mismatch]
-- expect: all threads that use a barrier must name the same number of threads
--   and arrive once
local cute = require "cute"
local arch, _ = cute.arch, cute._

local ROUNDS = 6
local Y = cute.zeros({64 * ROUNDS}, cute.f32)
local k = cute.kernel("named", function(y)
  local tid, warp = arch.thread_idx(), arch.warp_idx()
  local s = cute.make_smem_tensor(cute.f32, cute.make_layout(64))
  cute.when(warp:lt(2), function()
    for r in cute.range(ROUNDS) do
      cute.when(r:gt(0), function()
        arch.barrier(1, 128)
      end)
      s[tid] = r:to(cute.f32)
      arch.barrier_arrive(2, 128)
    end
  end, function()
    for r in cute.range(ROUNDS) do
      arch.barrier(2, 128)
      local v = s[127 - tid]
      cute.when(r:lt(ROUNDS), function()  -- wrong
      -- mend: cute.when(r:lt(ROUNDS - 1), function()
        arch.barrier_arrive(1, 128)
      end)
      y[tid - 64 + 64 * r] = v
    end
  end)
end)
k(Y):launch {grid = 1, block = 128,
  device = "sim:sm_90a", seed = 1}
