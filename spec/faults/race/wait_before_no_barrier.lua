-- Fault: no barrier follows thread 0's wait, before others refill the buffer.
-- expect: cutelua: simulator: kernel faulty: 1 fault [kernel-fault]
-- expect: spec/faults/race/wait_before_no_barrier.lua:43 in main chunk
-- expect: wait_before_no_barrier.lua:32: write after a read by a bulk copy
--   whose completion was not waited for: element 1 of shared tensor 's' [race]
-- expect: first access: wait_before_no_barrier.lua:37
-- expect: the threads that issued it have waited for it; put sync_threads(), or
--   an mbarrier that they arrive at, between their wait and this line
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

local k = cute.kernel("faulty", function(y)
  local t, s = arch.thread_idx(), smem(64)
  for k = 0, 1 do
    if k == 1 then
      thread0(function() arch.cp_async_bulk_wait_group(0, true) end)
      -- mend: arch.sync_threads()
    end
    s[t] = t:to(cute.f32)
    arch.fence_view_async_shared()
    arch.sync_threads()
    thread0(function()
      local from, to = run64(s, 0, y, k)
      cute.copy(STORE, from, to)
      arch.cp_async_bulk_commit_group()
    end)
  end
  thread0(function() arch.cp_async_bulk_wait_group(0) end)
end)
k(cute.zeros({128}, cute.f32)):launch {grid = 1, block = 64,
  device = "sim:sm_90a", seed = 1}
