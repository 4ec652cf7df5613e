--- Three small kernels. Their golden CUDA C, golden_*.cu, has line numbers of
-- this file, so rewrite it after a change (see emit_spec.lua).
local cute = require "cute"
local _ = cute._

local golden = {}

function golden.saxpy()
  local x, y = cute.zeros({4096}, cute.f32), cute.zeros({4096}, cute.f32)
  return cute.kernel("saxpy", function(a, mX, mY, n)
    local i = cute.arch.block_idx() * cute.arch.block_dim()
      + cute.arch.thread_idx()
    cute.when(i:lt(n), function()
      mY[i] = cute.fma(a, mX[i], mY[i])
    end)
  end)(2.5, x, y, 4000):trace {block = 128}
end

-- Returns a kernel that sums 64 rows of bf16 in f32, with a warp for each row.
function golden.rowsum()
  local m = cute.zeros({64, 1024}, cute.bf16)
  local sums = cute.zeros({64}, cute.f32)
  return cute.kernel("rowsum", function(mX, mSum)
    local warp, lane = cute.arch.warp_idx(), cute.arch.lane_idx()
    local row = cute.arch.block_idx() * 4 + warp
    local tXgX = cute.local_tile(mX, {1, 256}, {row, _})   -- (1,256,tiles)
    local sum = 0.0
    for tile in cute.range(4) do
      local part = cute.local_tile(tXgX(0, _, tile), {8}, {lane})  -- (8)
      local v = part:load():to(cute.f32)
      for j = 0, 7 do sum = sum + v[j] end
    end
    local shift = 16
    while shift > 0 do
      sum = sum + cute.arch.shuffle_sync_bfly(sum, shift)
      shift = shift // 2
    end
    cute.when(lane:eq(0), function() mSum[row] = sum end)
  end)(m, sums):trace {block = 128}
end

-- Returns a one-warp kernel: 16x16 times 16x8, through shared memory.
function golden.warpmma()
  local a = cute.zeros({16, 16}, cute.bf16)
  local b = cute.zeros({8, 16}, cute.bf16)
  local c = cute.zeros({16, 8}, cute.f32)
  local g2s = cute.make_tiled_copy(
    cute.make_copy_atom("SM80_CP_ASYNC_CACHEGLOBAL", cute.bf16, 128),
    cute.make_layout({16, 2}, {2, 1}), cute.make_layout {1, 8})
  local mma = cute.make_tiled_mma("SM80_16x8x16_F32BF16BF16F32_TN")
  local s2r = cute.make_tiled_copy_A(
    cute.make_copy_atom("SM75_U32x4_LDSM_N", cute.bf16), mma)
  return cute.kernel("warpmma", function(mA, mB, mC)
    local tid = cute.arch.thread_idx()
    local sA = cute.make_smem_tensor(cute.bf16,
      cute.make_layout({16, 16}, {16, 1}), 128)  -- (M,K)
    local thr = g2s:get_slice(tid)
    cute.copy(g2s, thr:partition_S(mA), thr:partition_D(sA))
    cute.arch.cp_async_commit_group()
    cute.arch.cp_async_wait_group(0)
    cute.arch.sync_threads()
    local thr_mma = mma:get_slice(tid)
    local tCgC = thr_mma:partition_C(mC)              -- (MMA,MMA_M,MMA_N)
    local tCrA = thr_mma:partition_fragment_A(sA)     -- (MMA,MMA_M,MMA_K)
    local tCgB = thr_mma:partition_B(mB)              -- (MMA,MMA_N,MMA_K)
    local tCrB = thr_mma:make_fragment_B(tCgB)
    local tCrC = thr_mma:make_fragment_C(tCgC)
    local thr_A = s2r:get_slice(tid)
    cute.copy(s2r, thr_A:partition_S(sA), thr_A:retile(tCrA))
    cute.autovec_copy(tCgB, tCrB)
    tCrC:fill(0)
    cute.gemm(mma, tCrC, tCrA, tCrB, tCrC)
    cute.autovec_copy(tCrC, tCgC)
  end)(a, b, c):trace {block = 32}
end

return golden
-- SPDX-License-Identifier: MIT
