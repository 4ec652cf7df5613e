-- f32 without tensor cores: C = A B^T, at the limit of the FMA units.
--
-- This kernel is the top rung of hand-written ladders: 128x128 of C for each
-- block, in shared memory by cp.async in six stages, 8x16 of C for each thread
-- in registers. kernels/gemm_simt.lua implements it, and explains the layout of
-- the threads: with 8x8 a thread waits for shared memory. On an H200 8x8 is
-- 0.87 of cuBLAS, 8x16 0.98. With --layout nt, A and B already have the order
-- that the kernel needs. With tn they are transposed during the copy, from 16
-- bytes of K in registers: 0.91 (with 4-byte cp.async: 0.88).
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
