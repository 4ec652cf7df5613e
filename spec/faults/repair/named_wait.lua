-- Fault: the readers arrive at a named barrier instead of waiting.
-- run: check --surgeon
-- expect: check: kernel k: bug
-- expect: named_wait.lua:22: read after a write by another warp with no barrier
--   in between: element 63 of shared tensor 's' [race]
-- expect: first access: named_wait.lua:18, thread 63
-- expect: arrive at an mbarrier, or a named barrier, after the write, and wait
--   there before the read: these threads have no common sync_threads()…
-- expect: fixed by cute.arch.barrier(1, 128) in place of
--   cute.arch.barrier_arrive(1, 128) at named_wait.lua:21
local cute = require "cute"
local arch = cute.arch

local k = cute.kernel("k", function(x, y)
  local t = arch.thread_idx()
  local s = cute.make_smem_tensor(cute.f32, cute.make_layout(64))
  cute.when(t:lt(64), function()
    s[t] = x[t]
    arch.barrier_arrive(1, 128)
  end, function()
    arch.barrier_arrive(1, 128)
    y[t - 64] = s[127 - t]
  end)
end)
k(cute.randn({64}, cute.f32), cute.empty({64}, cute.f32)):launch {grid = 1,
  block = 128, device = "sim"}
