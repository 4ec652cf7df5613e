-- 4-bit floats with block scales on Blackwell: C = A B^T of NVFP4 by tcgen05.
--
-- An NVFP4 number is an e2m1. 16 numbers of a row share a positive scale factor
-- of type e4m3. One tcgen05.mma multiplies 128x64 numbers of A by 128x64 of B,
-- with 4 factors per row.
--
-- The kernel is that of gemm_mxf8.lua, in kernels/gemm_block_scaled.lua.
-- Numbers are packed, so TMA loads them as bytes. A column of tensor memory has
-- the 4 factors of each row for one instruction. A stage has 16 columns with
-- the factors of A, and 16 for B. Threads never read a factor. In
-- gemm_sm120.lua each thread passes the factors of its rows to the instruction.
--   cutelua scripts/gemm_nvf4.lua --help
local cute = require "cute"
local gemm_block_scaled = require "kernels.gemm_block_scaled"
local harness = require "cutelua.bench.harness"
local scaledlesson = require "cutelua.bench.scaledlesson"
local tcgen05 = cute.nvgpu.tcgen05

local gemm = gemm_block_scaled {
  op = tcgen05.MmaMXF4NVF4Op(cute.e4m3, {128, 128, 64}),
  dtype = cute.e2m1, sf = cute.e4m3}

harness.run(arg, scaledlesson.lesson {
  about = "C = A B^T of NVFP4 in bf16 by tcgen05 (sm_100a).",
  arch = "sm_100a", tile = gemm.tile, dtype = "e2m1", sf = "e4m3",
  vs = gemm.vs, step = 32, scale_layout = gemm.scale_layout,
  make = function(p)
    return {kernel = gemm.kernel, block = 128, grid = gemm.grid(p.m, p.n),
            args = gemm.arguments(p.m, p.n, p.k, "a", "sfa", "b", "sfb", "c")}
  end,
})
-- SPDX-License-Identifier: MIT
