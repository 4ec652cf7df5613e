-- Loads tiles by TMA through a ring; the thread that loads also reads tiles.
-- Fault: the loop before the main loop fills one stage too few.
-- expect: cutelua: simulator: kernel ring: 1 fault [kernel-fault]
-- expect: ring_prologue_short.lua:44: no warp can go on: 4 warps wait (warp 0,
--   1, 2, 3) at mbarrier 'full'[1] for the end of phase 2 (parity 0), which
--   lacks 1 of 1 arrival [deadlock]
-- expect: filled 7 stages, and this waits for one more, which no running thread
--   fills: do the copies before and in the loop fill a stage for each wait?
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
  local tid = arch.thread_idx()
  local s = cute.make_smem_tensor(cute.f32,
    cute.make_layout({32, 16, STAGES}, {16, 1, 512}), 128)
  local full = arch.alloc_smem(cute.i64, STAGES)
  local ts, tg = cpasync.tma_partition(load, 0, cute.make_layout(1),
    cute.group_modes(s, 0, 2), cute.group_modes(
      cute.local_tile(cX, TILE, {0, _}), 0, 2))
  local filled = 0
  local function fill(t)
    cute.when(tid:eq(0) & cute.lt(t, TILES), function()
      local bar = full + filled % STAGES
      arch.mbarrier_arrive_and_expect_tx(bar, load.tx_bytes)
      cute.copy(load, tg(_, t), ts(_, filled % STAGES), {tma_bar_ptr = bar})
    end)
    filled = filled + 1
  end
  cute.when(tid:eq(0), function()
    for i = 0, STAGES - 1 do arch.mbarrier_init(full + i, 1) end
    arch.mbarrier_init_fence()
  end)
  arch.sync_threads()
  for t = 0, STAGES - 3 do fill(t) end  -- wrong
  -- mend: for t = 0, STAGES - 2 do fill(t) end
  for t in cute.range(TILES) do
    arch.mbarrier_wait(full + t % STAGES, t // STAGES % 2)
    y[tid + t * 128] = s[{tid % 32, tid // 32, t % STAGES}]
    arch.fence_view_async_shared()
    arch.sync_threads()
    fill(t + STAGES - 1)
  end
end)
k(load, cX, Y):launch {grid = 1, block = 128,
  device = "sim:sm_90a", seed = 1}
