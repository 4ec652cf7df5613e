-- Loads one box by TMA, doubles it and stores it by TMA. Fault: no proxy fence
-- precedes the TMA store.
-- expect: cutelua: simulator: kernel box: 1 fault [kernel-fault]
-- expect: spec/faults/race/box_no_proxy_fence.lua:57 in main chunk
-- expect: box_no_proxy_fence.lua:52: read by a bulk copy after a thread's
--   write, with no fence_proxy("async") in between: element 0 of shared tensor
--   'd' [race]
-- expect: first access: box_no_proxy_fence.lua:47, thread 0
-- expect: call fence_view_async_shared() in the threads that wrote, then
--   synchronize at a barrier
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
  arch.mbarrier_wait(full, 0)
  for i = 0, 3 do
    local at = {tid // 4, tid % 4 * 4 + i}
    d[at] = s[at] * 2.0
  end
  -- mend: arch.fence_view_async_shared()
  arch.sync_threads()
  cute.when(tid:eq(0), function()
    cute.copy(store, ds, dg(_, 0))
    arch.cp_async_bulk_commit_group()
    arch.cp_async_bulk_wait_group(0, true)
  end)
end)
k(load, cX, store, cY):launch {grid = 1, block = 128,
  device = "sim:sm_90a", seed = 1}
