-- Fault: the writers of a ring do not wait for an empty stage.
-- run: check --surgeon
-- expect: check: kernel k: bug
-- expect: ring_empty.lua:35: no warp can go on: 1 warp waits (warp 1) at
--   mbarrier 'full'[0] for the end of phase 3 (parity 1), which lacks 32 of 32
--   arrivals; 1 warp exited without arriving [deadlock]
-- expect: made: ring_empty.lua:22
-- expect: no running thread arrives there: initialize the mbarrier with the
--   number of threads that do, or let the missing threads arrive
-- expect: fixed by cute.arch.mbarrier_wait(empty + n % 2, n // 2 % 2), where n
--   counts its executions, at the end of ring_empty.lua:28
local cute = require "cute"
local arch = cute.arch

local k = cute.kernel("k", function(x, y)
  local t = arch.thread_idx()
  local s = cute.make_smem_tensor(cute.f32, cute.make_layout {32, 2})
  local full = arch.alloc_smem(cute.i64, 2)
  local empty = arch.alloc_smem(cute.i64, 2)
  cute.when(t:eq(0), function()
    for i = 0, 1 do
      arch.mbarrier_init(full + i, 32)
      arch.mbarrier_init(empty + i, 32)
    end
  end)
  arch.sync_threads()
  cute.when(t:lt(32), function()
    for k in cute.range(6) do
      s[{t, k % 2}] = x[{t, k}]
      arch.mbarrier_arrive(full + k % 2)
    end
  end)
  cute.when(t:ge(32), function()
    for k in cute.range(6) do
      arch.mbarrier_wait(full + k % 2, k // 2 % 2)
      y[{t - 32, k}] = s[{63 - t, k % 2}]
      arch.mbarrier_arrive(empty + k % 2)
    end
  end)
end)
k(cute.randn({32, 6}, cute.f32), cute.empty({32, 6}, cute.f32)):launch {
  grid = 1, block = 64, device = "sim"}
