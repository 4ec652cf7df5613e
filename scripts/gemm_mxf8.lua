-- 8-bit floats with block scales on Blackwell: C = A B^T of MXFP8 by tcgen05.
--
-- An MXFP8 number is an e4m3. 32 numbers of a row share a scale factor of type
-- ue8m0, a power of two. One tcgen05.mma multiplies 128x32 numbers of A by
-- 128x32 of B. It multiplies each product by the scale factors of the row of A
-- and of the row of B.
--
-- The kernel is in kernels/gemm_block_scaled.lua. As in gemm_tcgen05.lua, TMA
-- loads tiles into shared memory, one thread multiplies, and the sums are in
-- tensor memory. The scale factors must also be in tensor memory. TMA loads
-- them into shared memory, and tcgen05.cp copies 512 bytes at a time: one
-- factor for each of 128 rows and 4 instructions. Each instruction uses one
-- byte of a column, and its descriptor contains the number of that byte.
--   cutelua scripts/gemm_mxf8.lua --help
local cute = require "cute"
local gemm_block_scaled = require "kernels.gemm_block_scaled"
local harness = require "cutelua.bench.harness"
local scaledlesson = require "cutelua.bench.scaledlesson"
local tcgen05 = cute.nvgpu.tcgen05

local gemm = gemm_block_scaled {
  op = tcgen05.MmaMXF8Op(cute.e4m3, {128, 128, 32}),
  dtype = cute.e4m3, sf = cute.ue8m0}

harness.run(arg, scaledlesson.lesson {
  about = "C = A B^T of MXFP8 in bf16 by tcgen05 (sm_100a).",
  arch = "sm_100a", tile = gemm.tile, dtype = "e4m3", sf = "ue8m0",
  vs = gemm.vs, step = 32, scale_layout = gemm.scale_layout,
  make = function(p)
    return {kernel = gemm.kernel, block = 128, grid = gemm.grid(p.m, p.n),
            args = gemm.arguments(p.m, p.n, p.k, "a", "sfa", "b", "sfb", "c")}
  end,
})
-- SPDX-License-Identifier: MIT
