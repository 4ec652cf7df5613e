-- Fault: there are no tiles along K, but the epilogue waits for a tile.
-- expect: cutelua: simulator: kernel faulty: 1 fault [kernel-fault]
-- expect: spec/faults/deadlock/wait_for_no_tiles.lua:53 in main chunk
-- expect: wait_for_no_tiles.lua:47: no warp can go on: 2 warps wait (warp 0, 1)
--   at mbarrier 'all'[0] for the end of phase 0 (parity 0), which lacks 1 of 1
--   arrival [deadlock]
-- expect: made: wait_for_no_tiles.lua:25
-- expect: no running thread arrives there: initialize the mbarrier with the
--   number of threads that do, or let the missing threads arrive
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

local k = cute.kernel("faulty", function(x, y, n)
  local t, s, bar = arch.thread_idx(), smem(64), barriers {1}
  thread0(function()
    for _k in cute.range(n) do  -- luacheck: ignore _k
      arch.mbarrier_arrive_and_expect_tx(bar, 256)
      local from, to = run64(x, 0, s)
      cute.copy(LOAD, from, to, {mbar_ptr = bar})
    end
  end)
  local function wait()
    arch.mbarrier_wait(bar, 0)
    y[t] = s[t]
  end
  wait()  -- wrong
  -- mend: when(n:gt(0), wait)
end)
k(cute.zeros({64}, cute.f32), cute.zeros({64}, cute.f32), 0):launch {
  grid = 1, block = 64, device = "sim:sm_90a", seed = 1}
