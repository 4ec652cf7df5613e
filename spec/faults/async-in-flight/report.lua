-- The example of the error kind `async-in-flight` in docs/errors.md.
-- expect: cutelua: simulator: kernel k: 1 fault [kernel-fault]
-- expect: spec/faults/async-in-flight/report.lua:13 in run
-- expect: report.lua:29: read of shared memory while a cp.async to it is in
--   flight (wait missing): element 127 of shared tensor 's' [async-in-flight]
-- expect: the cp.async: report.lua:24, thread 31
-- expect: add cp_async_wait_group(n) with a smaller n, and sync_threads(),
--   before the read and after cp_async_commit_group()
-- expect: 1 more may follow from it
local cute = require "cute"
local X = cute.zeros({32, 32}, cute.f32)
local function run(f, ...)
  cute.kernel("k", f)(...):launch {grid = 1, block = 32, device = "sim"}
end

run(function(mX)
  local s = cute.make_smem_tensor(cute.f32, cute.make_layout {128}, 16)
  local g2s = cute.make_tiled_copy(
    cute.make_copy_atom("SM80_CP_ASYNC_CACHEALWAYS", cute.f32, 128),
    cute.make_layout {32}, cute.make_layout {4})
  local tid = cute.arch.thread_idx()
  local thr = g2s:get_slice(tid)
  local x = cute.make_tensor(mX.iterator, cute.make_layout {128})
  cute.copy(g2s, thr:partition_S(x), thr:partition_D(s))
  cute.arch.cp_async_commit_group()
  cute.arch.sync_threads()        -- orders threads, does not wait for copies  -- wrong
  -- mend: cute.arch.cp_async_wait_group(0)
  -- mend: cute.arch.sync_threads()
  mX[{tid, 31}] = s[127 - tid]
end, X)
