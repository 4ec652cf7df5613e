-- f32 operands on tensor cores: TF32 has 10 bits of fraction.
--
-- A and B are f32 in memory. The tensor core reads the upper 19 bits of a
-- register. ldmatrix does not support 32-bit elements, but a row of 16 bytes
-- holds 4 of them. Loaded as an 8x8 matrix of 16 bits, each element reaches the
-- thread that the atom requires. The relative error is 1e-3 instead of 1e-7.
--   cutelua scripts/gemm_tf32.lua --help
local gemm_sm80 = require "kernels.gemm_sm80"
local lesson = require "cutelua.bench.lesson"

local gemm = gemm_sm80 {
  name = "gemm_tf32", tile = {128, 256, 32}, stages = 3,
  mma = "SM80_16x8x8_F32TF32TF32F32_TN",
  atoms = {2, 4, 1}, permutation = {32, 64, 8},
}

lesson.gemm(arg, {
  kernel = gemm.kernel, tile = gemm.tile, block = gemm.block,
  types = {"f32", "f32", "f32"}, tf32 = true,
  about = "C = A B^T of f32 in TF32 on tensor cores (sm_80).",
})
-- SPDX-License-Identifier: MIT
