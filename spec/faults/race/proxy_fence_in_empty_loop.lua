-- Fault: the proxy fence is in a loop that some launches run zero times.
-- expect: cutelua: simulator: kernel faulty: 1 fault [kernel-fault]
-- expect: spec/faults/race/proxy_fence_in_empty_loop.lua:42 in main chunk
-- expect: proxy_fence_in_empty_loop.lua:37: read by a bulk copy after a
--   thread's write, with no fence_proxy("async") in between: element 0 of
--   shared tensor 's' [race]
-- expect: first access: proxy_fence_in_empty_loop.lua:28, thread 0
-- expect: call fence_view_async_shared() in the threads that wrote, then
--   synchronize at a barrier
local cute = require "cute"
local arch = cute.arch
local cpasync = cute.nvgpu.cpasync
local STORE = cute.make_copy_atom(cpasync.CopyBulkS2GOp(), cute.f32)

local function thread0(f) cute.when(arch.thread_idx():eq(0), f) end

local function smem(n, dtype)
  return cute.make_smem_tensor(dtype or cute.f32, cute.make_layout(n), 128)
end

local function run64(from, n, to, m)
  return cpasync.group_bulk_copy_modes(
    cute.local_tile(from, {64}, {n}), cute.local_tile(to, {64}, {m or 0}))
end

local k = cute.kernel("faulty", function(y, n)
  local t, s = arch.thread_idx(), smem(64)
  s[t] = 0
  for k in cute.range(n) do
    s[t] = s[t] + k:to(cute.f32)
    arch.fence_view_async_shared()
  end
  -- mend: arch.fence_view_async_shared()
  arch.sync_threads()
  thread0(function()
    local from, to = run64(s, 0, y)
    cute.copy(STORE, from, to)
    arch.cp_async_bulk_commit_group()
    arch.cp_async_bulk_wait_group(0)
  end)
end)
k(cute.zeros({64}, cute.f32), 0):launch {grid = 1, block = 64,
  device = "sim:sm_90a", seed = 1}
