-- f32 without tensor cores: C = A B^T, as fast as the FMA units go.
--
-- What the hand-written ladders climb, at its top: 128x128 of C a block, in
-- shared memory by cp.async in three stages, 8x8 of C a thread in registers,
-- so that 16 loads of 16 bytes feed 256 multiply-adds. Two things decide:
--   - The fragments of the next 4 steps of K are loaded while these are
--     multiplied.
--   - A 16-byte load of a warp takes two passes instead of four when lanes l
--     and l+1 (for A) or l and l+2 (for B) read the same address: the layout
--     of the threads below sees to that.
--   cutelua scripts/sgemm.lua --help
local cute = require "cute"
local gemm_sm80 = require "kernels.gemm_sm80"
local lesson = require "cute.lesson"
local _ = cute._

-- Bits of a thread: M takes 1, 2 and 4 of the lane and one of the warp, N
-- takes 0 and 3 of the lane and two of the warp: (M,N) -> thread.
local threads = cute.make_layout({{4, 2, 2}, {2, 2, 4}, 1},
                                 {{2, 16, 32}, {1, 8, 64}, 0})

local gemm = gemm_sm80 {
  name = "sgemm", tile = {128, 128, 16}, stages = 3,
  mma = "UniversalFMA<float>", atoms = threads,
  permutation = {_, _, 4},  -- 4 neighbours of K a thread: 16-byte loads
  fetch = cute.make_copy_atom("UniversalCopy", cute.f32, 128),
}

lesson.gemm(arg, {
  kernel = gemm.kernel, tile = gemm.tile, block = gemm.block,
  types = {"f32", "f32", "f32"},
  about = "C = A B^T in f32 on FMA units, 128x128 tiles (sm_80).",
})
