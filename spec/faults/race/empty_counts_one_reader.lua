-- Fault: both halves of a block read a stage, but only one half releases it.
-- expect: cutelua: simulator: kernel faulty: 1 fault [kernel-fault]
-- expect: spec/faults/race/empty_counts_one_reader.lua:62 in main chunk
-- expect: empty_counts_one_reader.lua:44: write after a read by another warp
--   with no barrier in between: element 32 of shared tensor 's' [race]
-- expect: first access: empty_counts_one_reader.lua:50, thread 32
-- expect: before it is refilled, wait until all threads have read: use an
--   mbarrier that counts the readers, each of which arrives after its
--   read; if one lane arrives for its warp, call sync_warp() before it
--   does…
-- expect: 1 more may follow from it
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

local k = cute.kernel("faulty", function(x, y)
  local t, s = arch.thread_idx(), smem(64)
  local bar = barriers {1, 1}  -- wrong
  -- mend: local bar = barriers {1, 2}
  when(t:eq(64), function()
    for k in cute.range(4) do
      arch.mbarrier_wait(bar + 1, (k + 1) % 2)
      arch.mbarrier_arrive_and_expect_tx(bar, 256)
      local from, to = cpasync.group_bulk_copy_modes(
        cute.local_tile(x, {64}, {k}), s)
      cute.copy(LOAD, from, to, {mbar_ptr = bar})
    end
  end)
  when(t:lt(64), function()
    for k in cute.range(4) do
      arch.mbarrier_wait(bar, k % 2)
      y[k * 64 + t] = s[t]
      arch.fence_view_async_shared()
      arch.sync_warp()
      when(arch.lane_idx():eq(0), function()
        when(arch.warp_idx():eq(0), function()  -- wrong
          arch.mbarrier_arrive(bar + 1)  -- wrong
        end)  -- wrong
        -- mend: arch.mbarrier_arrive(bar + 1)
      end)
    end
  end)
end)
k(cute.zeros({256}, cute.f32), cute.zeros({256}, cute.f32)):launch {
  grid = 1, block = 96, device = "sim:sm_90a", seed = 1}
