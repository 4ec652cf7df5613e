-- Fault: the copy fills one stage and signals the mbarrier of the next stage.
-- expect: cutelua: simulator: kernel faulty: 1 fault [kernel-fault]
-- expect: spec/faults/async-in-flight/next_stage_mbarrier.lua:52 in main chunk
-- expect: next_stage_mbarrier.lua:48: read of shared memory while a bulk copy
--   to it is in flight (wait missing: mbarrier 'all'[1]; the last wait was at
--   mbarrier 'all'[0]): element 32 of shared tensor 's' [async-in-flight]
-- expect: the bulk copy: next_stage_mbarrier.lua:42, thread 0
-- expect: wait at the mbarrier of this copy: do the copy, its mbarrier, the
--   wait and this read use the same stage?
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
  local t, s, full = arch.thread_idx(), smem(128), barriers {1, 1}
  for i = 0, 1 do
    thread0(function()
      arch.mbarrier_arrive_and_expect_tx(full + i, 256)
      local from, to = run64(x, i, s, i)
      cute.copy(LOAD, from, to, {mbar_ptr = full + (1 - i)})  -- wrong
      -- mend: cute.copy(LOAD, from, to, {mbar_ptr = full + i})
    end)
  end
  for i = 0, 1 do
    arch.mbarrier_wait(full + i, 0)
    y[i * 64 + t] = s[i * 64 + t]
    if i == 0 then s[64 + t] = 0 end  -- wrong
  end
end)
k(cute.zeros({128}, cute.f32), cute.zeros({128}, cute.f32)):launch {
  grid = 1, block = 64, device = "sim:sm_90a", seed = 1}
