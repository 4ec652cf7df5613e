-- Fault: threads wait at an mbarrier, but their cp.async does not arrive there.
-- run: check --surgeon
-- expect: check: kernel k: bug
-- expect: arrive_cp_async.lua:26: no warp can go on: 2 warps wait (warp 0, 1)
--   at mbarrier 'bar'[0] for the end of phase 0 (parity 0), which lacks 64 of
--   64 arrivals [deadlock]
-- expect: made: arrive_cp_async.lua:20
-- expect: no running thread arrives there: initialize the mbarrier with the
--   number of threads that do, or let the missing threads arrive
-- expect: fixed by cute.arch.cp_async_mbarrier_arrive_noinc(bar + n % 1), where
--   n counts its executions, before arrive_cp_async.lua:26
local cute = require "cute"
local arch = cute.arch

local k = cute.kernel("k", function(x, y)
  local t = arch.thread_idx()
  local s = cute.make_smem_tensor(cute.f32, cute.make_layout(64), 128)
  local bar = arch.alloc_smem(cute.i64, 1)
  cute.when(t:eq(0), function()
    arch.mbarrier_init(bar, 64)
    arch.mbarrier_init_fence()
  end)
  arch.sync_threads()
  cute.copy(cute.make_copy_atom("SM80_CP_ASYNC_CACHEALWAYS", cute.f32, 32),
    cute.local_tile(x, {1}, {t}), cute.local_tile(s, {1}, {t}))
  arch.mbarrier_wait(bar, 0)
  y[t] = s[63 - t]
end)
k(cute.randn({64}, cute.f32), cute.empty({64}, cute.f32)):launch {grid = 1,
  block = 64, device = "sim"}
