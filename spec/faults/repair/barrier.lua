-- Fault: two warps exchange values with no barrier.
-- run: check --surgeon
-- expect: check: kernel k: bug
-- expect: barrier.lua:16: read of an element that another warp writes, with no
--   barrier between the two lines: element 32 of shared tensor 's' [race]
-- expect: first access: barrier.lua:15, thread 32
-- expect: put sync_threads() between the two lines
-- expect: fixed by cute.arch.sync_threads() before barrier.lua:16
local cute = require "cute"
local arch = cute.arch

local k = cute.kernel("k", function(x, y)
  local t = arch.thread_idx()
  local s = cute.make_smem_tensor(cute.f32, cute.make_layout(64))
  s[t] = x[t]
  y[t] = s[63 - t]
end)
k(cute.randn({64}, cute.f32), cute.zeros({64}, cute.f32)):launch {grid = 1,
  block = 64, device = "sim"}
