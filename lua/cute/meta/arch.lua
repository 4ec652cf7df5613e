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
---@param b any a pair as a
---@return any in the form of a
function cute.arch.add_packed_bf16x2(a, b) end

---Computes a + b for two packed f16, each rounded to nearest even.
---@param a any a pair {x, y}, a word (u32) or a vector
---@param b any a pair as a
---@return any in the form of a
function cute.arch.add_packed_f16x2(a, b) end

---Computes a + b for two packed f32, each rounded to nearest even.
---@param a any a pair {x, y} or a vector
---@param b any a pair as a
---@return any in the form of a
function cute.arch.add_packed_f32x2(a, b) end

---Computes a - b for two packed bf16, each rounded to nearest even.
---@param a any a pair {x, y}, a word (u32) or a vector
---@param b any a pair as a
---@return any in the form of a
function cute.arch.sub_packed_bf16x2(a, b) end

---Computes a - b for two packed f16, each rounded to nearest even.
---@param a any a pair {x, y}, a word (u32) or a vector
---@param b any a pair as a
---@return any in the form of a
function cute.arch.sub_packed_f16x2(a, b) end

---Computes a - b for two packed f32, each rounded to nearest even.
---@param a any a pair {x, y} or a vector
---@param b any a pair as a
---@return any in the form of a
function cute.arch.sub_packed_f32x2(a, b) end

---Computes a * b for two packed bf16, each rounded to nearest even.
---@param a any a pair {x, y}, a word (u32) or a vector
---@param b any a pair as a
---@return any in the form of a
function cute.arch.mul_packed_bf16x2(a, b) end

---Computes a * b for two packed f16, each rounded to nearest even.
---@param a any a pair {x, y}, a word (u32) or a vector
---@param b any a pair as a
---@return any in the form of a
function cute.arch.mul_packed_f16x2(a, b) end

---Computes a * b for two packed f32, each rounded to nearest even.
---@param a any a pair {x, y} or a vector
---@param b any a pair as a
---@return any in the form of a
function cute.arch.mul_packed_f32x2(a, b) end

---Computes a * b + c for two packed bf16, each with one rounding, to nearest
---even.
---@param a any a pair {x, y}, a word (u32) or a vector
---@param b any a pair as a
---@param c any a pair as a
---@return any in the form of a
function cute.arch.fma_packed_bf16x2(a, b, c) end

---Computes a * b + c for two packed f16, each with one rounding, to nearest
---even.
---@param a any a pair {x, y}, a word (u32) or a vector
---@param b any a pair as a
---@param c any a pair as a
---@return any in the form of a
function cute.arch.fma_packed_f16x2(a, b, c) end

---Computes a * b + c for two packed f32, each with one rounding, to nearest
---even.
---@param a any a pair {x, y} or a vector
---@param b any a pair as a
---@param c any a pair as a
---@return any in the form of a
function cute.arch.fma_packed_f32x2(a, b, c) end

---Converts 2 signed 4-bit integers, minus a zero point, to bf16. The result
---is exact and is built from the bits of floats, without slow conversion
---instructions. A vector whose size is a multiple of 2 gives a vector.
---@param x any a word (u32), first integer in its low bits; or a vector
---@param zero? integer 0 to 15; 0 when absent
---@return any ... a word that holds both, or a vector
function cute.arch.cvt_i4x2_to_bf16x2(x, zero) end

---Converts 4 signed 4-bit integers, minus a zero point, to bf16. The result
---is exact and is built from the bits of floats, without slow conversion
---instructions. A vector whose size is a multiple of 4 gives a vector.
---@param x any a word (u32), first integer in its low bits; or a vector
---@param zero? integer 0 to 15; 0 when absent
---@return any ... 2 words of two values each, or a vector
function cute.arch.cvt_i4x4_to_bf16x4(x, zero) end

---Converts 8 signed 4-bit integers, minus a zero point, to bf16. The result
---is exact and is built from the bits of floats, without slow conversion
---instructions. A vector whose size is a multiple of 8 gives a vector.
---@param x any a word (u32), first integer in its low bits; or a vector
---@param zero? integer 0 to 15; 0 when absent
---@return any ... 4 words of two values each, or a vector
function cute.arch.cvt_i4x8_to_bf16x8(x, zero) end

---Converts 2 signed 4-bit integers, minus a zero point, to f16. The result
---is exact and is built from the bits of floats, without slow conversion
---instructions. A vector whose size is a multiple of 2 gives a vector.
---@param x any a word (u32), first integer in its low bits; or a vector
---@param zero? integer 0 to 15; 0 when absent
---@return any ... a word that holds both, or a vector
function cute.arch.cvt_i4x2_to_f16x2(x, zero) end

---Converts 4 signed 4-bit integers, minus a zero point, to f16. The result
---is exact and is built from the bits of floats, without slow conversion
---instructions. A vector whose size is a multiple of 4 gives a vector.
---@param x any a word (u32), first integer in its low bits; or a vector
---@param zero? integer 0 to 15; 0 when absent
---@return any ... 2 words of two values each, or a vector
function cute.arch.cvt_i4x4_to_f16x4(x, zero) end

---Converts 8 signed 4-bit integers, minus a zero point, to f16. The result
---is exact and is built from the bits of floats, without slow conversion
---instructions. A vector whose size is a multiple of 8 gives a vector.
---@param x any a word (u32), first integer in its low bits; or a vector
---@param zero? integer 0 to 15; 0 when absent
---@return any ... 4 words of two values each, or a vector
function cute.arch.cvt_i4x8_to_f16x8(x, zero) end

---Converts 2 unsigned 4-bit integers, minus a zero point, to bf16. The result
---is exact and is built from the bits of floats, without slow conversion
---instructions. A vector whose size is a multiple of 2 gives a vector.
---@param x any a word (u32), first integer in its low bits; or a vector
---@param zero? integer 0 to 15; 0 when absent
---@return any ... a word that holds both, or a vector
function cute.arch.cvt_u4x2_to_bf16x2(x, zero) end

---Converts 4 unsigned 4-bit integers, minus a zero point, to bf16. The result
---is exact and is built from the bits of floats, without slow conversion
---instructions. A vector whose size is a multiple of 4 gives a vector.
---@param x any a word (u32), first integer in its low bits; or a vector
---@param zero? integer 0 to 15; 0 when absent
---@return any ... 2 words of two values each, or a vector
function cute.arch.cvt_u4x4_to_bf16x4(x, zero) end

---Converts 8 unsigned 4-bit integers, minus a zero point, to bf16. The result
---is exact and is built from the bits of floats, without slow conversion
---instructions. A vector whose size is a multiple of 8 gives a vector.
---@param x any a word (u32), first integer in its low bits; or a vector
---@param zero? integer 0 to 15; 0 when absent
---@return any ... 4 words of two values each, or a vector
function cute.arch.cvt_u4x8_to_bf16x8(x, zero) end

---Converts 2 unsigned 4-bit integers, minus a zero point, to f16. The result
---is exact and is built from the bits of floats, without slow conversion
---instructions. A vector whose size is a multiple of 2 gives a vector.
---@param x any a word (u32), first integer in its low bits; or a vector
---@param zero? integer 0 to 15; 0 when absent
---@return any ... a word that holds both, or a vector
function cute.arch.cvt_u4x2_to_f16x2(x, zero) end

---Converts 4 unsigned 4-bit integers, minus a zero point, to f16. The result
---is exact and is built from the bits of floats, without slow conversion
---instructions. A vector whose size is a multiple of 4 gives a vector.
---@param x any a word (u32), first integer in its low bits; or a vector
---@param zero? integer 0 to 15; 0 when absent
---@return any ... 2 words of two values each, or a vector
function cute.arch.cvt_u4x4_to_f16x4(x, zero) end

---Converts 8 unsigned 4-bit integers, minus a zero point, to f16. The result
---is exact and is built from the bits of floats, without slow conversion
---instructions. A vector whose size is a multiple of 8 gives a vector.
---@param x any a word (u32), first integer in its low bits; or a vector
---@param zero? integer 0 to 15; 0 when absent
---@return any ... 4 words of two values each, or a vector
function cute.arch.cvt_u4x8_to_f16x8(x, zero) end

---Converts 2 signed 8-bit integers to bf16. The result is exact and is built
---from the bits of floats, without slow conversion instructions. A vector whose
---size is a multiple of 2 gives a vector.
---@param x any a word (u32), first integer in its low bits; or a vector
---@return any ... a word that holds both, or a vector
function cute.arch.cvt_i8x2_to_bf16x2(x) end

---Converts 4 signed 8-bit integers to bf16. The result is exact and is built
---from the bits of floats, without slow conversion instructions. A vector whose
---size is a multiple of 4 gives a vector.
---@param x any a word (u32), first integer in its low bits; or a vector
---@return any ... 2 words of two values each, or a vector
function cute.arch.cvt_i8x4_to_bf16x4(x) end

---Converts 2 signed 8-bit integers to f16. The result is exact and is built
---from the bits of floats, without slow conversion instructions. A vector whose
---size is a multiple of 2 gives a vector.
---@param x any a word (u32), first integer in its low bits; or a vector
---@return any ... a word that holds both, or a vector
function cute.arch.cvt_i8x2_to_f16x2(x) end

---Converts 4 signed 8-bit integers to f16. The result is exact and is built
---from the bits of floats, without slow conversion instructions. A vector whose
---size is a multiple of 4 gives a vector.
---@param x any a word (u32), first integer in its low bits; or a vector
---@return any ... 2 words of two values each, or a vector
function cute.arch.cvt_i8x4_to_f16x4(x) end

---Converts 2 signed 8-bit integers to f32. The result is exact and is built
---from the bits of floats, without slow conversion instructions. A vector whose
---size is a multiple of 2 gives a vector.
---@param x any a word (u32), first integer in its low bits; or a vector
---@return any ... 2 f32, or a vector
function cute.arch.cvt_i8x2_to_f32x2(x) end

---Converts 4 signed 8-bit integers to f32. The result is exact and is built
---from the bits of floats, without slow conversion instructions. A vector whose
---size is a multiple of 4 gives a vector.
---@param x any a word (u32), first integer in its low bits; or a vector
---@return any ... 4 f32, or a vector
function cute.arch.cvt_i8x4_to_f32x4(x) end

---Converts 2 unsigned 8-bit integers to bf16. The result is exact and is built
---from the bits of floats, without slow conversion instructions. A vector whose
---size is a multiple of 2 gives a vector.
---@param x any a word (u32), first integer in its low bits; or a vector
---@return any ... a word that holds both, or a vector
function cute.arch.cvt_u8x2_to_bf16x2(x) end

---Converts 4 unsigned 8-bit integers to bf16. The result is exact and is built
---from the bits of floats, without slow conversion instructions. A vector whose
---size is a multiple of 4 gives a vector.
---@param x any a word (u32), first integer in its low bits; or a vector
---@return any ... 2 words of two values each, or a vector
function cute.arch.cvt_u8x4_to_bf16x4(x) end

---Converts 2 unsigned 8-bit integers to f16. The result is exact and is built
---from the bits of floats, without slow conversion instructions. A vector whose
---size is a multiple of 2 gives a vector.
---@param x any a word (u32), first integer in its low bits; or a vector
---@return any ... a word that holds both, or a vector
function cute.arch.cvt_u8x2_to_f16x2(x) end

---Converts 4 unsigned 8-bit integers to f16. The result is exact and is built
---from the bits of floats, without slow conversion instructions. A vector whose
---size is a multiple of 4 gives a vector.
---@param x any a word (u32), first integer in its low bits; or a vector
---@return any ... 2 words of two values each, or a vector
function cute.arch.cvt_u8x4_to_f16x4(x) end

---Converts 2 unsigned 8-bit integers to f32. The result is exact and is built
---from the bits of floats, without slow conversion instructions. A vector whose
---size is a multiple of 2 gives a vector.
---@param x any a word (u32), first integer in its low bits; or a vector
---@return any ... 2 f32, or a vector
function cute.arch.cvt_u8x2_to_f32x2(x) end

---Converts 4 unsigned 8-bit integers to f32. The result is exact and is built
---from the bits of floats, without slow conversion instructions. A vector whose
---size is a multiple of 4 gives a vector.
---@param x any a word (u32), first integer in its low bits; or a vector
---@return any ... 4 f32, or a vector
function cute.arch.cvt_u8x4_to_f32x4(x) end

return cute
-- SPDX-License-Identifier: MIT
