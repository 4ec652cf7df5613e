-- The example of the error kind `warpgroup-mismatch` in docs/errors.md.
-- expect: cutelua: simulator: kernel k: 1 fault [kernel-fault]
-- expect: spec/faults/warpgroup-mismatch/report.lua:15 in run
-- expect: report.lua:37: warp 0 issues a different MMA than the rest of its
--   warpgroup (warps 0 to 3), or uses different descriptors or ACCUMULATE
--   [warpgroup-mismatch]
-- expect: the other: the same line
-- expect: all 128 threads of a warpgroup must execute each of its MMAs with the
--   same operands: pass descriptors through make_warp_uniform
local cute = require "cute"
local X = cute.zeros({32, 32}, cute.f32)
local function run(launch, f, ...)
  launch.grid, launch.block = launch.grid or 1, launch.block or 32
  launch.device = "sim"
  cute.kernel("k", f)(...):launch(launch)
end

local warpgroup = cute.nvgpu.warpgroup
local mma = cute.make_tiled_mma(
  warpgroup.MmaF16BF16Op("bf16", "f32", {64, 64, 16}, "SMEM"))
local atom = warpgroup.make_smem_layout_atom("K_SW128", "bf16")
run({block = 128}, function(mX)
  local s = cute.make_smem_tensor(cute.bf16, cute.tile_to_shape(atom, {64, 64}),
                                  1024)
  local tid, warp = cute.arch.thread_idx(), cute.arch.warp_idx()
  cute.when(tid:eq(0), function() s:fill(0) end)
  cute.arch.fence_view_async_shared()
  cute.arch.sync_threads()
  local thr = mma:get_slice(tid)
  local a = mma:make_fragment_A(thr:partition_A(s))
  local b = mma:make_fragment_B(thr:partition_B(s))
  local acc = thr:partition_fragment_C(cute.make_layout {64, 64})
  acc:fill(0)
  mma:set(warpgroup.Field.ACCUMULATE, warp:lt(2))  -- wrong
  -- mend: mma:set(warpgroup.Field.ACCUMULATE, cute.arch.block_idx():lt(2))
  warpgroup.fence()
  cute.gemm(mma, acc, a, b, acc)
  warpgroup.commit_group()
  warpgroup.wait_group(0)
end, X)
