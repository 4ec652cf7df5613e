-- Fault: a changed tensor map is used without an acquire.
-- run: check --surgeon
-- expect: check: kernel k: bug
-- expect: tensormap_acquire.lua:29: this tensor map was changed but not
--   acquired afterwards: element 0 of global tensor 'm' [tensor-map]
-- expect: the other: tensormap_acquire.lua:26
-- expect: call fence_tma_desc_acquire() in the thread that copies, after a
--   barrier
-- expect: fixed by cute.nvgpu.cpasync.fence_tma_desc_acquire(...) of its map
--   before tensormap_acquire.lua:29
local cute = require "cute"
local arch, cpasync = cute.arch, cute.nvgpu.cpasync

local tile, layout = {1, 16}, cute.make_layout({1, 16}, {16, 1})
local atom, coords = cpasync.make_tiled_tma_atom(
  cpasync.CopyBulkTensorTileG2SOp(), cute.randn({32, 16}, cute.f32), layout,
  tile)
local k = cute.kernel("k", function(a, c, m, z)
  local s = cute.make_smem_tensor(cute.f32, layout, 128)
  local bar = arch.alloc_smem(cute.i64, 1)
  local ts, tg = cpasync.tma_partition(a, 0, cute.make_layout(1),
    cute.group_modes(s, 0, 2), cute.zipped_divide(c, tile))
  cute.when(arch.thread_idx():eq(0), function()
    arch.mbarrier_init(bar, 1)
    arch.mbarrier_init_fence()
    cpasync.copy_tensormap(a, m)
    cpasync.fence_tma_desc_release()
    arch.mbarrier_arrive_and_expect_tx(bar, a.tx_bytes)
    cute.copy(a, tg(cute._, 0), ts, {tma_bar_ptr = bar, tma_desc_ptr = m})
  end)
  arch.sync_threads()
  arch.mbarrier_wait(bar, 0)
  local t = arch.thread_idx()
  z[t] = s[{0, t}]
end)
k(atom, coords, cute.zeros({16}, cute.i64), cute.empty({16}, cute.f32))
  :launch {grid = 1, block = 16, device = "sim"}
