-- Each block of a cluster of two multicasts half of a box to both. Fault: the
-- wait for an empty stage has the wrong parity.
-- expect: cutelua: simulator: kernel multicast: 1 fault [kernel-fault]
-- expect: spec/faults/deadlock/multicast_ask_parity.lua:62 in main chunk
-- expect: multicast_ask_parity.lua:39: no warp can go on: 1 thread of warp 2
--   waits at mbarrier 'empty'[0] for the end of phase 0 (parity 0), which lacks
--   4 of 4 arrivals [deadlock]
-- expect: an empty stage needs no reader in the first round: let the producer
--   wait for parity 1 first, then 0, 1, ...
-- expect: 1 more may follow from it
local cute = require "cute"
local arch, _ = cute.arch, cute._
local cpasync = cute.nvgpu.cpasync

local TILE, TILES = {32, 16}, 4
local ROWS = cute.make_layout(TILE, {16, 1})
local X = cute.zeros({32, 16 * TILES}, cute.f32)
local Y = cute.zeros({256 * TILES}, cute.f32)
local load, cX = cpasync.make_tiled_tma_atom(
  cpasync.CopyBulkTensorTileG2SMulticastOp(), X, ROWS, TILE,
  2)
local k = cute.kernel("multicast", function(load, cX, y)
  local tid, rank = arch.thread_idx(), arch.block_idx_in_cluster()
  local s = cute.make_smem_tensor(cute.f32, ROWS, 128)
  local full = arch.alloc_smem(cute.i64, 1)
  local empty = arch.alloc_smem(cute.i64, 1)
  local ts, tg = cpasync.tma_partition(load, rank, cute.make_layout(2),
    cute.group_modes(s, 0, 2), cute.group_modes(
      cute.local_tile(cX, TILE, {0, _}), 0, 2))
  cute.when(tid:eq(0), function()
    arch.mbarrier_init(full, 1)
    arch.mbarrier_init(empty, 4)
    arch.mbarrier_init_fence()
  end)
  arch.cluster_arrive()
  arch.cluster_wait()
  cute.when(tid:eq(64), function()
    for t in cute.range(TILES) do
      arch.mbarrier_wait(empty, t % 2, {scope = "cluster"})  -- wrong
      -- mend: arch.mbarrier_wait(empty, 1 - t % 2, {scope = "cluster"})
      arch.mbarrier_arrive_and_expect_tx(full, load.tx_bytes)
      local how = {tma_bar_ptr = full, mcast_mask = 3}
      cute.copy(load, tg(_, t), ts, how)
    end
  end)
  cute.when(tid:lt(64), function()
    for t in cute.range(TILES) do
      arch.mbarrier_wait(full, t % 2)
      local v = s[{tid // 2, tid % 2 * 8 + rank}]
      -- mend: arch.fence_view_async_shared()
      arch.sync_warp()
      cute.when(arch.lane_idx():lt(2), function()
        arch.mbarrier_arrive(empty, arch.lane_idx(), nil,
          {scope = "cluster"})
      end)
      y[tid + 64 * rank + 128 * t] = v
    end
  end)
  arch.cluster_arrive()
  arch.cluster_wait()
end)
k(load, cX, Y):launch {grid = 2, block = 96, cluster = 2,
  device = "sim:sm_90a", seed = 1}
