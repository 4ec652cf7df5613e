--- A GEMM without tensor cores: C = alpha A B^T + beta C on FMA units, for f32
-- and any other type with products and sums.
--
--     local k = gemm_simt {tile = {128, 128, 8}}
--     k.kernel(A, B, C):launch {grid = k.grid(m, n), block = k.block}
--
-- The kernel is kernels/gemm_sm80.lua with another atom, and has the same
-- arguments and options. A tile of C has 128x128 elements. Each of 128 threads
-- computes 8x16 of them, in registers. Shared memory limits the speed: for each
-- multiprocessor it delivers 128 bytes in the time of 128 multiply-adds. In
-- each step of K, a thread with 8x8 elements of C would read 16 floats for 64
-- multiply-adds; a thread with 8x16 elements reads 24 floats for 128.
--
-- M and N are contiguous in shared memory. Therefore one load reads 4
-- neighbours, and a step of K needs 24 registers instead of 96. A warp's load
-- of 16 bytes per lane normally takes four passes. It takes two if lanes l and
-- l+1 (for A) or l and l+2 (for B) read the same address. The layout of the
-- threads below ensures this.
--
-- If M and N are contiguous in global memory, A and B already have the order
-- that shared memory needs. Otherwise they are transposed during the copy: a
-- thread loads 16 bytes along K into registers and stores them from there. BK
-- is 8. The loop over a tile is unrolled, so a BK of 16 takes longer to
-- compile; it is at most 1 % faster. With a BK of 4, the kernel waits too
-- often.
--
-- Next, banks of registers limit the speed. On Hopper, registers with even and
-- with odd numbers form two banks, each of which delivers one register per
-- cycle. An FMA reads three; it takes one cycle only if it reads one of them in
-- the same place as the preceding FMA (`.reuse`), and the others are in two
-- banks. ptxas chooses the numbers. If the accumulators are stored directly
-- after the loop, it permutes them in the first FMAs of each tile, because
-- 16-byte stores need four neighbouring registers; these FMAs then take two to
-- three cycles. After an addition of 0 (the option `renamed` of gemm_sm80), the
-- stores no longer limit the registers of the loop (docs/measured/ops_gemm.md).
local rules = require "kernels.operand_rules"
local cute = require "cute"
local _ = cute._

-- The layout (M,N) -> thread, 16x8. The M coordinate determines bits 1, 2 and 4
-- of the lane and one bit of the warp; the N coordinate bits 0 and 3 of the
-- lane and the other bit of the warp. With 8 warps the layout is 16x16.
local THREADS = {
  [4] = cute.make_layout({{4, 2, 2}, {2, 2, 2}, 1},
                         {{2, 16, 32}, {1, 8, 64}, 0}),
  [8] = cute.make_layout({{4, 2, 2}, {2, 2, 4}, 1},
                         {{2, 16, 32}, {1, 8, 64}, 0}),
}

-- The number of blocks of f32 that fit on a multiprocessor, by the number of
-- elements of a tile, with 4 warps. For smaller tiles, the compiler would use
-- more registers than it needs.
local BLOCKS = {[128 * 128] = 2, [128 * 64] = 4, [64 * 64] = 5}

-- Returns the number of blocks per multiprocessor to compile for, with options
-- p. An epilogue needs registers too.
local function min_blocks(p, sums)
  local count = sums == cute.f32 and BLOCKS[p.tile[1] * p.tile[2]] or 2
  if p.warps == 8 then return math.max(count // 2, 1) end
  return p.epilogue and count > 2 and count - 1 or count
end

local NAMES = {f32 = "float", f64 = "double", i32 = "int32_t", f16 = "half_t",
               bf16 = "bfloat16_t", e4m3 = "float_e4m3_t",
               e5m2 = "float_e5m2_t", i8 = "int8_t", u8 = "uint8_t"}

--- Returns a kernel and its launch parameters, with the same fields as a kernel
-- of kernels.gemm_sm80.
---@param o? {sums: any, a_dtype: any, b_dtype: any, warps: integer?} and the
-- options of gemm_sm80
-- sums: the type of products and accumulators (f32 when absent); a_dtype,
-- b_dtype: the types of A and B, if they differ from `sums` and are converted;
-- warps: 4 (when absent) or 8; with 8 warps, a thread computes 8x8 elements
return function(o)
  o = o or {}
  rules.options("gemm_simt", o, rules.SIMT)
  local sums = o.sums or cute.f32
  local p = {name = "gemm_simt", tile = {128, 128, 8}, stages = 6, warps = 4,
    lead = 0,
    -- Without a swizzle, each address is a common base plus a constant offset.
    plain = true,
    halves = true,
    renamed = sums == cute.f32,
    -- The number of fragments for steps of K: one is loaded while the other one
    -- is multiplied.
    slots = 2}
  for k, v in pairs(o) do p[k] = v end
  rules.need(THREADS[p.warps], "gemm_simt", "warps = %s; 4 or 8 are needed",
             p.warps)
  p.atoms = THREADS[p.warps]
  p.min_blocks = p.min_blocks or min_blocks(p, sums)
  -- Each thread has 4 neighbouring elements along M and N.
  p.permutation = {cute.make_layout({16, 4}, {4, 1}),
                   cute.make_layout({2 * p.warps, 4}, {4, 1}), _}
  local a, b = p.a_dtype or sums, p.b_dtype or sums
  p.sums, p.a_dtype, p.b_dtype, p.warps = nil, nil, nil, nil
  local name = NAMES[sums.name]
  p.mma = a == sums and b == sums and ("UniversalFMA<%s>"):format(name)
    or ("UniversalFMA<%s,%s,%s,%s>"):format(name, NAMES[a.name],
                                            NAMES[b.name], name)
  function p.fetch(t)
    return cute.make_copy_atom("UniversalCopy", t, math.min(128, 4 * t.bits))
  end
  local gemm = require "kernels.gemm_sm80"(p)
  local run = gemm.run
  function gemm.run(mA, mB, ...)
    for t, want in pairs {[mA] = a, [mB] = b} do
      rules.need(t.element_type == want, p.name, "%s is %s; %s is needed, or "
        .. "the options a_dtype, b_dtype and sums for other types",
        t == mA and "A" or "B", t.element_type.name, want.name)
    end
    return run(mA, mB, ...)
  end
  return gemm
end
-- SPDX-License-Identifier: MIT
