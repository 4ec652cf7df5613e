-- Double precision on tensor cores: C = A B^T in f64.
--
-- The atom is 8x8x4. ldmatrix does not support elements of 8 bytes, so
-- fragments are loaded by ordinary 8-byte loads. Half a warp (16 lanes) then
-- reads 4 rows of 32 bytes. Therefore, shared memory is swizzled in chunks of
-- 32 bytes, not of 16.
--   cutelua scripts/gemm_f64.lua --help
local gemm_sm80 = require "kernels.gemm_sm80"
local lesson = require "cutelua.bench.lesson"

local gemm = gemm_sm80 {
  name = "gemm_f64", tile = {128, 64, 16}, stages = 4, piece = 32,
  mma = "SM80_8x8x4_F64F64F64F64_TN",
  atoms = {4, 2, 1}, permutation = {32, 16, 4},
}

lesson.gemm(arg, {
  kernel = gemm.kernel, tile = gemm.tile, block = gemm.block,
  types = {"f64", "f64", "f64"},
  about = "C = A B^T in f64 on tensor cores (sm_80).",
})
-- SPDX-License-Identifier: MIT
