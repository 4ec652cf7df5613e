-- Fault: no barrier separates the reads of a buffer and its next fill.
-- run: check --surgeon
-- expect: check: kernel k: bug
-- expect: barrier_in_loop.lua:17: write after a read by another warp with no
--   barrier in between: element 63 of shared tensor 's' [race]
-- expect: first access: barrier_in_loop.lua:19, thread 0
-- expect: put sync_threads() at the end of the loop of barrier_in_loop.lua:16
-- expect: fixed by cute.arch.sync_threads() before barrier_in_loop.lua:17, or
--   at the end of barrier_in_loop.lua:16
local cute = require "cute"
local arch = cute.arch

local k = cute.kernel("k", function(x, y)
  local t = arch.thread_idx()
  local s = cute.make_smem_tensor(cute.f32, cute.make_layout(64))
  for _ in cute.range(3) do
    s[t] = x[t]
    arch.sync_threads()
    y[t] = y[t] + s[63 - t]
  end
end)
k(cute.randn({64}, cute.f32), cute.zeros({64}, cute.f32)):launch {grid = 1,
  block = 64, device = "sim"}
