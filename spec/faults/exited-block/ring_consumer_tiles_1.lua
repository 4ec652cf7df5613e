-- Loads tiles by TMA through a ring of stages: one warp loads, four warps read.
-- Fault: one tile fewer is read than is loaded.
-- expect: cutelua: simulator: kernel ring: 1 fault [kernel-fault]
-- expect: spec/faults/exited-block/ring_consumer_tiles_1.lua:60 in main chunk
-- expect: ring_consumer_tiles_1.lua:41: block (0,0,0) may exit before a copy to
--   or from its shared memory completes: none of its threads waits for the copy
--   [exited-block]
-- expect: filled 8 stages, released 7: do both loops count alike?
local cute = require "cute"
local arch, _ = cute.arch, cute._
local cpasync = cute.nvgpu.cpasync

local TILE, STAGES, TILES = {32, 16}, 3, 8
local ROWS = cute.make_layout(TILE, {16, 1})
local X = cute.zeros({32, 16 * TILES}, cute.f32)
local Y = cute.zeros({128 * TILES}, cute.f32)
local load, cX = cpasync.make_tiled_tma_atom(
  cpasync.CopyBulkTensorTileG2SOp(), X, ROWS, TILE)
local k = cute.kernel("ring", function(load, cX, y)
  local tid, warp = arch.thread_idx(), arch.warp_idx()
  local s = cute.make_smem_tensor(cute.f32,
    cute.make_layout({32, 16, STAGES}, {16, 1, 512}), 128)
  local full = arch.alloc_smem(cute.i64, STAGES)
  local empty = arch.alloc_smem(cute.i64, STAGES)
  local ts, tg = cpasync.tma_partition(load, 0, cute.make_layout(1),
    cute.group_modes(s, 0, 2), cute.group_modes(
      cute.local_tile(cX, TILE, {0, _}), 0, 2))
  cute.when(tid:eq(0), function()
    for i = 0, STAGES - 1 do
      arch.mbarrier_init(full + i, 1)
      arch.mbarrier_init(empty + i, 4)
    end
    arch.mbarrier_init_fence()
  end)
  arch.sync_threads()
  cute.when(tid:eq(128), function()
    for t in cute.range(TILES) do
      local i, turn = t % STAGES, t // STAGES % 2
      arch.mbarrier_wait(empty + i, 1 - turn)
      arch.mbarrier_arrive_and_expect_tx(full + i, load.tx_bytes)
      cute.copy(load, tg(_, t), ts(_, i), {tma_bar_ptr = full + i})
    end
  end)
  cute.when(warp:lt(4), function()
    for t in cute.range(TILES - 1) do  -- wrong
    -- mend: for t in cute.range(TILES) do
      local i, turn = t % STAGES, t // STAGES % 2
      arch.mbarrier_wait(full + i, turn)
      local row, at = tid % 32, 4 * warp
      local sum = s[{row, at, i}] + s[{row, at + 1, i}]
      -- mend: arch.fence_view_async_shared()
      arch.sync_warp()
      cute.when(arch.lane_idx():eq(0), function()
        arch.mbarrier_arrive(empty + i)
      end)
      y[tid + t * 128] = sum
    end
  end)
end)
k(load, cX, Y):launch {grid = 1, block = 160,
  device = "sim:sm_90a", seed = 1}
