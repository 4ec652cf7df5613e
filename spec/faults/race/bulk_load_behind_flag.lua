-- Fault: no proxy fence separates the wait for a flag and a bulk load.
-- expect: cutelua: simulator: kernel faulty: 1 fault [kernel-fault]
-- expect: spec/faults/race/bulk_load_behind_flag.lua:65 in main chunk
-- expect: bulk_load_behind_flag.lua:59: read by a bulk copy after a thread's
--   write, with no fence_proxy("async") and barrier in between: element 0 of
--   global tensor 'part' [race]
-- expect: first access: bulk_load_behind_flag.lua:48
-- expect: call fence_proxy("async.global") in the threads that wrote, before
--   they release it, or in the thread that copies, after its acquire
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

local function await(flag)
  local how = {sem = "acquire", scope = "gpu"}
  cute.loop(function()
    return arch.load(flag.iterator, nil, how):eq(0)
  end, function() end)
end

local function run64(from, n, to, m)
  return cpasync.group_bulk_copy_modes(
    cute.local_tile(from, {64}, {n}), cute.local_tile(to, {64}, {m or 0}))
end

local k = cute.kernel("faulty", function(part, y, flag)
  local t, s = arch.thread_idx(), smem(64)
  local bar = barriers {1}
  when(arch.block_idx():eq(0), function()
    part[t] = t:to(cute.f32)
    arch.sync_threads()
    thread0(function()
      arch.store(flag.iterator, 1, {sem = "release", scope = "gpu"})
    end)
  end, function()
    thread0(function()
      await(flag)
      -- mend: arch.fence_proxy "async.global"
      arch.mbarrier_arrive_and_expect_tx(bar, 256)
      local from, to = run64(part, 0, s)
      cute.copy(LOAD, from, to, {mbar_ptr = bar})
    end)
    arch.mbarrier_wait(bar, 0)
    y[t] = s[t]
  end)
end)
k(cute.zeros({64}, cute.f32), cute.zeros({64}, cute.f32),
  cute.zeros({1}, cute.i32)):launch {
  grid = 2, block = 64, device = "sim:sm_90a", seed = 1}
