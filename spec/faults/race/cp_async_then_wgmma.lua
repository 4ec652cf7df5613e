-- Fault: no proxy fence follows the wait for cp.async, before wgmma reads.
-- expect: cutelua: simulator: kernel faulty: 1 fault [kernel-fault]
-- expect: spec/faults/race/cp_async_then_wgmma.lua:40 in main chunk
-- expect: cp_async_then_wgmma.lua:34: read by wgmma after a thread's write,
--   with no fence_proxy("async") in between: element 2048 of shared tensor 's'
--   [race]
-- expect: first access: cp_async_then_wgmma.lua:26, thread 0
-- expect: call fence_view_async_shared() in the threads that wrote, then
--   synchronize at a barrier
local cute = require "cute"
local arch = cute.arch
local cpasync = cute.nvgpu.cpasync
local warpgroup = cute.nvgpu.warpgroup

local mma = cute.make_tiled_mma(
  warpgroup.MmaF16BF16Op("bf16", "f32", {64, 64, 16}, "SMEM"))
local rows = cute.tile_to_shape(warpgroup.make_smem_layout_atom("K_SW128",
  "bf16"), {64, 64})
local copy = cute.make_tiled_copy_tv(cute.make_copy_atom(cpasync.CopyG2SOp(),
  cute.bf16, {num_bits_per_copy = 128}), cute.make_layout({16, 8}, {8, 1}),
  cute.make_layout {1, 8})
local k = cute.kernel("faulty", function(x, d)
  local tid = arch.thread_idx()
  local s = cute.make_smem_tensor(cute.bf16, rows, 1024)
  local part, thr = copy:get_slice(tid), mma:get_slice(tid)
  cute.copy(copy, part:partition_S(x), part:partition_D(s))
  arch.cp_async_commit_group()
  arch.cp_async_wait_group(0)
  -- mend: arch.fence_view_async_shared()
  arch.sync_threads()
  local acc = thr:partition_fragment_C(cute.make_layout {64, 64})
  warpgroup.fence()
  mma:set("ACCUMULATE", false)
  cute.gemm(mma, acc, mma:make_fragment_A(thr:partition_A(s)),
            mma:make_fragment_B(thr:partition_B(s)), acc)
  warpgroup.commit_group()
  warpgroup.wait_group(0)
  cute.autovec_copy(acc, thr:partition_C(d))
end)
k(cute.zeros({64, 64}, cute.bf16), cute.zeros({64, 64}, cute.f32)):launch {
  grid = 1, block = 128, device = "sim:sm_90a", seed = 1}
