-- Fault: the bytes of a bulk copy are not expected.
-- run: check --surgeon
-- expect: check: kernel k: bug
-- expect: arrive_expect_tx.lua:30: no warp can go on: 2 warps wait (warp 0, 1)
--   at mbarrier 'bar'[0] for the end of phase 0 (parity 0), which lacks 1 of 1
--   arrival; 256 bytes arrived that no expect_tx announced [deadlock]
-- expect: made: arrive_expect_tx.lua:22
-- expect: no running thread arrives there: initialize the mbarrier with the
--   number of threads that do, or let the missing threads arrive
-- expect: fixed by cute.arch.mbarrier_arrive_and_expect_tx(bar + n % 1, 256),
--   where n counts its executions, by one lane before arrive_expect_tx.lua:27,
--   or at the end of arrive_expect_tx.lua:21, or before
--   arrive_expect_tx.lua:23, or at the end of arrive_expect_tx.lua:26
local cute = require "cute"
local arch = cute.arch

local k = cute.kernel("k", function(x, y)
  local t = arch.thread_idx()
  local s = cute.make_smem_tensor(cute.f32, cute.make_layout(64), 128)
  local bar = arch.alloc_smem(cute.i64, 1)
  cute.when(t:eq(0), function()
    arch.mbarrier_init(bar, 1)
    arch.mbarrier_init_fence()
  end)
  arch.sync_threads()
  cute.when(t:eq(0), function()
    cute.copy(cute.make_copy_atom(
      cute.nvgpu.cpasync.CopyBulkG2SOp(), cute.f32), x, s, {mbar_ptr = bar})
  end)
  arch.mbarrier_wait(bar, 0)
  y[t] = s[63 - t]
end)
k(cute.randn({64}, cute.f32), cute.empty({64}, cute.f32)):launch {grid = 1,
  block = 64, device = "sim"}
