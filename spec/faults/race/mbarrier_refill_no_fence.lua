-- All warps read a buffer and arrive at an mbarrier, then TMA refills it.
-- Fault: no proxy fence separates the reads from the copy.
-- run: check
-- expect: check: kernel faulty: ok
-- expect: note: mbarrier_refill_no_fence.lua:47: write by a bulk copy after a
--   thread's read, with no fence_proxy("async") in between: element 0 of shared
--   tensor 's' (first access: mbarrier_refill_no_fence.lua:52); PTX does not
--   guarantee this: PTX needs a fence between accesses through two proxies:
--   call fence_view_async_shared() in the threads that read, before they
--   arrive, or in the thread that copies, after its wait
local cute = require "cute"
local arch = cute.arch
local cpasync = cute.nvgpu.cpasync
local when = cute.when
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
  local full = barriers {1, 1, 128}
  when(t:eq(128), function()
    for k = 0, 1 do
      if k == 1 then arch.mbarrier_wait(full + 2, 0) end
      -- mend: if k == 1 then arch.fence_view_async_shared() end
      arch.mbarrier_arrive_and_expect_tx(full + k, 256)
      local from, to = run64(x, k, s)
      cute.copy(LOAD, from, to, {mbar_ptr = full + k})
    end
  end)
  when(t:lt(128), function()
    arch.mbarrier_wait(full, 0)
    y[t] = s[t % 64]
    arch.mbarrier_arrive(full + 2)
  end)
  arch.mbarrier_wait(full + 1, 0)
  when(t:lt(64), function() y[t] = y[t] + s[t] end)
end)
k(cute.zeros({128}, cute.f32), cute.zeros({128}, cute.f32)):launch {
  grid = 1, block = 160, device = "sim:sm_90a"}
