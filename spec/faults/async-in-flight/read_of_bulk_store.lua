-- Fault: a block reads its own output while the bulk store is still in flight.
-- expect: cutelua: simulator: kernel faulty: 1 fault [kernel-fault]
-- expect: spec/faults/async-in-flight/read_of_bulk_store.lua:42 in main chunk
-- expect: read_of_bulk_store.lua:40: read of global memory while a bulk copy to
--   it is in flight (the wait covered only its reads): element 0 of global
--   tensor 'y' [async-in-flight]
-- expect: the store: read_of_bulk_store.lua:34, thread 0
-- expect: call cp_async_bulk_wait_group(n) without `read`:
--   cp_async_bulk_wait_group(n, true) waits only until the source is read, not
--   until the copy is written
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

local k = cute.kernel("faulty", function(y, z)
  local t, s = arch.thread_idx(), smem(64)
  s[t] = 1
  arch.fence_view_async_shared()
  arch.sync_threads()
  thread0(function()
    local from, to = run64(s, 0, y)
    cute.copy(STORE, from, to)
    arch.cp_async_bulk_commit_group()
    arch.cp_async_bulk_wait_group(0, true)  -- wrong
    -- mend: arch.cp_async_bulk_wait_group(0)
  end)
  arch.sync_threads()
  z[t] = y[t]
end)
k(cute.zeros({64}, cute.f32), cute.zeros({64}, cute.f32)):launch {
  grid = 1, block = 64, device = "sim:sm_90a", seed = 1}
