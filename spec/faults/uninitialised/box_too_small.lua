-- A bulk copy fills a tile, and the threads wait for it. Fault: the copy brings
-- only the first half of the tile.
-- expect: cutelua: simulator: kernel k: 1 fault [kernel-fault]
-- expect: box_too_small.lua:29: read of uninitialised memory: element 32 of
--   shared tensor 's' [uninitialised]
-- expect: the copy has not written this element: wait at its mbarrier, for its
--   stage and parity; if that wait is there, do the copy's source, destination
--   and rank (tma_partition) leave out a part of the tile?
local cute = require "cute"
local arch, cpasync = cute.arch, cute.nvgpu.cpasync
local N = 64
local X, Y = cute.zeros({N}, cute.f32), cute.zeros({N}, cute.f32)
local bytes, n = 128, 32  -- wrong
-- mend: local bytes, n = 256, 64
local atom = cute.make_copy_atom(cpasync.CopyBulkG2SOp(), cute.f32, 32 * n)
local k = cute.kernel("k", function(x, y)
  local t = arch.thread_idx()
  local s = cute.make_smem_tensor(cute.f32, cute.make_layout(N), 128)
  local full = arch.alloc_smem(cute.i64, 1)
  cute.when(t:eq(0), function()
    arch.mbarrier_init(full, 1)
    arch.mbarrier_init_fence()
    arch.mbarrier_arrive_and_expect_tx(full, bytes)
    cute.copy(atom, cute.local_tile(x, {n}, {0}), cute.local_tile(s, {n}, {0}),
              {mbar_ptr = full})
  end)
  arch.sync_threads()
  arch.mbarrier_wait(full, 0)
  y[t] = s[t]
end)
k(X, Y):launch {grid = 1, block = N, device = "sim", seed = 1}
