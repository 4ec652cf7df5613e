-- f32 without tensor cores: C = A B^T, as fast as the FMA units go.
--
-- What the hand-written ladders climb, at its top: 128x128 of C a block, in
-- shared memory by cp.async in six stages, 8x16 of C a thread in registers.
-- kernels/gemm_simt.lua has it, and says why the threads lie as they do: with
-- 8x8 a thread waits for shared memory. On an H200 8x8 is 0.87 of cuBLAS, 8x16
-- 0.98.
-- A and B lie as the kernel wants them already with --layout nt. With tn they
-- are turned on their way, from 16 bytes of K in registers: 0.91 (4 bytes a
-- cp.async: 0.88).
--   cutelua scripts/sgemm.lua --help
local gemm_simt = require "kernels.gemm_simt"
local lesson = require "cutelua.bench.lesson"

local gemm = gemm_simt {name = "sgemm"}

lesson.gemm(arg, {
  kernel = gemm.kernel, tile = gemm.tile, block = gemm.block,
  types = {"f32", "f32", "f32"}, layout = "nt",
  about = "C = A B^T in f32 on FMA units, 128x128 tiles (sm_80).",
})
