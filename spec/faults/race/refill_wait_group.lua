-- One thread loads and stores two stages. Fault: before a refill, it waits for
-- the store of the other stage, not of the same stage.
-- expect: cutelua: simulator: kernel faulty: 1 fault [kernel-fault]
-- expect: spec/faults/race/refill_wait_group.lua:61 in main chunk
-- expect: refill_wait_group.lua:49: write after a read by a bulk copy whose
--   completion was not waited for: element 64 of shared tensor 's' [race]
-- expect: first access: refill_wait_group.lua:55
-- expect: the wait leaves its group pending: cp_async_bulk_wait_group(1) waits
--   for that group too
local cute = require "cute"
local arch = cute.arch
local cpasync = cute.nvgpu.cpasync
local LOAD = cute.make_copy_atom(cpasync.CopyBulkG2SOp(), cute.f32)
local STORE = cute.make_copy_atom(cpasync.CopyBulkS2GOp(), cute.f32)

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
  local s, full = smem(128), barriers {1, 1}
  thread0(function()
    for t = 0, 3 do
      local i = t % 2
      if t >= 2 then
        arch.cp_async_bulk_wait_group(t - 1, true)  -- wrong
        -- mend: arch.cp_async_bulk_wait_group(0, true)
      end
      arch.mbarrier_arrive_and_expect_tx(full + i, 256)
      local from, to = run64(x, t, s, i)
      if t >= 2 then
        cute.copy(LOAD, from, to, {mbar_ptr = full + i})
      else
        cute.copy(LOAD, from, to, {mbar_ptr = full + i})
      end
      arch.mbarrier_wait(full + i, t // 2)
      local out, back = run64(s, i, y, t)
      cute.copy(STORE, out, back)
      arch.cp_async_bulk_commit_group()
    end
    arch.cp_async_bulk_wait_group(0)
  end)
end)
k(cute.zeros({256}, cute.f32), cute.zeros({256}, cute.f32)):launch {
  grid = 1, block = 32, device = "sim:sm_90a", seed = 1}
