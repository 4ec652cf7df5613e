-- Integers: C = A B^T of int8, accumulated exactly in int32.
--
-- The pipeline is that of bf16 with another atom. An instruction of 16x8x32 has
-- twice the K of bf16 in the same number of bytes. The loads are the same,
-- because ldmatrix moves rows of 16 bytes regardless of type. Integer sums do
-- not round, so results are compared for equality.
--   cutelua scripts/gemm_int8.lua --help
local gemm_sm80 = require "kernels.gemm_sm80"
local lesson = require "cutelua.bench.lesson"

local gemm = gemm_sm80 {
  name = "gemm_int8", tile = {128, 256, 128}, stages = 3,
  mma = "SM80_16x8x32_S32S8S8S32_TN",
  atoms = {2, 4, 1}, permutation = {32, 64, 32},
}

lesson.gemm(arg, {
  kernel = gemm.kernel, tile = gemm.tile, block = gemm.block,
  types = {"i8", "i8", "i32"}, sums = "i32",
  about = "C = A B^T of int8 with int32 sums (sm_80).",
})
-- SPDX-License-Identifier: MIT
