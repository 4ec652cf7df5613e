-- Fault: nothing waits for a group of copies.
-- run: check --surgeon
-- expect: check: kernel k: bug
-- expect: cp_async_wait.lua:22: read of shared memory while a cp.async to it is
--   in flight (wait missing): element 127 of shared tensor 's'
--   [async-in-flight]
-- expect: the cp.async: cp_async_wait.lua:18, thread 31
-- expect: add cp_async_wait_group(n) with a smaller n, and sync_threads(),
--   before the read and after cp_async_commit_group()
-- expect: fixed by cute.arch.cp_async_wait_group(0) before
--   cp_async_wait.lua:21
local cute = require "cute"
local arch = cute.arch

local k = cute.kernel("k", function(x, y)
  local t = arch.thread_idx()
  local s = cute.make_smem_tensor(cute.f32, cute.make_layout(256), 128)
  cute.copy(cute.make_copy_atom("SM80_CP_ASYNC_CACHEALWAYS", cute.f32, 128),
    cute.local_tile(x, {4}, {t}), cute.local_tile(s, {4}, {t}))
  arch.cp_async_commit_group()
  arch.sync_threads()
  y[t] = s[255 - t * 4]
end)
k(cute.randn({256}, cute.f32), cute.empty({64}, cute.f32)):launch {grid = 1,
  block = 64, device = "sim"}
