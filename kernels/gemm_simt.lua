--- A GEMM without tensor cores: C = alpha A B^T + beta C on FMA units, of f32
-- and of whatever else can be multiplied and added.
--
--     local k = gemm_simt {tile = {128, 128, 8}}
--     k.kernel(A, B, C):launch {grid = k.grid(m, n), block = k.block}
--
-- kernels/gemm_sm80.lua with another atom: its arguments, its options. 128
-- threads have 8x16 of C each of a tile of 128x128, in registers; what limits
-- that is shared memory, which gives a multiprocessor 128 bytes a clock, for
-- 128 multiply-adds: a thread with 8x8 reads 16 floats for 64 of them, one with
-- 8x16 24 for 128.
--   - M and N are contiguous in shared memory: 4 neighbours come in one load,
--     and a step of K needs 24 registers, not 96.
--   - A 16-byte load of a warp takes two passes instead of four when lanes l
--     and l+1 (for A) or l and l+2 (for B) read the same address: the layout
--     of the threads below sees to that.
-- A and B lie so in memory already where M and N are contiguous. Else they are
-- turned on their way, from 16 bytes of K in registers. Tiles of 8 in K, since
-- they are unrolled: 16 take longer to compile and are no faster, 4 wait too
-- often.
local rules = require "kernels.operand_rules"
local cute = require "cute"
local _ = cute._

-- (M,N) -> thread, 16x8: M takes bits 1, 2 and 4 of the lane and one of the
-- warp, N bits 0 and 3 of the lane and the other of the warp. Of 8 warps 16x16.
local THREADS = {
  [4] = cute.make_layout({{4, 2, 2}, {2, 2, 2}, 1},
                         {{2, 16, 32}, {1, 8, 64}, 0}),
  [8] = cute.make_layout({{4, 2, 2}, {2, 2, 4}, 1},
                         {{2, 16, 32}, {1, 8, 64}, 0}),
}

local NAMES = {f32 = "float", f64 = "double", i32 = "int32_t", f16 = "half_t",
               bf16 = "bfloat16_t", e4m3 = "float_e4m3_t",
               e5m2 = "float_e5m2_t", i8 = "int8_t", u8 = "uint8_t"}

--- A kernel as kernels.gemm_sm80 makes it.
---@param o? {sums: any, a_dtype: any, b_dtype: any, warps: integer?} and what
-- gemm_sm80 takes
-- sums: the type of products and sums (f32); a_dtype, b_dtype: of A and B,
-- where they are of others and converted; warps: 4, or 8, of whose threads each
-- has 8x8
return function(o)
  local p = {name = "gemm_simt", tile = {128, 128, 8}, stages = 6,
    min_blocks = 2, warps = 4,
    lead = 0,
    plain = true,  -- no swizzle: addresses are sums, known offsets
    halves = true,
    slots = 2}  -- fragments of two steps of K: one is used, one is filled
  rules.options("gemm_simt", o or {}, rules.SIMT)
  for k, v in pairs(o or {}) do p[k] = v end
  rules.need(THREADS[p.warps], "gemm_simt", "warps = %s; 4 or 8 are needed",
             p.warps)
  p.atoms = THREADS[p.warps]
  p.permutation = {cute.make_layout({16, 4}, {4, 1}),  -- 4 neighbours each
                   cute.make_layout({2 * p.warps, 4}, {4, 1}), _}
  local sums = p.sums or cute.f32
  local a, b = p.a_dtype or sums, p.b_dtype or sums
  p.sums, p.a_dtype, p.b_dtype, p.warps = nil, nil, nil, nil
  local name = NAMES[sums.name]
  p.mma = a == sums and b == sums and ("UniversalFMA<%s>"):format(name)
    or ("UniversalFMA<%s,%s,%s,%s>"):format(name, NAMES[a.name],
                                            NAMES[b.name], name)
  function p.fetch(t)
    return cute.make_copy_atom("UniversalCopy", t, math.min(128, 4 * t.bits))
  end
  return require "kernels.gemm_sm80"(p)
end
