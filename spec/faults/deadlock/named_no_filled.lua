-- Two warps fill a buffer and two warps read it, by named barriers. Fault: the
-- writers do not arrive.
-- expect: cutelua: simulator: kernel named: 1 fault [kernel-fault]
-- expect: spec/faults/deadlock/named_no_filled.lua:38 in main chunk
-- expect: named_no_filled.lua:29: no warp can go on: 2 warps wait (warp 2, 3)
--   at barrier 2, where 64 threads arrived and 128 are needed [deadlock]
-- expect: no running thread arrives there: let the missing threads call
--   cute.arch.barrier_arrive(2, n), or name the number n of the threads that
--   arrive
-- expect: 1 more may follow from it
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
      -- mend: arch.barrier_arrive(2, 128)
    end
  end, function()
    for r in cute.range(ROUNDS) do
      arch.barrier(2, 128)
      local v = s[127 - tid]
      cute.when(r:lt(ROUNDS - 1), function()
        arch.barrier_arrive(1, 128)
      end)
      y[tid - 64 + 64 * r] = v
    end
  end)
end)
k(Y):launch {grid = 1, block = 128,
  device = "sim:sm_90a", seed = 1}
