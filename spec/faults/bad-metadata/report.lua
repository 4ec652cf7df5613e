-- The example of the error kind `bad-metadata` in docs/errors.md.
-- expect: cutelua: simulator: kernel k: 1 fault [kernel-fault]
-- expect: spec/faults/bad-metadata/report.lua:15 in run
-- expect: report.lua:40: the metadata of a sparse A has 0x0 for a group of 4
--   elements, which selects element 0 twice: it must select two different
--   elements of four [bad-metadata]
-- expect: create the metadata of a matrix with cute.nvgpu.sparse.compress and
--   partition it with partition_E; for tensor memory, give it the layout of
--   make_sparse_smem_layout_e
local cute = require "cute"
local X = cute.zeros({32, 32}, cute.f32)
local function run(launch, f, ...)
  launch.grid, launch.block = launch.grid or 1, launch.block or 32
  launch.device = "sim"
  cute.kernel("k", f)(...):launch(launch)
end

local warpgroup = cute.nvgpu.warpgroup
local mma = cute.make_tiled_mma(
  warpgroup.MmaF16BF16SparseOp("bf16", "f32", {64, 8, 32}, "SMEM"))
local atom = warpgroup.make_smem_layout_atom("K_SW64", "bf16")
run({block = 128}, function(mX)
  local s = cute.make_smem_tensor(cute.bf16, cute.tile_to_shape(atom, {64, 32}),
                                  1024)
  local tid = cute.arch.thread_idx()
  cute.when(tid:eq(0), function() s:fill(0) end)
  cute.arch.fence_view_async_shared()
  cute.arch.sync_threads()
  local thr = mma:get_slice(tid)
  local tA = cute.local_tile(s, {64, 16}, {0, 0})
  local tB = cute.local_tile(s, {8, 32}, {0, 0})
  local a = mma:make_fragment_A(thr:partition_A(tA))
  local b = mma:make_fragment_B(thr:partition_B(tB))
  local e = mma:partition_fragment_E(cute.make_layout {64, 2})
  local acc = thr:partition_fragment_C(cute.make_layout {64, 8})
  acc:fill(0)
  e:fill(0)                              -- selects the first element twice  -- wrong
  -- mend: e:fill(0x4444)                         -- the first two of each four
  warpgroup.fence()
  cute.gemm(mma, acc, {a, e}, b, acc)
  warpgroup.commit_group()
  warpgroup.wait_group(0)
end, X)
