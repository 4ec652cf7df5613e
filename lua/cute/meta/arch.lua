---@meta cute
-- Comments of what cute.arch makes in loops. Nothing here runs.
-- luacheck: ignore
error "annotations are not to be run"

---@class cute
local cute = {}

---------------------------------------------------------------------------
-- cute.arch: packed numbers
---------------------------------------------------------------------------

---a + b of two bf16 at once, each rounded to nearest even.
---@param a any a pair {x, y}, a word (u32) or a vector
---@param b any a pair as a
---@return any of the same form
function cute.arch.add_packed_bf16x2(a, b) end

---a + b of two f16 at once, each rounded to nearest even.
---@param a any a pair {x, y}, a word (u32) or a vector
---@param b any a pair as a
---@return any of the same form
function cute.arch.add_packed_f16x2(a, b) end

---a + b of two f32 at once, each rounded to nearest even.
---@param a any a pair {x, y} or a vector
---@param b any a pair as a
---@return any of the same form
function cute.arch.add_packed_f32x2(a, b) end

---a - b of two bf16 at once, each rounded to nearest even.
---@param a any a pair {x, y}, a word (u32) or a vector
---@param b any a pair as a
---@return any of the same form
function cute.arch.sub_packed_bf16x2(a, b) end

---a - b of two f16 at once, each rounded to nearest even.
---@param a any a pair {x, y}, a word (u32) or a vector
---@param b any a pair as a
---@return any of the same form
function cute.arch.sub_packed_f16x2(a, b) end

---a - b of two f32 at once, each rounded to nearest even.
---@param a any a pair {x, y} or a vector
---@param b any a pair as a
---@return any of the same form
function cute.arch.sub_packed_f32x2(a, b) end

---a * b of two bf16 at once, each rounded to nearest even.
---@param a any a pair {x, y}, a word (u32) or a vector
---@param b any a pair as a
---@return any of the same form
function cute.arch.mul_packed_bf16x2(a, b) end

---a * b of two f16 at once, each rounded to nearest even.
---@param a any a pair {x, y}, a word (u32) or a vector
---@param b any a pair as a
---@return any of the same form
function cute.arch.mul_packed_f16x2(a, b) end

---a * b of two f32 at once, each rounded to nearest even.
---@param a any a pair {x, y} or a vector
---@param b any a pair as a
---@return any of the same form
function cute.arch.mul_packed_f32x2(a, b) end

---a * b + c, rounded once, of two bf16 at once, each rounded to nearest even.
---@param a any a pair {x, y}, a word (u32) or a vector
---@param b any a pair as a
---@param c any a pair as a
---@return any of the same form
function cute.arch.fma_packed_bf16x2(a, b, c) end

---a * b + c, rounded once, of two f16 at once, each rounded to nearest even.
---@param a any a pair {x, y}, a word (u32) or a vector
---@param b any a pair as a
---@param c any a pair as a
---@return any of the same form
function cute.arch.fma_packed_f16x2(a, b, c) end

---a * b + c, rounded once, of two f32 at once, each rounded to nearest even.
---@param a any a pair {x, y} or a vector
---@param b any a pair as a
---@param c any a pair as a
---@return any of the same form
function cute.arch.fma_packed_f32x2(a, b, c) end

---2 signed integers of 4 bits as bf16, less a zero point, by the bits of
---floats: exact, and without slow conversions. Of a vector of a multiple of 2
---elements it gives a vector.
---@param x any a word (u32), the first one in its low bits; or a vector
---@param zero? integer 0 to 15; 0 when absent
---@return any ... a word of two each, or a vector
function cute.arch.cvt_i4x2_to_bf16x2(x, zero) end

---4 signed integers of 4 bits as bf16, less a zero point, by the bits of
---floats: exact, and without slow conversions. Of a vector of a multiple of 4
---elements it gives a vector.
---@param x any a word (u32), the first one in its low bits; or a vector
---@param zero? integer 0 to 15; 0 when absent
---@return any ... 2 words of two each, or a vector
function cute.arch.cvt_i4x4_to_bf16x4(x, zero) end

---8 signed integers of 4 bits as bf16, less a zero point, by the bits of
---floats: exact, and without slow conversions. Of a vector of a multiple of 8
---elements it gives a vector.
---@param x any a word (u32), the first one in its low bits; or a vector
---@param zero? integer 0 to 15; 0 when absent
---@return any ... 4 words of two each, or a vector
function cute.arch.cvt_i4x8_to_bf16x8(x, zero) end

---2 signed integers of 4 bits as f16, less a zero point, by the bits of
---floats: exact, and without slow conversions. Of a vector of a multiple of 2
---elements it gives a vector.
---@param x any a word (u32), the first one in its low bits; or a vector
---@param zero? integer 0 to 15; 0 when absent
---@return any ... a word of two each, or a vector
function cute.arch.cvt_i4x2_to_f16x2(x, zero) end

---4 signed integers of 4 bits as f16, less a zero point, by the bits of
---floats: exact, and without slow conversions. Of a vector of a multiple of 4
---elements it gives a vector.
---@param x any a word (u32), the first one in its low bits; or a vector
---@param zero? integer 0 to 15; 0 when absent
---@return any ... 2 words of two each, or a vector
function cute.arch.cvt_i4x4_to_f16x4(x, zero) end

---8 signed integers of 4 bits as f16, less a zero point, by the bits of
---floats: exact, and without slow conversions. Of a vector of a multiple of 8
---elements it gives a vector.
---@param x any a word (u32), the first one in its low bits; or a vector
---@param zero? integer 0 to 15; 0 when absent
---@return any ... 4 words of two each, or a vector
function cute.arch.cvt_i4x8_to_f16x8(x, zero) end

---2 unsigned integers of 4 bits as bf16, less a zero point, by the bits of
---floats: exact, and without slow conversions. Of a vector of a multiple of 2
---elements it gives a vector.
---@param x any a word (u32), the first one in its low bits; or a vector
---@param zero? integer 0 to 15; 0 when absent
---@return any ... a word of two each, or a vector
function cute.arch.cvt_u4x2_to_bf16x2(x, zero) end

---4 unsigned integers of 4 bits as bf16, less a zero point, by the bits of
---floats: exact, and without slow conversions. Of a vector of a multiple of 4
---elements it gives a vector.
---@param x any a word (u32), the first one in its low bits; or a vector
---@param zero? integer 0 to 15; 0 when absent
---@return any ... 2 words of two each, or a vector
function cute.arch.cvt_u4x4_to_bf16x4(x, zero) end

---8 unsigned integers of 4 bits as bf16, less a zero point, by the bits of
---floats: exact, and without slow conversions. Of a vector of a multiple of 8
---elements it gives a vector.
---@param x any a word (u32), the first one in its low bits; or a vector
---@param zero? integer 0 to 15; 0 when absent
---@return any ... 4 words of two each, or a vector
function cute.arch.cvt_u4x8_to_bf16x8(x, zero) end

---2 unsigned integers of 4 bits as f16, less a zero point, by the bits of
---floats: exact, and without slow conversions. Of a vector of a multiple of 2
---elements it gives a vector.
---@param x any a word (u32), the first one in its low bits; or a vector
---@param zero? integer 0 to 15; 0 when absent
---@return any ... a word of two each, or a vector
function cute.arch.cvt_u4x2_to_f16x2(x, zero) end

---4 unsigned integers of 4 bits as f16, less a zero point, by the bits of
---floats: exact, and without slow conversions. Of a vector of a multiple of 4
---elements it gives a vector.
---@param x any a word (u32), the first one in its low bits; or a vector
---@param zero? integer 0 to 15; 0 when absent
---@return any ... 2 words of two each, or a vector
function cute.arch.cvt_u4x4_to_f16x4(x, zero) end

---8 unsigned integers of 4 bits as f16, less a zero point, by the bits of
---floats: exact, and without slow conversions. Of a vector of a multiple of 8
---elements it gives a vector.
---@param x any a word (u32), the first one in its low bits; or a vector
---@param zero? integer 0 to 15; 0 when absent
---@return any ... 4 words of two each, or a vector
function cute.arch.cvt_u4x8_to_f16x8(x, zero) end

---2 signed integers of 8 bits as bf16 by the bits of
---floats: exact, and without slow conversions. Of a vector of a multiple of 2
---elements it gives a vector.
---@param x any a word (u32), the first one in its low bits; or a vector
---@return any ... a word of two each, or a vector
function cute.arch.cvt_i8x2_to_bf16x2(x) end

---4 signed integers of 8 bits as bf16 by the bits of
---floats: exact, and without slow conversions. Of a vector of a multiple of 4
---elements it gives a vector.
---@param x any a word (u32), the first one in its low bits; or a vector
---@return any ... 2 words of two each, or a vector
function cute.arch.cvt_i8x4_to_bf16x4(x) end

---2 signed integers of 8 bits as f16 by the bits of
---floats: exact, and without slow conversions. Of a vector of a multiple of 2
---elements it gives a vector.
---@param x any a word (u32), the first one in its low bits; or a vector
---@return any ... a word of two each, or a vector
function cute.arch.cvt_i8x2_to_f16x2(x) end

---4 signed integers of 8 bits as f16 by the bits of
---floats: exact, and without slow conversions. Of a vector of a multiple of 4
---elements it gives a vector.
---@param x any a word (u32), the first one in its low bits; or a vector
---@return any ... 2 words of two each, or a vector
function cute.arch.cvt_i8x4_to_f16x4(x) end

---2 signed integers of 8 bits as f32 by the bits of
---floats: exact, and without slow conversions. Of a vector of a multiple of 2
---elements it gives a vector.
---@param x any a word (u32), the first one in its low bits; or a vector
---@return any ... 2 f32, or a vector
function cute.arch.cvt_i8x2_to_f32x2(x) end

---4 signed integers of 8 bits as f32 by the bits of
---floats: exact, and without slow conversions. Of a vector of a multiple of 4
---elements it gives a vector.
---@param x any a word (u32), the first one in its low bits; or a vector
---@return any ... 4 f32, or a vector
function cute.arch.cvt_i8x4_to_f32x4(x) end

---2 unsigned integers of 8 bits as bf16 by the bits of
---floats: exact, and without slow conversions. Of a vector of a multiple of 2
---elements it gives a vector.
---@param x any a word (u32), the first one in its low bits; or a vector
---@return any ... a word of two each, or a vector
function cute.arch.cvt_u8x2_to_bf16x2(x) end

---4 unsigned integers of 8 bits as bf16 by the bits of
---floats: exact, and without slow conversions. Of a vector of a multiple of 4
---elements it gives a vector.
---@param x any a word (u32), the first one in its low bits; or a vector
---@return any ... 2 words of two each, or a vector
function cute.arch.cvt_u8x4_to_bf16x4(x) end

---2 unsigned integers of 8 bits as f16 by the bits of
---floats: exact, and without slow conversions. Of a vector of a multiple of 2
---elements it gives a vector.
---@param x any a word (u32), the first one in its low bits; or a vector
---@return any ... a word of two each, or a vector
function cute.arch.cvt_u8x2_to_f16x2(x) end

---4 unsigned integers of 8 bits as f16 by the bits of
---floats: exact, and without slow conversions. Of a vector of a multiple of 4
---elements it gives a vector.
---@param x any a word (u32), the first one in its low bits; or a vector
---@return any ... 2 words of two each, or a vector
function cute.arch.cvt_u8x4_to_f16x4(x) end

---2 unsigned integers of 8 bits as f32 by the bits of
---floats: exact, and without slow conversions. Of a vector of a multiple of 2
---elements it gives a vector.
---@param x any a word (u32), the first one in its low bits; or a vector
---@return any ... 2 f32, or a vector
function cute.arch.cvt_u8x2_to_f32x2(x) end

---4 unsigned integers of 8 bits as f32 by the bits of
---floats: exact, and without slow conversions. Of a vector of a multiple of 4
---elements it gives a vector.
---@param x any a word (u32), the first one in its low bits; or a vector
---@return any ... 4 f32, or a vector
function cute.arch.cvt_u8x4_to_f32x4(x) end

return cute
