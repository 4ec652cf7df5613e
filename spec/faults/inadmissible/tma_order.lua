-- Fault: the TMA atom's layout is row-major, but shared memory column-major.
-- expect: cutelua: cute.copy: the atom was made for another layout: value 1 of
--   a box in shared memory is 1 after the first along mode 0 of the tensor map,
--   not 0 [inadmissible]
-- expect: make the atom and the tensor from the same layout
local cute = require "cute"
local arch, cpasync = cute.arch, cute.nvgpu.cpasync

local rows = cute.make_layout({8, 32}, {32, 1})
local columns = cute.make_layout {8, 32}
local load_tile = cute.kernel("load_tile", function(load, mA, B)
  local s = cute.make_smem_tensor(cute.f32, columns, 128)  -- wrong
  -- mend: local s = cute.make_smem_tensor(cute.f32, rows, 128)
  local bar = arch.alloc_smem(cute.i64, 1)
  local tid = arch.thread_idx()
  local tAsA, tAgA = cpasync.tma_partition(load, 0, cute.make_layout(1),
    cute.group_modes(s, 0, 2), cute.group_modes(mA, 0, 2))
  cute.when(tid:eq(0), function()
    arch.mbarrier_init(bar, 1)
    arch.mbarrier_init_fence()
    arch.mbarrier_arrive_and_expect_tx(bar, load.tx_bytes)
    cute.copy(load, tAgA, tAsA, {tma_bar_ptr = bar})
  end)
  arch.sync_threads()
  arch.mbarrier_wait(bar, 0)
  for i = 0, 7 do B[{i, tid}] = s[{i, tid}] end
end)

local A, B = cute.ones({8, 32}, "f32"), cute.zeros({8, 32}, "f32")
local load, mA = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileG2SOp(),
  A, rows, {8, 32})
load_tile(load, mA, B):launch {grid = 1, block = 32, device = "sim:sm_90a"}
