-- The example of the error kind `tensor-map` in docs/errors.md.
-- expect: cutelua: simulator: kernel k: 1 fault [kernel-fault]
-- expect: spec/faults/tensor-map/report.lua:12 in run
-- expect: report.lua:32: this tensor map was changed but not released
--   afterwards: element 0 of global tensor 'maps' [tensor-map]
-- expect: the other: report.lua:29
-- expect: call fence_tma_desc_release() in the thread that changed it, or
--   cp_fence_tma_desc_release() from shared memory
local cute = require "cute"
local X = cute.zeros({32, 32}, cute.f32)
local function run(f, ...)
  cute.kernel("k", f)(...):launch {grid = 1, block = 32, device = "sim"}
end

local cpasync = cute.nvgpu.cpasync
local atom, coords = cpasync.make_tiled_tma_atom(
  cpasync.CopyBulkTensorTileS2GOp(), X,
  cute.make_ordered_layout({8, 32}, {1, 0}),
  {8, 32})
run(function(atom, coords, mX, maps)
  local s = cute.make_smem_tensor(cute.f32,
    cute.make_ordered_layout({8, 32}, {1, 0}), 128)
  local ts, tg = cpasync.tma_partition(atom, 0, cute.make_layout(1),
    cute.group_modes(s, 0, 2), cute.zipped_divide(coords, {8, 32}))
  cute.when(cute.arch.thread_idx():eq(0), function()
    s:fill(1)
    cute.arch.fence_view_async_shared()
    cpasync.copy_tensormap(atom, maps)
    cpasync.update_tma_descriptor(atom, mX, maps)
    -- mend: cpasync.fence_tma_desc_release()
    cpasync.fence_tma_desc_acquire(maps)
    cute.copy(atom, ts, tg(cute._, 0), {tma_desc_ptr = maps})
    cute.arch.cp_async_bulk_commit_group()
    cute.arch.cp_async_bulk_wait_group(0)
  end)
end, atom, coords, X, cute.zeros({16}, cute.i64))
