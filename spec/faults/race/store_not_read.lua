-- A TMA store reads a tile, and the next TMA load overwrites it. Fault: nothing
-- waits until the store has read the tile.
-- expect: cutelua: simulator: kernel k: 1 fault [kernel-fault]
-- expect: store_not_read.lua:34: write after a read by a bulk copy whose
--   completion was not waited for: element 0 of shared tensor 's' [race]
-- expect: before it is refilled, let the thread that started the copy wait
--   until it has read: cp_async_bulk_wait_group(n, true)
local cute = require "cute"
local arch, cpasync, _ = cute.arch, cute.nvgpu.cpasync, cute._
local ROWS, COLUMNS, TILES = 8, 32, 3
local layout = cute.make_layout({ROWS, COLUMNS}, {COLUMNS, 1})
local shape = {ROWS, COLUMNS * TILES}
local X, Y = cute.zeros(shape, cute.f32), cute.zeros(shape, cute.f32)
local load, mX = cpasync.make_tiled_tma_atom(
  cpasync.CopyBulkTensorTileG2SOp(), X, layout, {ROWS, COLUMNS})
local store, mY = cpasync.make_tiled_tma_atom(
  cpasync.CopyBulkTensorTileS2GOp(), Y, layout, {ROWS, COLUMNS})
local k = cute.kernel("k", function(load, mX, store, mY)
  local s = cute.make_smem_tensor(cute.f32, layout, 128)
  local full = arch.alloc_smem(cute.i64, 1)
  local sT = cute.group_modes(s, 0, 2)
  local function tiles(t)
    return cute.group_modes(cute.local_tile(t, {ROWS, COLUMNS}, {0, _}), 0, 2)
  end
  local one = cute.make_layout(1)
  local tXsX, tXgX = cpasync.tma_partition(load, 0, one, sT, tiles(mX))
  local tYsY, tYgY = cpasync.tma_partition(store, 0, one, sT, tiles(mY))
  cute.when(arch.thread_idx():eq(0), function()
    arch.mbarrier_init(full, 1)
    arch.mbarrier_init_fence()
    for tile = 0, TILES - 1 do
      -- mend: arch.cp_async_bulk_wait_group(0, true)
      arch.mbarrier_arrive_and_expect_tx(full, load.tx_bytes)
      cute.copy(load, tXgX(_, tile), tXsX, {tma_bar_ptr = full})
      arch.mbarrier_wait(full, tile % 2)
      cute.copy(store, tYsY, tYgY(_, tile))
      arch.cp_async_bulk_commit_group()
    end
    arch.cp_async_bulk_wait_group(0)
  end)
end)
k(load, mX, store, mY):launch {grid = 1, block = 32, device = "sim", seed = 1}
