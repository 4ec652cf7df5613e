-- try_wait may time out. Fault: its result is not tested.
-- expect: cutelua: simulator: kernel faulty: 1 fault [kernel-fault]
-- expect: spec/faults/async-in-flight/try_wait_answer.lua:50 in main chunk
-- expect: try_wait_answer.lua:47: read of shared memory while a bulk copy to it
--   is in flight (wait missing: mbarrier 'all'[0]): element 0 of shared tensor
--   's' [async-in-flight]
-- expect: the bulk copy: try_wait_answer.lua:43, thread 0
-- expect: wait for its mbarrier before the read
-- expect: 2 more may follow from it
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
  local bar = barriers {1}
  thread0(function()
    arch.mbarrier_arrive_and_expect_tx(bar, 256)
    local from, to = run64(x, 0, s)
    cute.copy(LOAD, from, to, {mbar_ptr = bar})
  end)
  local ok = arch.mbarrier_try_wait(bar, 0)
  -- mend: when(~ok, function() arch.mbarrier_wait(bar, 0) end)
  y[t] = s[t] + cute.where(ok, 1.0, 0.0)
  arch.mbarrier_wait(bar, 0)  -- wrong
end)
k(cute.zeros({64}, cute.f32), cute.zeros({64}, cute.f32)):launch {
  grid = 1, block = 64, device = "sim:sm_90a", seed = 1}
