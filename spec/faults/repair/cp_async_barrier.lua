-- Fault: no barrier follows the wait for a group of copies.
-- run: check --surgeon
-- expect: check: kernel k: bug
-- expect: cp_async_barrier.lua:20: read of an element that another warp writes,
--   with no barrier between the two lines: element 131 of shared tensor 's'
--   [race]
-- expect: first access: cp_async_barrier.lua:16, thread 32
-- expect: put sync_threads() between the two lines
-- expect: fixed by cute.arch.sync_threads() before cp_async_barrier.lua:20
local cute = require "cute"
local arch = cute.arch

local k = cute.kernel("k", function(x, y)
  local t = arch.thread_idx()
  local s = cute.make_smem_tensor(cute.f32, cute.make_layout(256), 128)
  cute.copy(cute.make_copy_atom("SM80_CP_ASYNC_CACHEALWAYS", cute.f32, 128),
    cute.local_tile(x, {4}, {t}), cute.local_tile(s, {4}, {t}))
  arch.cp_async_commit_group()
  arch.cp_async_wait_group(0)
  y[t] = s[255 - t * 4]
end)
k(cute.randn({256}, cute.f32), cute.empty({64}, cute.f32)):launch {grid = 1,
  block = 64, device = "sim"}
