-- f32 without tensor cores: C = A B^T, as fast as the FMA units go.
--
-- What the hand-written ladders climb, at its top: 128x128 of C a block, in
-- shared memory by cp.async in six stages, 8x16 of C a thread in registers.
-- What limits it is shared memory, which gives a multiprocessor 128 bytes a
-- clock, for 128 multiply-adds: a thread with 8x8 reads 16 floats for 64 of
-- them, one with 8x16 24 for 128. On an H200 that is 0.87 and 0.98 of cuBLAS.
--   - M and N are contiguous in shared memory: 4 neighbours come in one load,
--     and a step of K needs 24 registers, not 96.
--   - A 16-byte load of a warp takes two passes instead of four when lanes l
--     and l+1 (for A) or l and l+2 (for B) read the same address: the layout
--     of the threads below sees to that.
-- A and B lie so in memory already with --layout nt. With tn they are turned
-- on their way, from 16 bytes of K in registers: 0.91 (4 bytes a cp.async:
-- 0.88). Tiles of 8 in K, since they are unrolled: 16 take longer to compile
-- and are no faster, 4 wait too often.
--   cutelua scripts/sgemm.lua --help
local cute = require "cute"
local gemm_sm80 = require "kernels.gemm_sm80"
local lesson = require "cute.bench.lesson"
local _ = cute._

-- (M,N) -> thread, 16x8: M takes bits 1, 2 and 4 of the lane and one of the
-- warp, N bits 0 and 3 of the lane and the other of the warp.
local threads = cute.make_layout({{4, 2, 2}, {2, 2, 2}, 1},
                                 {{2, 16, 32}, {1, 8, 64}, 0})

local gemm = gemm_sm80 {
  name = "sgemm", tile = {128, 128, 8}, stages = 6, min_blocks = 2,
  mma = "UniversalFMA<float>", atoms = threads,
  permutation = {cute.make_layout({16, 4}, {4, 1}),  -- 4 neighbours each
                 cute.make_layout({8, 4}, {4, 1}), _},
  fetch = cute.make_copy_atom("UniversalCopy", cute.f32, 128), lead = 0,
  plain = true,  -- no swizzle: addresses are sums, known offsets
  halves = true,
  slots = 2,  -- fragments of two steps of K: one is used, one is filled
}

lesson.gemm(arg, {
  kernel = gemm.kernel, tile = gemm.tile, block = gemm.block,
  types = {"f32", "f32", "f32"}, layout = "nt",
  about = "C = A B^T in f32 on FMA units, 128x128 tiles (sm_80).",
})
