-- Loads one box by TMA, doubles it and stores it by TMA. Fault: the wait has
-- the wrong parity.
-- expect: cutelua: simulator: kernel box: 1 fault [kernel-fault]
-- expect: spec/faults/async-in-flight/box_wrong_parity.lua:59 in main chunk
-- expect: box_wrong_parity.lua:49: read of shared memory while a bulk copy to
--   it is in flight (the wait at mbarrier 'full'[0] passed before the end of
--   phase 0: wrong parity): element 0 of shared tensor 's' [async-in-flight]
-- expect: the bulk copy: box_wrong_parity.lua:43, thread 0
-- expect: the wait: box_wrong_parity.lua:45
-- expect: wait for the parity of this phase: 0 for the first, then 1, 0, ...
-- expect: 4 more may follow from it
local cute = require "cute"
local arch, _ = cute.arch, cute._
local cpasync = cute.nvgpu.cpasync

local TILE = {32, 16}
local ROWS = cute.make_layout(TILE, {16, 1})
local X = cute.zeros({32, 16}, cute.f32)
local Y = cute.zeros({32, 16}, cute.f32)
local function atom(op, t)
  return cpasync.make_tiled_tma_atom(op, t, ROWS, TILE)
end
local load, cX = atom(cpasync.CopyBulkTensorTileG2SOp(), X)
local store, cY = atom(cpasync.CopyBulkTensorTileS2GOp(), Y)
local k = cute.kernel("box", function(load, cX, store, cY)
  local tid = arch.thread_idx()
  local s = cute.make_smem_tensor(cute.f32, ROWS, 128)
  local d = cute.make_smem_tensor(cute.f32, ROWS, 128)
  local full = arch.alloc_smem(cute.i64, 1)
  local function part(a, t, c)
    return cpasync.tma_partition(a, 0, cute.make_layout(1),
      cute.group_modes(t, 0, 2), cute.zipped_divide(c, TILE))
  end
  local ts, tg = part(load, s, cX)
  local ds, dg = part(store, d, cY)
  cute.when(tid:eq(0), function()
    arch.mbarrier_init(full, 1)
    arch.mbarrier_init_fence()
  end)
  arch.sync_threads()
  cute.when(tid:eq(0), function()
    arch.mbarrier_arrive_and_expect_tx(full, load.tx_bytes)
    cute.copy(load, tg(_, 0), ts, {tma_bar_ptr = full})
  end)
  arch.mbarrier_wait(full, 1)  -- wrong
  -- mend: arch.mbarrier_wait(full, 0)
  for i = 0, 3 do
    local at = {tid // 4, tid % 4 * 4 + i}
    d[at] = s[at] * 2.0
  end
  arch.fence_view_async_shared()
  arch.sync_threads()
  cute.when(tid:eq(0), function()
    cute.copy(store, ds, dg(_, 0))
    arch.cp_async_bulk_commit_group()
    arch.cp_async_bulk_wait_group(0, true)
  end)
end)
k(load, cX, store, cY):launch {grid = 1, block = 128,
  device = "sim:sm_90a", seed = 1}
