-- 8-bit floats with block scales on Blackwell: C = A B^T of MXFP8 by tcgen05.
--
-- MXFP8 stores a number as an e4m3, and 32 numbers of a row share a scale
-- factor of type ue8m0, a power of two. One tcgen05.mma multiplies 128x32
-- numbers of A by 128x32 of B, and scales all products of a row of A and a row
-- of B by the product of their factors.
--
-- kernels/gemm_block_scaled.lua has the kernel. As in gemm_tcgen05.lua, TMA
-- loads tiles to shared memory, one thread multiplies, and the sums are in
-- tensor memory. The scale factors go to tensor memory, too. TMA loads them to
-- shared memory, from where tcgen05.cp copies 512 bytes at a time: a factor for
-- each of 128 rows and 4 instructions. A byte of a column belongs to each
-- instruction, and the instruction's descriptor has the number of the byte.
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
