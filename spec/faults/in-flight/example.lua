-- The example of the error kind `in-flight` in docs/errors.md.
-- expect: cutelua: register 0 of acc is used while the MMA of line 30 is still
--   in flight [in-flight]
-- expect: spec/faults/in-flight/example.lua:32 in kernel k
-- expect: commit it with cute.nvgpu.warpgroup.commit_group(), and before this
--   use call wait_group(0), or wait_group(n) with the n groups committed since
-- expect: hint: call warpgroup.fence(), the MMAs, commit_group(),
--   wait_group(0); use their registers only after that
local cute = require "cute"
local X = cute.zeros({32, 32}, cute.f32)

local warpgroup = cute.nvgpu.warpgroup
local mma = cute.make_tiled_mma(
  warpgroup.MmaF16BF16Op("bf16", "f32", {64, 64, 16}, "SMEM"))
local atom = warpgroup.make_smem_layout_atom("K_SW128", "bf16")
local k = cute.kernel("k", function(mX)
  local s = cute.make_smem_tensor(cute.bf16, cute.tile_to_shape(atom, {64, 64}),
                                  1024)
  local thr = mma:get_slice(cute.arch.thread_idx())  -- wrong
  -- mend: local tid = cute.arch.thread_idx()
  -- mend: cute.when(tid:eq(0), function() s:fill(0) end)
  -- mend: local thr = mma:get_slice(tid)
  local a = mma:make_fragment_A(thr:partition_A(s))
  local b = mma:make_fragment_B(thr:partition_B(s))
  local acc = thr:partition_fragment_C(cute.make_layout {64, 64})
  -- mend: cute.arch.fence_view_async_shared()
  -- mend: cute.arch.sync_threads()
  -- mend: mma:set(warpgroup.Field.ACCUMULATE, false)
  warpgroup.fence()
  cute.gemm(mma, acc, a, b, acc)
  warpgroup.commit_group()
  mX[{0, 0}] = acc[0]                              -- acc is still in flight  -- wrong
  warpgroup.wait_group(0)
  -- mend: cute.when(tid:eq(0), function() mX[{0, 0}] = acc[0] end)
end)
k(X):launch {grid = 1, block = 128, device = "sim:sm_90a"}
