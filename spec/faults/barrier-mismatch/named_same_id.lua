-- Two warps fill a buffer and two warps read it, by named barriers. Fault: the
-- barriers for "filled" and for "read" have the same number.
-- expect: cutelua: simulator: kernel named: 1 fault [kernel-fault]
-- expect: spec/faults/barrier-mismatch/named_same_id.lua:39 in main chunk
-- expect: named_same_id.lua:21: the same warp arrives twice at barrier 2 before
--   the barrier completes [barrier-mismatch]
-- expect: the other: named_same_id.lua:25
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
        arch.barrier(2, 128)  -- wrong
        -- mend: arch.barrier(1, 128)
      end)
      s[tid] = r:to(cute.f32)
      arch.barrier_arrive(2, 128)
    end
  end, function()
    for r in cute.range(ROUNDS) do
      arch.barrier(2, 128)
      local v = s[127 - tid]
      cute.when(r:lt(ROUNDS - 1), function()
        arch.barrier_arrive(2, 128)  -- wrong
        -- mend: arch.barrier_arrive(1, 128)
      end)
      y[tid - 64 + 64 * r] = v
    end
  end)
end)
k(Y):launch {grid = 1, block = 128,
  device = "sim:sm_90a", seed = 1}
