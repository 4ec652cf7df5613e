-- Fault: the writers do not arrive at a named barrier.
-- run: check --surgeon
-- expect: check: kernel k: bug
-- expect: named_arrive.lua:21: no warp can go on: 2 warps wait (warp 2, 3) at
--   barrier 1, where 64 threads arrived and 128 are needed; 2 warps exited
--   without arriving [deadlock]
-- expect: no running thread arrives there: let the missing threads call
--   cute.arch.barrier_arrive(1, n), or name the number n of the threads that
--   arrive
-- expect: fixed by cute.arch.barrier_arrive(1, 128) at the end of
--   named_arrive.lua:18
local cute = require "cute"
local arch = cute.arch

local k = cute.kernel("k", function(x, y)
  local t = arch.thread_idx()
  local s = cute.make_smem_tensor(cute.f32, cute.make_layout(64))
  cute.when(t:lt(64), function()
    s[t] = x[t]
  end, function()
    arch.barrier(1, 128)
    y[t - 64] = s[127 - t]
  end)
end)
k(cute.randn({64}, cute.f32), cute.empty({64}, cute.f32)):launch {grid = 1,
  block = 128, device = "sim"}
