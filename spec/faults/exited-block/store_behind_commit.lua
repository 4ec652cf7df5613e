-- Fault: a store follows the last commit, so nothing waits for it.
-- expect: cutelua: simulator: kernel faulty: 1 fault [kernel-fault]
-- expect: spec/faults/exited-block/store_behind_commit.lua:39 in main chunk
-- expect: store_behind_commit.lua:34: block (0,0,0) may exit before a copy to
--   or from its shared memory completes: none of its threads waits for the copy
--   [exited-block]
-- expect: wait before the block exits: for a load, at its mbarrier; for a
--   store, with cp_async_bulk_commit_group() and cp_async_bulk_wait_group(0) in
--   its thread
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
  s[t] = 1
  arch.fence_view_async_shared()
  arch.sync_threads()
  thread0(function()
    arch.cp_async_bulk_commit_group()  -- wrong
    local from, to = run64(s, 0, y)
    cute.copy(STORE, from, to)
    -- mend: arch.cp_async_bulk_commit_group()
    arch.cp_async_bulk_wait_group(0)
  end)
end)
k(cute.zeros({64}, cute.f32)):launch {grid = 1, block = 64,
  device = "sim:sm_90a", seed = 1}
