-- Fault: a tensor map that changes in a loop is acquired only once.
-- expect: cutelua: simulator: kernel faulty: 1 fault [kernel-fault]
-- expect: spec/faults/tensor-map/map_acquired_once.lua:54 in main chunk
-- expect: map_acquired_once.lua:46: this tensor map was changed but not
--   acquired afterwards: element 0 of global tensor 'map' [tensor-map]
-- expect: the other: map_acquired_once.lua:38
-- expect: call fence_tma_desc_acquire() in the thread that copies, after a
--   barrier
local cute = require "cute"
local arch = cute.arch
local cpasync = cute.nvgpu.cpasync
local _ = cute._

local function thread0(f) cute.when(arch.thread_idx():eq(0), f) end

local function barriers(counts)
  local all = arch.alloc_smem(cute.i64, #counts)
  thread0(function()
    for i, n in ipairs(counts) do arch.mbarrier_init(all + (i - 1), n) end
    arch.mbarrier_init_fence()
  end)
  arch.sync_threads()
  return all
end

local layout = cute.make_layout({32, 16}, {16, 1})
local load, cX = cpasync.make_tiled_tma_atom(
  cpasync.CopyBulkTensorTileG2SOp(), cute.zeros({32, 16}, cute.f32), layout,
  {32, 16})
local k = cute.kernel("faulty", function(a, c, other, map, y)
  local t, bar = arch.thread_idx(), barriers {1}
  local s = cute.make_smem_tensor(cute.f32, layout, 128)
  local ts, tg = cpasync.tma_partition(a, 0, cute.make_layout(1),
    cute.group_modes(s, 0, 2), cute.zipped_divide(c, {32, 16}))
  for k = 0, 1 do
    thread0(function()
      cpasync.copy_tensormap(a, map)
      if k == 1 then cpasync.update_tma_descriptor(a, other, map) end
      cpasync.fence_tma_desc_release()
    end)
    arch.sync_warp()
    if k == 0 then cpasync.fence_tma_desc_acquire(map) end  -- wrong
    -- mend: cpasync.fence_tma_desc_acquire(map)
    thread0(function()
      arch.mbarrier_arrive_and_expect_tx(bar, a.tx_bytes)
      cute.copy(a, tg(_, 0), ts, {tma_bar_ptr = bar, tma_desc_ptr = map})
    end)
    arch.mbarrier_wait(bar, k)
    y[k * 32 + t] = s[{t, 0}]
    arch.fence_view_async_shared()
    arch.sync_warp()
  end
end)
k(load, cX, cute.zeros({32, 16}, cute.f32), cute.zeros({16}, cute.i64),
  cute.zeros({64}, cute.f32)):launch {
  grid = 1, block = 32, device = "sim:sm_90a", seed = 1}
