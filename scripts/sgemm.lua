-- f32 without tensor cores: C = A B^T, at the limit of the FMA units.
--
-- A block computes 128x128 of C, and loads A and B to shared memory by cp.async
-- in six stages; a thread computes 8x16 of C in registers. With 8x8, a thread
-- waits for shared memory (kernels/gemm_simt.lua explains why): on an H200, 8x8
-- reaches 0.87 of cuBLAS's speed, 8x16 reaches 0.98. With --layout nt, A and B
-- already have the order that the kernel needs. With tn, the copy transposes
-- them, in registers and in pieces of 16 bytes along K, and the kernel reaches
-- 0.91 (with 4-byte cp.async: 0.88).
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
