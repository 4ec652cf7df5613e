-- f32 without tensor cores: C = A B^T, at the limit of the FMA units.
--
-- A block computes 128x128 of C, and loads A and B into shared memory by
-- cp.async in six stages. A thread computes 8x16 of C in registers. With 8x8,
-- shared memory is the limit (kernels/gemm_simt.lua explains why): on an H200,
-- 8x8 reaches 0.87 of cuBLAS's speed, and 8x16 reaches 1.01 (4096^3). With
-- --layout nt, A and B already have the order that the kernel needs. With tn,
-- the copy transposes them in registers, in chunks of 16 bytes along K, and the
-- kernel reaches 0.99.
--   cutelua scripts/sgemm.lua --help
local gemm_simt = require "kernels.gemm_simt"
local lesson = require "cutelua.bench.lesson"

local gemm = gemm_simt {name = "sgemm"}

lesson.gemm(arg, {
  kernel = gemm.kernel, tile = gemm.tile, block = gemm.block,
  types = {"f32", "f32", "f32"}, layout = "nt",
  about = "C = A B^T in f32 on FMA units, 128x128 tiles (sm_80).",
})
-- SPDX-License-Identifier: MIT
