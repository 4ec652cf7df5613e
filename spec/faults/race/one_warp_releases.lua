-- Fault: all threads of a block read a stage, but one warp releases it.
-- expect: cutelua: simulator: kernel faulty: 1 fault [kernel-fault]
-- expect: spec/faults/race/one_warp_releases.lua:56 in main chunk
-- expect: one_warp_releases.lua:42: write after a read by another warp with no
--   barrier in between: element 0 of shared tensor 's' [race]
-- expect: first access: one_warp_releases.lua:47, thread 64
-- expect: before the read, wait at the mbarrier of the copy
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
  local t, s, full = arch.thread_idx(), smem(64), barriers {1, 1, 1}
  when(t:eq(128), function()
    for k = 0, 1 do
      if k == 1 then arch.mbarrier_wait(full + 2, 0) end
      arch.mbarrier_arrive_and_expect_tx(full + k, 256)
      local from, to = run64(x, k, s)
      cute.copy(LOAD, from, to, {mbar_ptr = full + k})
    end
  end)
  when(t:lt(128), function()
    arch.mbarrier_wait(full, 0)
    y[t] = s[t % 64]
    arch.fence_view_async_shared()
    arch.sync_warp()  -- wrong
    -- mend: arch.barrier {barrier_id = 1, number_of_threads = 128}
    thread0(function() arch.mbarrier_arrive(full + 2) end)
    arch.mbarrier_wait(full + 1, 0)
    y[128 + t] = s[t % 64]
  end)
end)
k(cute.zeros({128}, cute.f32), cute.zeros({256}, cute.f32)):launch {
  grid = 1, block = 160, device = "sim:sm_90a", seed = 1}
