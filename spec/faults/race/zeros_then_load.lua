-- Fault: no proxy fence separates zeroing a partial tile and loading it.
-- expect: cutelua: simulator: kernel faulty: 1 fault [kernel-fault]
-- expect: spec/faults/race/zeros_then_load.lua:50 in main chunk
-- expect: zeros_then_load.lua:45: write by a bulk copy after a thread's write,
--   with no fence_proxy("async") in between: element 0 of shared tensor 's'
--   [race]
-- expect: first access: zeros_then_load.lua:39, thread 0
-- expect: call fence_view_async_shared() in the threads that wrote, then
--   synchronize at a barrier
local cute = require "cute"
local arch = cute.arch
local cpasync = cute.nvgpu.cpasync
local LOAD = cute.make_copy_atom(cpasync.CopyBulkG2SOp(), cute.f32)

local function thread0(f) cute.when(arch.thread_idx():eq(0), f) end

local function smem(n, dtype)
  return cute.make_smem_tensor(dtype or cute.f32, cute.make_layout(n), 128)
end

local function barriers(counts)
  local all = arch.alloc_smem(cute.i64, #counts)
  thread0(function()
    for i, n in ipairs(counts) do arch.mbarrier_init(all + (i - 1), n) end
    arch.mbarrier_init_fence()
  end)
  arch.sync_threads()
  return all
end

local function run64(from, n, to, m)
  return cpasync.group_bulk_copy_modes(
    cute.local_tile(from, {64}, {n}), cute.local_tile(to, {64}, {m or 0}))
end

local k = cute.kernel("faulty", function(x, y)
  local t, s = arch.thread_idx(), smem(64)
  local bar = barriers {1}
  s[t] = 0
  -- mend: arch.fence_view_async_shared()
  arch.sync_threads()
  thread0(function()
    arch.mbarrier_arrive_and_expect_tx(bar, 256)
    local from, to = run64(x, 0, s)
    cute.copy(LOAD, from, to, {mbar_ptr = bar})
  end)
  arch.mbarrier_wait(bar, 0)
  y[t] = s[t]
end)
k(cute.zeros({64}, cute.f32), cute.zeros({64}, cute.f32)):launch {
  grid = 1, block = 64, device = "sim:sm_90a", seed = 1}
