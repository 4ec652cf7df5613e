-- Two warps load a tile each by TMA, one after the other, to the same shared
-- tensor. Fault: the mbarrier expects no bytes for the first load, so the wait
-- before the second load passes early.
-- expect: cutelua: simulator: kernel k: 1 fault [kernel-fault]
-- expect: loaded_twice.lua:35: write after a write by a bulk copy whose
--   completion was not waited for: element 0 of shared tensor 's' [race]
-- expect: before it is refilled, wait at the mbarrier of the first copy; if
--   that wait is there, does the mbarrier expect the bytes of all copies, so
--   that the wait does not pass early?
local cute = require "cute"
local arch, cpasync, _ = cute.arch, cute.nvgpu.cpasync, cute._
local layout = cute.make_layout({8, 32}, {32, 1})
local X, Y = cute.zeros({8, 64}, cute.f32), cute.zeros({8, 32}, cute.f32)
local load, mX = cpasync.make_tiled_tma_atom(
  cpasync.CopyBulkTensorTileG2SOp(), X, layout, {8, 32})
cute.kernel("k", function(atom, coords, y)
  local tid = arch.thread_idx()
  local s = cute.make_smem_tensor(cute.f32, layout, 128)
  local full = arch.alloc_smem(cute.i64, 1)
  local to, from = cpasync.tma_partition(atom, 0, cute.make_layout(1),
    cute.group_modes(s, 0, 2), cute.zipped_divide(coords, {8, 32}))
  cute.when(tid:eq(0), function()
    arch.mbarrier_init(full, 1)
    arch.mbarrier_init_fence()
  end)
  arch.sync_threads()
  for tile = 0, 1 do
    cute.when(tid:eq(32 * tile), function()
      if tile == 0 then
        arch.mbarrier_arrive(full)  -- wrong
        -- mend: arch.mbarrier_arrive_and_expect_tx(full, atom.tx_bytes)
      else
        arch.mbarrier_arrive_and_expect_tx(full, atom.tx_bytes)
      end
      cute.copy(atom, from(_, tile), to, {tma_bar_ptr = full})
    end)
    arch.mbarrier_wait(full, tile)
    arch.sync_threads()
  end
  for i = 0, 1 do
    local at = {tid // 16, tid % 16 * 2 + i}
    y[at] = s[at]
  end
end)(load, mX, Y):launch {grid = 1, block = 128, device = "sim:sm_90a",
                         seed = 7}
