-- Fault: the readers of a ring do not wait for a full stage.
-- run: check --surgeon
-- expect: check: kernel k: bug
-- expect: ring_full.lua:35: read after a write by another warp with no barrier
--   in between: element 63 of shared tensor 's' [race]
-- expect: first access: ring_full.lua:29, thread 31
-- expect: arrive at an mbarrier, or a named barrier, after the write, and wait
--   there before the read: these threads have no common sync_threads()…
-- expect: fixed by cute.arch.mbarrier_wait(full + n % 2, n // 2 % 2), where n
--   counts its executions, before ring_full.lua:35
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
      arch.mbarrier_wait(empty + k % 2, (k // 2 + 1) % 2)
      s[{t, k % 2}] = x[{t, k}]
      arch.mbarrier_arrive(full + k % 2)
    end
  end)
  cute.when(t:ge(32), function()
    for k in cute.range(6) do
      y[{t - 32, k}] = s[{63 - t, k % 2}]
      arch.mbarrier_arrive(empty + k % 2)
    end
  end)
end)
k(cute.randn({32, 6}, cute.f32), cute.empty({32, 6}, cute.f32)):launch {
  grid = 1, block = 64, device = "sim"}
