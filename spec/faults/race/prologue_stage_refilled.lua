-- Fault: the main loop refills a stage of the prologue before it was read.
-- expect: cutelua: simulator: kernel faulty: 1 fault [kernel-fault]
-- expect: spec/faults/race/prologue_stage_refilled.lua:56 in main chunk
-- expect: prologue_stage_refilled.lua:43: write after a read by another warp
--   with no barrier in between: element 32 of shared tensor 's' [race]
-- expect: first access: prologue_stage_refilled.lua:48, thread 32
-- expect: before it is refilled, wait until all threads have read: use an
--   mbarrier that counts the readers, each of which arrives after its
--   read; if one lane arrives for its warp, call sync_warp() before it
--   does…
-- expect: 1 more may follow from it
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
  local function ask(k)
    arch.mbarrier_arrive_and_expect_tx(full + k % 2, 256)
    local from, to = run64(x, k, s, k % 2)
    cute.copy(LOAD, from, to, {mbar_ptr = full + k % 2})
  end
  thread0(function() ask(0) ask(1) end)
  for k = 0, 2 do
    arch.mbarrier_wait(full + k % 2, k // 2)
    y[k * 64 + t] = s[k % 2 * 64 + t]
    -- mend: if k == 0 then
      -- mend: arch.fence_view_async_shared()
      -- mend: arch.sync_threads()
    -- mend: end
    if k == 0 then thread0(function() ask(2) end) end
  end
end)
k(cute.zeros({192}, cute.f32), cute.zeros({192}, cute.f32)):launch {
  grid = 1, block = 64, device = "sim:sm_90a", seed = 1}
