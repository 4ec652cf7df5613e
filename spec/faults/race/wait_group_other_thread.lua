-- Fault: lane 1 waits for the bulk store that lane 0 started.
-- expect: cutelua: simulator: kernel faulty: 1 fault [kernel-fault]
-- expect: spec/faults/race/wait_group_other_thread.lua:42 in main chunk
-- expect: wait_group_other_thread.lua:40: write after a read by a bulk copy
--   whose completion was not waited for: element 0 of shared tensor 's' [race]
-- expect: first access: wait_group_other_thread.lua:32
-- expect: a wait counts only for the threads that started the copy: let them
--   wait, then synchronize with the others at a barrier
-- expect: 1 more may follow from it
local cute = require "cute"
local arch = cute.arch
local cpasync = cute.nvgpu.cpasync
local when = cute.when
local STORE = cute.make_copy_atom(cpasync.CopyBulkS2GOp(), cute.f32)

local function smem(n, dtype)
  return cute.make_smem_tensor(dtype or cute.f32, cute.make_layout(n), 128)
end

local function run64(from, n, to, m)
  return cpasync.group_bulk_copy_modes(
    cute.local_tile(from, {64}, {n}), cute.local_tile(to, {64}, {m or 0}))
end

local k = cute.kernel("faulty", function(y)
  local t, s = arch.thread_idx(), smem(64)
  s[t], s[t + 32] = 1, 1
  arch.fence_view_async_shared()
  arch.sync_warp()
  when(t:eq(0), function()
    local from, to = run64(s, 0, y)
    cute.copy(STORE, from, to)
    arch.cp_async_bulk_commit_group()
  end)
  when(t:eq(1), function()  -- wrong
  -- mend: when(t:eq(0), function()
    arch.cp_async_bulk_wait_group(0, true)
  end)
  arch.sync_warp()
  s[t] = 2
end)
k(cute.zeros({64}, cute.f32)):launch {grid = 1, block = 32,
  device = "sim:sm_90a", seed = 1}
