-- Loads tiles by TMA through a pipeline: one warp loads, four warps read.
-- Fault: the loading warp loads one tile more than is read.
-- expect: cutelua: simulator: kernel ring: 1 fault [kernel-fault]
-- expect: spec/faults/deadlock/pipe_one_tile_more.lua:56 in main chunk
-- expect: pipe_one_tile_more.lua:42: no warp can go on: 1 warp waits (warp
--   4) at mbarrier 'pipe_empty'[2] for the end of phase 2 (parity 0), which
--   lacks 4 of 4 arrivals; 4 warps exited without arriving [deadlock]
-- expect: made: pipe_one_tile_more.lua:29
-- expect: filled 9 stages, released 8, and this waits for one more: do both
--   loops count alike?
local cute = require "cute"
local arch, _ = cute.arch, cute._
local cpasync = cute.nvgpu.cpasync
local pipeline = cute.pipeline
local Agent, Group = pipeline.Agent, pipeline.CooperativeGroup
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
  local ts, tg = cpasync.tma_partition(load, 0, cute.make_layout(1),
    cute.group_modes(s, 0, 2), cute.group_modes(
      cute.local_tile(cX, TILE, {0, _}), 0, 2))
  local pipe = pipeline.PipelineTmaAsync {
    num_stages = STAGES, tx_count = load.tx_bytes,
    producer_group = Group(Agent.Thread),
    consumer_group = Group(Agent.Warp, 4)}
  cute.when(tid:eq(128), function()
    local write = pipe:make_producer_state()
    for t in cute.range(TILES + 1) do  -- wrong
    -- mend: for t in cute.range(TILES) do
      pipe:producer_acquire(write)
      cute.copy(load, tg(_, t), ts(_, write.index),
        {tma_bar_ptr = pipe:producer_get_barrier(write)})
      write:advance()
    end
    pipe:producer_tail(write)
  end)
  cute.when(warp:lt(4), function()
    local read = pipe:make_consumer_state()
    for t in cute.range(TILES) do
      pipe:consumer_wait(read)
      y[tid + t * 128] = s[{tid % 32, 4 * warp, read.index}]
      arch.fence_view_async_shared()
      arch.sync_warp()
      pipe:consumer_release(read)
      read:advance()
    end
  end)
end)
k(load, cX, Y):launch {grid = 1, block = 160,
  device = "sim:sm_90a", seed = 1}
