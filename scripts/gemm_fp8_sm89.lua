-- 8-bit floats: C = A B^T of e4m3, accumulated in f32, stored as bf16 (sm_89).
--
-- The fragments have the layout of int8, so the pipeline is the same. The
-- tensor cores align the 32 products of a sum to the largest, and truncate a
-- few bits below its leading bit. The simulator reproduces this error exactly.
-- The error is larger than with bf16 operands. On Hopper, mma.sync of e4m3 is
-- emulated by f16 MMAs, which need more registers. 8 warps of 64x32 have enough
-- registers. 4 warps of 64x64 spill but are 8 % faster, and take twice as long
-- to compile.
--   cutelua scripts/gemm_fp8_sm89.lua --help
local gemm_sm80 = require "kernels.gemm_sm80"
local lesson = require "cutelua.bench.lesson"

local gemm = gemm_sm80 {
  name = "gemm_fp8_sm89", tile = {128, 128, 128}, stages = 3,
  mma = "SM89_16x8x32_F32E4M3E4M3F32_TN",
  atoms = {2, 4, 1}, permutation = {32, 64, 32},
}

lesson.gemm(arg, {
  kernel = gemm.kernel, tile = gemm.tile, block = gemm.block,
  types = {"e4m3", "e4m3", "bf16"}, archs = {"sm_89", "sm_90a"},
  about = "C = A B^T of e4m3 with f32 sums, in bf16 (sm_89).",
})
-- SPDX-License-Identifier: MIT
