-- Fault: two of four warps exchange values with no barrier.
-- run: check --surgeon
-- expect: check: kernel k: bug
-- expect: barrier_of_some_warps.lua:19: read of an element that another warp
--   writes, with no barrier between the two lines: element 32 of shared tensor
--   's' [race]
-- expect: first access: barrier_of_some_warps.lua:18, thread 32
-- expect: put sync_threads() between the two lines, outside of the branch
-- expect: fixed by cute.arch.barrier(1, 64) before
--   barrier_of_some_warps.lua:19
local cute = require "cute"
local arch = cute.arch

local k = cute.kernel("k", function(x, y)
  local t = arch.thread_idx()
  local s = cute.make_smem_tensor(cute.f32, cute.make_layout(64))
  cute.when(t:lt(64), function()
    s[t] = x[t]
    y[t] = s[63 - t]
  end)
end)
k(cute.randn({64}, cute.f32), cute.empty({64}, cute.f32)):launch {grid = 1,
  block = 128, device = "sim"}
