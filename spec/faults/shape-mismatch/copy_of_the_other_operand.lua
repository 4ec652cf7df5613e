-- Fault: the tiled copy for operand A of an MMA loads operand B.
-- expect: cutelua: slice:retile: the fragment 'rB' is operand B of a tiled MMA,
--   but this copy was made for operand A: it would put values into other
--   threads' places [shape-mismatch]
-- expect: spec/faults/shape-mismatch/copy_of_the_other_operand.lua:34 in kernel
--   k
-- expect: make the copy with make_tiled_copy_B(atom, mma)
local cute = require "cute"
local arch = cute.arch

local mma = cute.make_tiled_mma("SM80_16x8x16_F32BF16BF16F32_TN", {2, 2, 1},
                                {32, 32, 16})
local ldsm = cute.make_copy_atom("SM75_U32x4_LDSM_N", cute.bf16)
local s2r_A = cute.make_tiled_copy_A(ldsm, mma)
local s2r_B = cute.make_tiled_copy_B(ldsm, mma)
local rows = cute.make_layout({32, 16}, {16, 1})

local k = cute.kernel("k", function(mA, mB, mC)
  local tid = arch.thread_idx()
  local sA = cute.make_smem_tensor(cute.bf16, rows, 128)
  local sB = cute.make_smem_tensor(cute.bf16, rows, 128)
  for i = 0, 3 do
    sA[tid + i * 128] = mA[tid + i * 128]
    sB[tid + i * 128] = mB[tid + i * 128]
  end
  arch.sync_threads()
  local slice = mma:get_slice(tid)
  local rA, rB = slice:partition_fragment_A(sA), slice:partition_fragment_B(sB)
  local rC = slice:partition_fragment_C(mC)
  local thr_A = s2r_A:get_slice(tid)
  local thr_B = s2r_A:get_slice(tid)  -- wrong
  -- mend: local thr_B = s2r_B:get_slice(tid)
  cute.copy(s2r_A, thr_A:partition_S(sA), thr_A:retile(rA))
  cute.copy(s2r_A, thr_B:partition_S(sB), thr_B:retile(rB))  -- wrong
  -- mend: cute.copy(s2r_B, thr_B:partition_S(sB), thr_B:retile(rB))
  rC:fill(0)
  cute.gemm(mma, rC, rA, rB, rC)
  cute.autovec_copy(rC, slice:partition_C(mC))
end)
k(cute.ones({32, 16}, cute.bf16), cute.ones({32, 16}, cute.bf16),
  cute.zeros({32, 32}, cute.f32)):launch {grid = 1, block = 128,
                                          device = "sim:sm_80"}
-- SPDX-License-Identifier: MIT
