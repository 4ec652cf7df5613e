-- Fault: lanes of one warp exchange values with no sync_warp.
-- run: check --surgeon
-- expect: check: kernel k: bug
-- expect: sync_warp.lua:17: read of an element that another lane of the warp
--   writes, with no __syncwarp between the two lines: element 1 of shared
--   tensor 's' [warp-race]
-- expect: first access: sync_warp.lua:16, thread 1
-- expect: put cute.arch.sync_warp() between the two lines
-- expect: fixed by cute.arch.sync_warp() before sync_warp.lua:17
local cute = require "cute"
local arch = cute.arch

local k = cute.kernel("k", function(x, y)
  local t = arch.thread_idx()
  local s = cute.make_smem_tensor(cute.f32, cute.make_layout(64))
  s[t] = x[t]
  y[t] = s[t ~ 1]
end)
k(cute.randn({64}, cute.f32), cute.zeros({64}, cute.f32)):launch {grid = 1,
  block = 64, device = "sim"}
