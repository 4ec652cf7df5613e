-- Fault: commit, wait and barrier of a group of copies are missing.
-- run: check --surgeon
-- expect: check: kernel k: bug
-- expect: cp_async_all.lua:22: read of shared memory while a cp.async to it is
--   in flight (it is in no group: commit missing): element 127 of shared tensor
--   's' [async-in-flight]
-- expect: the cp.async: cp_async_all.lua:20, thread 31
-- expect: call cp_async_commit_group() after the copy, then
--   cp_async_wait_group(n); or let it arrive at an mbarrier (PipelineAsync
--   {cp_async = true})
-- expect: fixed by cute.arch.cp_async_commit_group()
--   cute.arch.cp_async_wait_group(0) cute.arch.sync_threads() before
--   cp_async_all.lua:22
local cute = require "cute"
local arch = cute.arch

local k = cute.kernel("k", function(x, y)
  local t = arch.thread_idx()
  local s = cute.make_smem_tensor(cute.f32, cute.make_layout(256), 128)
  cute.copy(cute.make_copy_atom("SM80_CP_ASYNC_CACHEALWAYS", cute.f32, 128),
    cute.local_tile(x, {4}, {t}), cute.local_tile(s, {4}, {t}))
  y[t] = s[255 - t * 4]
end)
k(cute.randn({256}, cute.f32), cute.empty({64}, cute.f32)):launch {grid = 1,
  block = 64, device = "sim"}
