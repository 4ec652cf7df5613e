--- A persistent GEMM for Blackwell: D = A B^T by TMA and tcgen05.mma. This
-- kernel has never run on a GPU.
--
--     local gemm = gemm_sm100 {tile = {128, 256, 64}, stages = 4}
--     local run = gemm.prepare(A, B, D, {device = "sim:sm_100a"})
--     run:launch()
--
-- Operands, arguments and options are those of kernels/gemm_sm90. Both kernels
-- share the loads, the order of tiles, and the epilogue. The differences are:
--
-- A tile has 128 rows, and columns that are a multiple of 16. Operands of 16
-- and 8 bits may have contiguous M or N. Types: bf16, f16, f32 (multiplied as
-- tf32), any two of e4m3 and e5m2, i8, u8.
--
-- Warps 0 to 3 store results. One thread of warp 4 issues TMA loads; one thread
-- of warp 5 issues MMAs. The accumulators are in tensor memory. Persistent
-- blocks have two sets of them: while the tensor cores fill one, the epilogue
-- stores the other.
--
-- The epilogue processes a part of `epi` = {128, EN} rows and columns at a
-- time. It loads the part from tensor memory to registers, where each thread
-- has one row, and stores it through a buffer in shared memory by TMA.
--
-- scales = {type, n}: A and B have a block-scaled format, in which n elements
-- of a row share a scale factor of this type: e4m3 or e5m2 with {ue8m0, 32};
-- e2m1 with {ue8m0, 32} or {e4m3, 16}. The factors FA and FB, in tiles of 128
-- rows x 4 blocks (see kernels.block_scaled.layout), are the first arguments
-- after beta: gemm.arguments(A, B, D, alpha, beta, FA, FB, ...). FA and FB are
-- (count), or (count,L) for batches. gemm.prepare takes them as the option
-- factors = {FA, FB}. A tile then has 128 or 256 columns.
--
-- Blocks of a cluster share the loads of tiles by multicast. Groups can have
-- the forms "rows" and "masked" (kernels.groups).
local choice = require "kernels.gemm_sm100.choice"
local cute = require "cute"
local host = require "kernels.gemm_sm90.host"
local make_kernel = require "kernels.gemm_sm100.kernel"
local options = require "kernels.gemm_sm100.options"
local sign = require "cute.lang.signature"

local gemm_sm100 = {candidates = choice.candidates, choose = choice.choose}

--- gemm_sm100(options): returns a GEMM with these options (see the top of this
-- file). The GEMM has the same fields as a GEMM of kernels/gemm_sm90.
setmetatable(gemm_sm100, {__call = function(_, given)
  local o = options.complete(given)
  local made = make_kernel(o)
  made.kernel = cute.kernel(given.name or "gemm_sm100", {block = o.block},
                            made.f)
  return host.new(o, made)
end})

return sign.module("kernels.gemm_sm100", gemm_sm100)
-- SPDX-License-Identifier: MIT
