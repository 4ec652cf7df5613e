-- Loads tiles by TMA through a ring of stages: one warp loads, four warps read.
-- Fault: the copy fills another stage than the one whose mbarrier it signals.
-- expect: cutelua: simulator: kernel ring: 1 fault [kernel-fault]
-- expect: spec/faults/async-in-flight/ring_wrong_dest_stage.lua:65 in main
--   chunk
-- expect: ring_wrong_dest_stage.lua:55: read of shared memory while a bulk copy
--   to it is in flight (wait missing: mbarrier 'full'[2]; the last wait was at
--   mbarrier 'full'[0]): element 12 of shared tensor 's' [async-in-flight]
-- expect: the bulk copy: ring_wrong_dest_stage.lua:45, thread 128
-- expect: the wait completed the copy to coordinate (0,12,1), which no thread
--   has read: do the copy, the wait and this read use the same stage?
-- expect: 1 more may follow from it
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
      cute.copy(load, tg(_, t), ts(_, (i + 1) % STAGES),  -- wrong
        {tma_bar_ptr = full + i})  -- wrong
      -- mend: cute.copy(load, tg(_, t), ts(_, i), {tma_bar_ptr = full + i})
    end
  end)
  cute.when(warp:lt(4), function()
    for t in cute.range(TILES) do
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
