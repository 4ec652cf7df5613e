-- The fastest mma.sync kernel: C = A B^T in bf16 with 128x256 tiles.
--
-- With three stages, the limit is L2 traffic. Each element from L2 is used for
-- 64 multiply-adds in a 128x128 tile, and 85 in a 128x256 tile. Eight warps of
-- 64x64 share the tile, two per tensor core, so that one multiplies while the
-- other loads its fragments. C is stored through shared memory in rows of
-- 16-byte stores.
--   cutelua scripts/gemm_sm80_best.lua --help
local gemm_sm80 = require "kernels.gemm_sm80"
local lesson = require "cutelua.bench.lesson"

local gemm = gemm_sm80 {
  name = "gemm_sm80_best", tile = {128, 256, 64}, stages = 3, group = 16,
  mma = "SM80_16x8x16_F32BF16BF16F32_TN",
  atoms = {2, 4, 1}, permutation = {32, 64, 16}, rows = true,
}

lesson.gemm(arg, {
  kernel = gemm.kernel, tile = gemm.tile, block = gemm.block,
  about = "C = A B^T in bf16: 128x256 tiles, 3 stages, 8 warps (sm_80).",
})
-- SPDX-License-Identifier: MIT
