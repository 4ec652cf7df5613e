---@meta cute
-- Documents the functions that cute.arch generates in loops. Nothing here runs.
-- luacheck: ignore
error "annotations are not to be run"

---@class cute
local cute = {}

---------------------------------------------------------------------------
-- cute.arch: packed numbers
---------------------------------------------------------------------------

---Computes a + b for two packed bf16, each rounded to nearest even.
---@param a any a pair {x, y}, a word (u32) or a vector
---@param b any a pair, in the form of `a`
---@return any in the form of `a`
function cute.arch.add_packed_bf16x2(a, b) end

---Computes a + b for two packed f16, each rounded to nearest even.
---@param a any a pair {x, y}, a word (u32) or a vector
---@param b any a pair, in the form of `a`
---@return any in the form of `a`
function cute.arch.add_packed_f16x2(a, b) end

---Computes a + b for two packed f32, each with one rounding (sm_100). The
---option rnd is "rn" (to nearest even; "none" means the same), "rz" (toward
---zero), "rm" (down) or "rp" (up). With ftz = true, subnormals count as zero.
---Vectors are computed in pairs.
---@param a any a pair {x, y} of f32, or a vector of even size
---@param b any a pair or vector, in the form of `a`, or a number for a vector
---@param opts? {rnd: string, ftz: boolean}
---@return any in the form of `a`
function cute.arch.add_packed_f32x2(a, b, opts) end

---Computes a + b for a pair of bf16 a and a pair of f32 b, each with one
---rounding to f32 (sm_100). The options are those of add_packed_f32x2.
---@param a any a pair {x, y} of bf16, or a word (u32)
---@param b any a pair of f32
---@param opts? {rnd: string, ftz: boolean}
---@return any a pair of f32
function cute.arch.add_packed_f32x2_bf16x2_f32x2(a, b, opts) end

---Computes a + b for a pair of f16 a and a pair of f32 b, each with one
---rounding to f32 (sm_100). The options are those of add_packed_f32x2.
---@param a any a pair {x, y} of f16, or a word (u32)
---@param b any a pair of f32
---@param opts? {rnd: string, ftz: boolean}
---@return any a pair of f32
function cute.arch.add_packed_f32x2_f16x2_f32x2(a, b, opts) end

---Computes a - b for two packed bf16, each rounded to nearest even.
---@param a any a pair {x, y}, a word (u32) or a vector
---@param b any a pair, in the form of `a`
---@return any in the form of `a`
function cute.arch.sub_packed_bf16x2(a, b) end

---Computes a - b for two packed f16, each rounded to nearest even.
---@param a any a pair {x, y}, a word (u32) or a vector
---@param b any a pair, in the form of `a`
---@return any in the form of `a`
function cute.arch.sub_packed_f16x2(a, b) end

---Computes a - b for two packed f32, each with one rounding (sm_100). The
---option rnd is "rn" (to nearest even; "none" means the same), "rz" (toward
---zero), "rm" (down) or "rp" (up). With ftz = true, subnormals count as zero.
---Vectors are computed in pairs.
---@param a any a pair {x, y} of f32, or a vector of even size
---@param b any a pair or vector, in the form of `a`, or a number for a vector
---@param opts? {rnd: string, ftz: boolean}
---@return any in the form of `a`
function cute.arch.sub_packed_f32x2(a, b, opts) end

---Computes a - b for a pair of bf16 a and a pair of f32 b, each with one
---rounding to f32 (sm_100). The options are those of sub_packed_f32x2.
---@param a any a pair {x, y} of bf16, or a word (u32)
---@param b any a pair of f32
---@param opts? {rnd: string, ftz: boolean}
---@return any a pair of f32
function cute.arch.sub_packed_f32x2_bf16x2_f32x2(a, b, opts) end

---Computes a - b for a pair of f16 a and a pair of f32 b, each with one
---rounding to f32 (sm_100). The options are those of sub_packed_f32x2.
---@param a any a pair {x, y} of f16, or a word (u32)
---@param b any a pair of f32
---@param opts? {rnd: string, ftz: boolean}
---@return any a pair of f32
function cute.arch.sub_packed_f32x2_f16x2_f32x2(a, b, opts) end

---Computes a * b for two packed bf16, each rounded to nearest even.
---@param a any a pair {x, y}, a word (u32) or a vector
---@param b any a pair, in the form of `a`
---@return any in the form of `a`
function cute.arch.mul_packed_bf16x2(a, b) end

---Computes a * b for two packed f16, each rounded to nearest even.
---@param a any a pair {x, y}, a word (u32) or a vector
---@param b any a pair, in the form of `a`
---@return any in the form of `a`
function cute.arch.mul_packed_f16x2(a, b) end

---Computes a * b for two packed f32, each with one rounding (sm_100). The
---option rnd is "rn" (to nearest even; "none" means the same), "rz" (toward
---zero), "rm" (down) or "rp" (up). With ftz = true, subnormals count as zero.
---Vectors are computed in pairs.
---@param a any a pair {x, y} of f32, or a vector of even size
---@param b any a pair or vector, in the form of `a`, or a number for a vector
---@param opts? {rnd: string, ftz: boolean}
---@return any in the form of `a`
function cute.arch.mul_packed_f32x2(a, b, opts) end

---Computes a * b + c for two packed bf16, each with one rounding, to nearest
---even.
---@param a any a pair {x, y}, a word (u32) or a vector
---@param b any a pair, in the form of `a`
---@param c any a pair, in the form of `a`
---@return any in the form of `a`
function cute.arch.fma_packed_bf16x2(a, b, c) end

---Computes a * b + c for two packed f16, each with one rounding, to nearest
---even.
---@param a any a pair {x, y}, a word (u32) or a vector
---@param b any a pair, in the form of `a`
---@param c any a pair, in the form of `a`
---@return any in the form of `a`
function cute.arch.fma_packed_f16x2(a, b, c) end

---Computes a * b + c for two packed f32, each with one rounding (sm_100). The
---option rnd is "rn" (to nearest even; "none" means the same), "rz" (toward
---zero), "rm" (down) or "rp" (up). With ftz = true, subnormals count as zero.
---Vectors are computed in pairs.
---@param a any a pair {x, y} of f32, or a vector of even size
---@param b any a pair or vector, in the form of `a`, or a number for a vector
---@param c any a pair or vector, in the form of `a`, or a number for a vector
---@param opts? {rnd: string, ftz: boolean}
---@return any in the form of `a`
function cute.arch.fma_packed_f32x2(a, b, c, opts) end

---Computes a * b + c for a pair of bf16 a and pairs of f32 b and c, each with
---one rounding to f32 (sm_100). The options are those of fma_packed_f32x2.
---@param a any a pair {x, y} of bf16, or a word (u32)
---@param b any a pair of f32
---@param c any a pair of f32
---@param opts? {rnd: string, ftz: boolean}
---@return any a pair of f32
function cute.arch.fma_packed_f32x2_bf16x2_f32x2_f32x2(a, b, c, opts) end

---Computes a * b + c for a pair of f16 a and pairs of f32 b and c, each with
---one rounding to f32 (sm_100). The options are those of fma_packed_f32x2.
---@param a any a pair {x, y} of f16, or a word (u32)
---@param b any a pair of f32
---@param c any a pair of f32
---@param opts? {rnd: string, ftz: boolean}
---@return any a pair of f32
function cute.arch.fma_packed_f32x2_f16x2_f32x2_f32x2(a, b, c, opts) end

---Approximates 2^a for two packed bf16, as ex2.approx.ftz.bf16x2 does (sm_90).
---@param a any a pair {x, y} of bf16, or a word (u32)
---@return any in the form of `a`
function cute.arch.exp2_packed_bf16x2(a) end

---Approximates 2^a for two packed f16, as ex2.approx.f16x2 does.
---@param a any a pair {x, y} of f16, or a word (u32)
---@return any in the form of `a`
function cute.arch.exp2_packed_f16x2(a) end

---Converts two 4-bit floats (e2m1) to f16, exactly. Two floats take one
---instruction on targets such as sm_100a, four to six on others. Also converts
---a vector whose size is a multiple of 2.
---@param x any a word (u32), first float in its low bits; or a vector of e2m1
---@return any ... a word that holds both, or a vector
function cute.arch.cvt_f4e2m1x2_to_f16x2(x) end

---Converts four 4-bit floats (e2m1) to f16, exactly. Two floats take one
---instruction on targets such as sm_100a, four to six on others. Also converts
---a vector whose size is a multiple of 4.
---@param x any a word (u32), first float in its low bits; or a vector of e2m1
---@return any ... 2 words of two values each, or a vector
function cute.arch.cvt_f4e2m1x4_to_f16x4(x) end

---Converts eight 4-bit floats (e2m1) to f16, exactly. Two floats take one
---instruction on targets such as sm_100a, four to six on others. Also converts
---a vector whose size is a multiple of 8.
---@param x any a word (u32), first float in its low bits; or a vector of e2m1
---@return any ... 4 words of two values each, or a vector
function cute.arch.cvt_f4e2m1x8_to_f16x8(x) end

---Converts eight signed 4-bit integers to e4m3, exactly.
---@param x any a word (u32), first integer in its low bits; or a vector
---@return any ... 2 words of four codes each, or a vector
function cute.arch.cvt_i4x8_to_mxf8x8_impl(x) end

---Sign-extends four integers: replaces each byte by the sign-extended value of
---its low 4 bits.
---@param x any a word (u32), or a vector of i8 whose size is a multiple of 4
---@return any a word, or a vector of i8
function cute.arch.sext_unpacked_i4x4_to_i8x4(x) end

---Converts the first num_elts of the eight i4 of a word to bf16, exactly, like
---cvt_i4x8_to_bf16x8 and similar functions.
---@param x any a word (u32), first integer in its low bits
---@param num_elts integer 2, 4 or 8
---@return any ... words of two values each
function cute.arch.cvt_i4_to_bf16_impl(x, num_elts) end

---Converts like cvt_i4_to_bf16_impl, for integers in the order 0, 2, 1, 3, 4,
---6, 5, 7. The results have the natural order.
---@param x any a word (u32)
---@param num_elts integer 2, 4 or 8
---@return any ... words of two values each
function cute.arch.cvt_i4_to_bf16_with_shuffle_impl(x, num_elts) end

---Converts two signed 4-bit integers to bf16 and subtracts a zero point from
---each, exactly. Combines their bits with bits of floats instead of using slow
---conversion instructions. Also converts a vector whose size is a multiple of
---2.
---@param x any a word (u32), first integer in its low bits; or a vector
---@param zero? integer 0 to 15; 0 when absent
---@param opts? {with_shuffle: boolean} the order of cvt_i4_bf16_intrinsic
---@return any ... a word that holds both, or a vector
function cute.arch.cvt_i4x2_to_bf16x2(x, zero, opts) end

---Converts four signed 4-bit integers to bf16 and subtracts a zero point from
---each, exactly. Combines their bits with bits of floats instead of using slow
---conversion instructions. Also converts a vector whose size is a multiple of
---4.
---@param x any a word (u32), first integer in its low bits; or a vector
---@param zero? integer 0 to 15; 0 when absent
---@param opts? {with_shuffle: boolean} the order of cvt_i4_bf16_intrinsic
---@return any ... 2 words of two values each, or a vector
function cute.arch.cvt_i4x4_to_bf16x4(x, zero, opts) end

---Converts eight signed 4-bit integers to bf16 and subtracts a zero point from
---each, exactly. Combines their bits with bits of floats instead of using slow
---conversion instructions. Also converts a vector whose size is a multiple of
---8.
---@param x any a word (u32), first integer in its low bits; or a vector
---@param zero? integer 0 to 15; 0 when absent
---@param opts? {with_shuffle: boolean} the order of cvt_i4_bf16_intrinsic
---@return any ... 4 words of two values each, or a vector
function cute.arch.cvt_i4x8_to_bf16x8(x, zero, opts) end

---Converts two signed 4-bit integers to f16 and subtracts a zero point from
---each, exactly. Combines their bits with bits of floats instead of using slow
---conversion instructions. Also converts a vector whose size is a multiple of
---2.
---@param x any a word (u32), first integer in its low bits; or a vector
---@param zero? integer 0 to 15; 0 when absent
---@param opts? {with_shuffle: boolean} the order of cvt_i4_bf16_intrinsic
---@return any ... a word that holds both, or a vector
function cute.arch.cvt_i4x2_to_f16x2(x, zero, opts) end

---Converts four signed 4-bit integers to f16 and subtracts a zero point from
---each, exactly. Combines their bits with bits of floats instead of using slow
---conversion instructions. Also converts a vector whose size is a multiple of
---4.
---@param x any a word (u32), first integer in its low bits; or a vector
---@param zero? integer 0 to 15; 0 when absent
---@param opts? {with_shuffle: boolean} the order of cvt_i4_bf16_intrinsic
---@return any ... 2 words of two values each, or a vector
function cute.arch.cvt_i4x4_to_f16x4(x, zero, opts) end

---Converts eight signed 4-bit integers to f16 and subtracts a zero point from
---each, exactly. Combines their bits with bits of floats instead of using slow
---conversion instructions. Also converts a vector whose size is a multiple of
---8.
---@param x any a word (u32), first integer in its low bits; or a vector
---@param zero? integer 0 to 15; 0 when absent
---@param opts? {with_shuffle: boolean} the order of cvt_i4_bf16_intrinsic
---@return any ... 4 words of two values each, or a vector
function cute.arch.cvt_i4x8_to_f16x8(x, zero, opts) end

---Converts two unsigned 4-bit integers to bf16 and subtracts a zero point from
---each, exactly. Combines their bits with bits of floats instead of using slow
---conversion instructions. Also converts a vector whose size is a multiple of
---2.
---@param x any a word (u32), first integer in its low bits; or a vector
---@param zero? integer 0 to 15; 0 when absent
---@param opts? {with_shuffle: boolean} the order of cvt_i4_bf16_intrinsic
---@return any ... a word that holds both, or a vector
function cute.arch.cvt_u4x2_to_bf16x2(x, zero, opts) end

---Converts four unsigned 4-bit integers to bf16 and subtracts a zero point from
---each, exactly. Combines their bits with bits of floats instead of using slow
---conversion instructions. Also converts a vector whose size is a multiple of
---4.
---@param x any a word (u32), first integer in its low bits; or a vector
---@param zero? integer 0 to 15; 0 when absent
---@param opts? {with_shuffle: boolean} the order of cvt_i4_bf16_intrinsic
---@return any ... 2 words of two values each, or a vector
function cute.arch.cvt_u4x4_to_bf16x4(x, zero, opts) end

---Converts eight unsigned 4-bit integers to bf16 and subtracts a zero point
---from each, exactly. Combines their bits with bits of floats instead of using
---slow conversion instructions. Also converts a vector whose size is a multiple
---of 8.
---@param x any a word (u32), first integer in its low bits; or a vector
---@param zero? integer 0 to 15; 0 when absent
---@param opts? {with_shuffle: boolean} the order of cvt_i4_bf16_intrinsic
---@return any ... 4 words of two values each, or a vector
function cute.arch.cvt_u4x8_to_bf16x8(x, zero, opts) end

---Converts two unsigned 4-bit integers to f16 and subtracts a zero point from
---each, exactly. Combines their bits with bits of floats instead of using slow
---conversion instructions. Also converts a vector whose size is a multiple of
---2.
---@param x any a word (u32), first integer in its low bits; or a vector
---@param zero? integer 0 to 15; 0 when absent
---@param opts? {with_shuffle: boolean} the order of cvt_i4_bf16_intrinsic
---@return any ... a word that holds both, or a vector
function cute.arch.cvt_u4x2_to_f16x2(x, zero, opts) end

---Converts four unsigned 4-bit integers to f16 and subtracts a zero point from
---each, exactly. Combines their bits with bits of floats instead of using slow
---conversion instructions. Also converts a vector whose size is a multiple of
---4.
---@param x any a word (u32), first integer in its low bits; or a vector
---@param zero? integer 0 to 15; 0 when absent
---@param opts? {with_shuffle: boolean} the order of cvt_i4_bf16_intrinsic
---@return any ... 2 words of two values each, or a vector
function cute.arch.cvt_u4x4_to_f16x4(x, zero, opts) end

---Converts eight unsigned 4-bit integers to f16 and subtracts a zero point from
---each, exactly. Combines their bits with bits of floats instead of using slow
---conversion instructions. Also converts a vector whose size is a multiple of
---8.
---@param x any a word (u32), first integer in its low bits; or a vector
---@param zero? integer 0 to 15; 0 when absent
---@param opts? {with_shuffle: boolean} the order of cvt_i4_bf16_intrinsic
---@return any ... 4 words of two values each, or a vector
function cute.arch.cvt_u4x8_to_f16x8(x, zero, opts) end

---Converts two signed 8-bit integers to bf16, exactly. Combines their bits with
---bits of floats instead of using slow conversion instructions. Also converts a
---vector whose size is a multiple of 2.
---@param x any a word (u32), first integer in its low bits; or a vector
---@return any ... a word that holds both, or a vector
function cute.arch.cvt_i8x2_to_bf16x2(x) end

---Converts four signed 8-bit integers to bf16, exactly. Combines their bits
---with bits of floats instead of using slow conversion instructions. Also
---converts a vector whose size is a multiple of 4.
---@param x any a word (u32), first integer in its low bits; or a vector
---@return any ... 2 words of two values each, or a vector
function cute.arch.cvt_i8x4_to_bf16x4(x) end

---Converts two signed 8-bit integers to f16, exactly. Combines their bits with
---bits of floats instead of using slow conversion instructions. Also converts a
---vector whose size is a multiple of 2.
---@param x any a word (u32), first integer in its low bits; or a vector
---@return any ... a word that holds both, or a vector
function cute.arch.cvt_i8x2_to_f16x2(x) end

---Converts four signed 8-bit integers to f16, exactly. Combines their bits with
---bits of floats instead of using slow conversion instructions. Also converts a
---vector whose size is a multiple of 4.
---@param x any a word (u32), first integer in its low bits; or a vector
---@return any ... 2 words of two values each, or a vector
function cute.arch.cvt_i8x4_to_f16x4(x) end

---Converts two signed 8-bit integers to f32, exactly. Combines their bits with
---bits of floats instead of using slow conversion instructions. Also converts a
---vector whose size is a multiple of 2.
---@param x any a word (u32), first integer in its low bits; or a vector
---@return any ... 2 f32, or a vector
function cute.arch.cvt_i8x2_to_f32x2(x) end

---Converts four signed 8-bit integers to f32, exactly. Combines their bits with
---bits of floats instead of using slow conversion instructions. Also converts a
---vector whose size is a multiple of 4.
---@param x any a word (u32), first integer in its low bits; or a vector
---@return any ... 4 f32, or a vector
function cute.arch.cvt_i8x4_to_f32x4(x) end

---Converts two unsigned 8-bit integers to bf16, exactly. Combines their bits
---with bits of floats instead of using slow conversion instructions. Also
---converts a vector whose size is a multiple of 2.
---@param x any a word (u32), first integer in its low bits; or a vector
---@return any ... a word that holds both, or a vector
function cute.arch.cvt_u8x2_to_bf16x2(x) end

---Converts four unsigned 8-bit integers to bf16, exactly. Combines their bits
---with bits of floats instead of using slow conversion instructions. Also
---converts a vector whose size is a multiple of 4.
---@param x any a word (u32), first integer in its low bits; or a vector
---@return any ... 2 words of two values each, or a vector
function cute.arch.cvt_u8x4_to_bf16x4(x) end

---Converts two unsigned 8-bit integers to f16, exactly. Combines their bits
---with bits of floats instead of using slow conversion instructions. Also
---converts a vector whose size is a multiple of 2.
---@param x any a word (u32), first integer in its low bits; or a vector
---@return any ... a word that holds both, or a vector
function cute.arch.cvt_u8x2_to_f16x2(x) end

---Converts four unsigned 8-bit integers to f16, exactly. Combines their bits
---with bits of floats instead of using slow conversion instructions. Also
---converts a vector whose size is a multiple of 4.
---@param x any a word (u32), first integer in its low bits; or a vector
---@return any ... 2 words of two values each, or a vector
function cute.arch.cvt_u8x4_to_f16x4(x) end

---Converts two unsigned 8-bit integers to f32, exactly. Combines their bits
---with bits of floats instead of using slow conversion instructions. Also
---converts a vector whose size is a multiple of 2.
---@param x any a word (u32), first integer in its low bits; or a vector
---@return any ... 2 f32, or a vector
function cute.arch.cvt_u8x2_to_f32x2(x) end

---Converts four unsigned 8-bit integers to f32, exactly. Combines their bits
---with bits of floats instead of using slow conversion instructions. Also
---converts a vector whose size is a multiple of 4.
---@param x any a word (u32), first integer in its low bits; or a vector
---@return any ... 4 f32, or a vector
function cute.arch.cvt_u8x4_to_f32x4(x) end

return cute
-- SPDX-License-Identifier: MIT
