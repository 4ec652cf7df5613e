// Element types: the table of their properties and bit-exact conversions.
#include "base/dtype.h"

#include <math.h>
#include <string.h>

typedef struct Fact {
  const char *name, *cuda;
  int bits;
  char cls;
} Fact;

static const Fact facts[DT_COUNT] = {
  [DT_NONE] = {"none", "void", 0, ' '},
#define P 'P'
#define I 'I'
#define U 'U'
#define F 'F'
#define DT(id, nm, nbits, class, spelling) \
  [DT_##id] = {nm, spelling, nbits, class},
  DTYPES(DT)
#undef DT
#undef P
#undef I
#undef U
#undef F
};

const char *dtype_name(DType t) { return facts[t].name; }
const char *dtype_cuda(DType t) { return facts[t].cuda; }
int dtype_bits(DType t) { return facts[t].bits; }
char dtype_class(DType t) { return facts[t].cls; }

// Other names of types, from the Python DSL, CUTLASS C++, C and NumPy.
static const struct { const char *name; DType t; } aliases[] = {
  {"Boolean", DT_BOOL}, {"bool", DT_BOOL}, {"pred", DT_BOOL},
  {"Int8", DT_I8}, {"int8", DT_I8}, {"int8_t", DT_I8}, {"s8", DT_I8},
  {"Uint8", DT_U8}, {"uint8", DT_U8}, {"uint8_t", DT_U8},
  {"Int16", DT_I16}, {"int16", DT_I16}, {"int16_t", DT_I16},
  {"s16", DT_I16}, {"short", DT_I16},
  {"Uint16", DT_U16}, {"uint16", DT_U16}, {"uint16_t", DT_U16},
  {"Int32", DT_I32}, {"int32", DT_I32}, {"int32_t", DT_I32},
  {"s32", DT_I32}, {"int", DT_I32},
  {"Uint32", DT_U32}, {"uint32", DT_U32}, {"uint32_t", DT_U32},
  {"unsigned", DT_U32},
  {"Int64", DT_I64}, {"int64", DT_I64}, {"int64_t", DT_I64}, {"s64", DT_I64},
  {"Uint64", DT_U64}, {"uint64", DT_U64}, {"uint64_t", DT_U64},
  {"Float16", DT_F16}, {"float16", DT_F16}, {"half", DT_F16},
  {"half_t", DT_F16},
  {"BFloat16", DT_BF16}, {"bfloat16", DT_BF16}, {"bfloat16_t", DT_BF16},
  {"TFloat32", DT_TF32}, {"tfloat32", DT_TF32}, {"tfloat32_t", DT_TF32},
  {"Float32", DT_F32}, {"float32", DT_F32}, {"float", DT_F32},
  {"Float64", DT_F64}, {"float64", DT_F64}, {"double", DT_F64},
  {"Float8E4M3FN", DT_E4M3}, {"float8_e4m3fn", DT_E4M3},
  {"float_e4m3_t", DT_E4M3}, {"e4m3fn", DT_E4M3},
  {"Float8E5M2", DT_E5M2}, {"float8_e5m2", DT_E5M2},
  {"float_e5m2_t", DT_E5M2},
  {"Uint128", DT_U128}, {"uint128", DT_U128}, {"uint128_t", DT_U128},
  {"Uint1", DT_B1}, {"uint1b_t", DT_B1}, {"bin1_t", DT_B1},
  {"Int4", DT_I4}, {"int4", DT_I4}, {"int4b_t", DT_I4}, {"s4", DT_I4},
  {"Uint4", DT_U4}, {"uint4", DT_U4}, {"uint4b_t", DT_U4},
  {"Float4E2M1FN", DT_E2M1}, {"float4_e2m1fn", DT_E2M1},
  {"float_e2m1_t", DT_E2M1},
  {"Float6E2M3FN", DT_E2M3}, {"float6_e2m3fn", DT_E2M3},
  {"float_e2m3_t", DT_E2M3},
  {"Float6E3M2FN", DT_E3M2}, {"float6_e3m2fn", DT_E3M2},
  {"float_e3m2_t", DT_E3M2},
  {"Float8E8M0FNU", DT_UE8M0}, {"float8_e8m0fnu", DT_UE8M0},
  {"float_ue8m0_t", DT_UE8M0}, {"e8m0", DT_UE8M0},
  {"complex<double>", DT_C64}, {"complex128", DT_C64},
};

DType dtype_common(DType a, DType b) {
  if (a == b || b == DT_NONE) return a;
  if (a == DT_NONE || a == DT_BOOL) return b;
  if (b == DT_BOOL) return a;
  bool fa = dtype_is_float(a), fb = dtype_is_float(b);
  if (fa != fb) return fa ? a : b;
  int wa = dtype_bits(a), wb = dtype_bits(b);
  if (wa != wb) return wa > wb ? a : b;
  return fa ? DT_F32 : dtype_class(a) == 'U' ? a : b;
}

DType dtype_find(const char *name) {
  for (int t = 1; t < DT_COUNT; t++)
    if (strcmp(facts[t].name, name) == 0) return (DType)t;
  for (size_t i = 0; i < sizeof aliases / sizeof *aliases; i++)
    if (strcmp(aliases[i].name, name) == 0) return aliases[i].t;
  return DT_NONE;
}

// ---- small floats ----

// A small float format. `top` is the code of the largest finite number, without
// the sign. A larger code is an infinity or a NaN (ieee), a NaN (e4m3), or does
// not exist.
typedef struct Format {
  int mbits, bias;
  uint32_t sign, top;
  // whether the code after `top` is infinity, and larger codes are NaNs (as in
  // IEEE 754)
  bool ieee;
  bool saturate;   // conversions to this format saturate at top
  uint32_t nan;    // code that the PTX instruction cvt returns for a NaN
} Format;

static const Format f16 = {10, 15, 0x8000, 0x7bff, true, false, 0x7fff};
static const Format bf16 = {7, 127, 0x8000, 0x7f7f, true, false, 0x7fff};
static const Format e4m3 = {3, 7, 0x80, 0x7e, false, true, 0x7f};
static const Format e5m2 = {2, 15, 0x80, 0x7b, true, true, 0x7f};
static const Format e2m1 = {1, 1, 0x8, 0x7, false, true, 0x7};
static const Format e2m3 = {3, 1, 0x20, 0x1f, false, true, 0x1f};
static const Format e3m2 = {2, 3, 0x20, 0x1f, false, true, 0x1f};

static double decode(const Format *f, uint32_t u) {
  uint32_t code = u & (f->sign - 1);
  uint64_t sign = u & f->sign ? 1ull << 63 : 0;
  if (code > f->top) {
    uint64_t man = f->ieee ? code & ((1u << f->mbits) - 1) : 1;
    return bits_double(sign | 0x7ffull << 52 | man << (52 - f->mbits));
  }
  int e = (int)(code >> f->mbits);
  uint32_t man = code & ((1u << f->mbits) - 1);
  if (e) man |= 1u << f->mbits;
  double x = ldexp(man, (e ? e : 1) - f->bias - f->mbits);
  return sign ? -x : x;
}

static uint32_t encode(const Format *f, double x) {
  uint64_t u = double_bits(x);
  uint64_t frac = u & ((1ull << 52) - 1);
  int e = (int)(u >> 52 & 0x7ff);
  if (e == 0x7ff && frac) return f->nan;
  uint32_t sign = u >> 63 ? f->sign : 0;
  uint32_t past = sign | (f->saturate ? f->top : f->top + 1);
  if (e == 0x7ff) return past;
  // An f64 subnormal rounds to zero in every type below f64.
  if (e == 0) return sign;
  int emin = 1 - f->bias;
  e -= 1023;
  int base = e > emin ? e : emin;
  int cut = base - e + 52 - f->mbits;
  if (cut > 54) return sign;
  uint64_t sig = frac | 1ull << 52, half = 1ull << (cut - 1);
  uint64_t code = sig >> cut, rest = sig & (2 * half - 1);
  if (rest > half || (rest == half && (code & 1))) code++;
  code += (uint64_t)(base - emin) << f->mbits;
  return code > f->top ? past : sign | (uint32_t)code;
}

static const Format *format(DType t) {
  switch ((int)t) {
    case DT_F16: return &f16;
    case DT_BF16: return &bf16;
    case DT_E4M3: return &e4m3;
    case DT_E5M2: return &e5m2;
    case DT_E2M1: return &e2m1;
    case DT_E2M3: return &e2m3;
    case DT_E3M2: return &e3m2;
    default: return NULL;
  }
}

// Converts x to ue8m0, which represents powers of two by their exponents. Drops
// the sign. Zero and values below 2^-127 become 2^-127. A value halfway between
// two powers (1.5 * 2^e) rounds up, as in PyTorch, ml_dtypes and ONNX.
static uint64_t to_ue8m0(double x) {
  if (isnan(x)) return 0xff;
  if (isinf(x)) return 0xfe;
  int e;
  double f = frexp(fabs(x), &e);  // |x| = f * 2^e with f in [0.5, 1)
  if (f == 0) return 0;
  int code = e - 1 + 127;
  if (f >= 0.75) code++;
  return (uint64_t)(code < 0 ? 0 : code > 0xfe ? 0xfe : code);
}

// The following functions convert f16 and bf16 to f32 and back. They are faster
// than the conversions of other small floats.

static inline float f16_float(uint32_t u) {
  uint32_t sign = (u & 0x8000) << 16, code = u & 0x7fff;
  if (code >= 0x7c00) return bits_float(sign | 0x7f800000 | code << 13);
  // As f32 bits, the shifted code is the value times 2^-112.
  float x = bits_float(code << 13) * 0x1p112f;
  return bits_float(sign | float_bits(x));
}

static inline uint32_t float_f16(float x) {
  uint32_t u = float_bits(x), sign = u >> 16 & 0x8000, a = u & 0x7fffffff;
  if (a > 0x7f800000) return 0x7fff;
  // Numbers from 65536 on become infinity.
  if (a >= 0x47800000) return sign | 0x7c00;
  // The result is subnormal: adding 0.5 rounds x to a multiple of 2^-24.
  if (a < 0x38800000)
    return sign | (float_bits(bits_float(a) + 0.5f) - 0x3f000000);
  return sign | ((a + 0xfff + (a >> 13 & 1) - 0x38000000) >> 13);
}

static inline uint32_t float_bf16(float x) {
  uint32_t u = float_bits(x);
  if ((u & 0x7fffffff) > 0x7f800000) return 0x7fff;
  return (u + 0x7fff + (u >> 16 & 1)) >> 16;
}

// ---- integers ----

static int64_t sign_extend(uint64_t u, int bits) {
  uint64_t top = 1ull << (bits - 1);
  u &= 2 * top - 1;
  return (int64_t)((u ^ top) - top);
}

static uint64_t low_bits(uint64_t u, int bits) {
  return bits >= 64 ? u : u & ((1ull << bits) - 1);
}

// Returns the number of bits of a boolean or an integer type narrower than 64
// bits, or 0 for other types.
static int short_bits(DType t) {
  if (t == DT_BOOL) return 1;
  return dtype_is_int(t) && dtype_bits(t) < 64 ? dtype_bits(t) : 0;
}

int64_t dtype_least(DType t) {
  int bits = short_bits(t);
  if (!bits) return INT64_MIN;
  return dtype_class(t) == 'I' ? -((int64_t)1 << (bits - 1)) : 0;
}

int64_t dtype_most(DType t) {
  int bits = short_bits(t);
  if (!bits) return INT64_MAX;
  return ((int64_t)1 << (dtype_class(t) == 'I' ? bits - 1 : bits)) - 1;
}

int64_t dtype_int(DType t, uint64_t u) {
  int bits = short_bits(t);
  if (t == DT_BOOL) return u != 0;
  if (!bits) return (int64_t)u;
  return dtype_class(t) == 'I' ? sign_extend(u, bits)
                               : (int64_t)low_bits(u, bits);
}

// Converts x, which is not a NaN, to an integer of type t. Truncates toward
// zero and saturates.
static uint64_t to_integer(DType t, double x) {
  int bits = dtype_bits(t) > 64 ? 64 : dtype_bits(t);
  bool is_signed = dtype_class(t) == 'I';
  double past = ldexp(1, is_signed ? bits - 1 : bits);
  uint64_t top = low_bits(~0ull, is_signed ? bits - 1 : bits);
  if (x >= past) return top;
  if (!is_signed) return x <= 0 ? 0 : (uint64_t)x;
  if (x < -past) return low_bits(~top, bits);
  return low_bits((uint64_t)(int64_t)x, bits);
}

// Returns the integer to which the PTX instruction cvt converts a NaN. If the
// source is f64 or t has 64 bits, the integer has only its top bit set.
// Otherwise it is 0. Unsigned types below 32 bits get i32's result, clamped.
static uint64_t nan_integer(DType t, bool from_f64) {
  int bits = dtype_bits(t) > 64 ? 64 : dtype_bits(t);
  if (bits < 32 && dtype_class(t) != 'I') return 0;
  return from_f64 || bits == 64 ? 1ull << (bits - 1) : 0;
}

// ---- conversions ----

double dtype_to_double(DType t, uint64_t u) {
  switch (t) {
    case DT_F16: return f16_float((uint32_t)u & 0xffff);
    case DT_BF16: case DT_TF32: case DT_F32:
      return dtype_to_float(t, u);
    case DT_F64: case DT_C64: return bits_double(u);
    case DT_E4M3: case DT_E5M2: case DT_E2M1: case DT_E2M3: case DT_E3M2:
      return decode(format(t), (uint32_t)u);
    case DT_UE8M0:
      return (u & 0xff) == 0xff ? NAN : ldexp(1, (int)(u & 0xff) - 127);
    case DT_BOOL: return (u & 0xff) != 0;
    case DT_I8: case DT_I16: case DT_I32: case DT_I64: case DT_I4:
      return (double)sign_extend(u, dtype_bits(t));
    case DT_U8: case DT_U16: case DT_U32: case DT_U64: case DT_U128:
    case DT_B1: case DT_U4:
      return (double)low_bits(u, dtype_bits(t));
    case DT_NONE: case DT_COUNT: break;
  }
  return 0;
}

uint64_t dtype_from_double(DType t, double x) {
  switch (t) {
    case DT_F16: case DT_BF16: case DT_E4M3: case DT_E5M2: case DT_E2M1:
    case DT_E2M3: case DT_E3M2:
      return encode(format(t), x);
    case DT_TF32: {
      static const Format tf32 = {10, 127, 0x40000, 0x3fbff, true, false, 0};
      return isnan(x) ? 0x7fffffff : (uint64_t)encode(&tf32, x) << 13;
    }
    case DT_F32: return isnan(x) ? 0x7fffffff : float_bits((float)x);
    case DT_F64: case DT_C64: return double_bits(x);
    case DT_UE8M0: return to_ue8m0(x);
    case DT_BOOL: return x != 0;
    case DT_I8: case DT_I16: case DT_I32: case DT_I64: case DT_I4: case DT_U8:
    case DT_U16: case DT_U32: case DT_U64: case DT_U128: case DT_B1:
    case DT_U4:
      return isnan(x) ? nan_integer(t, true) : to_integer(t, x);
    case DT_NONE: case DT_COUNT: break;
  }
  return 0;
}

float dtype_to_float(DType t, uint64_t u) {
  switch ((int)t) {
    case DT_F32: return bits_float((uint32_t)u);
    case DT_BF16: return bits_float((uint32_t)u << 16);
    case DT_F16: return f16_float((uint32_t)u & 0xffff);
    // Truncate the number, as a tensor core does when it reads an f32 as tf32.
    case DT_TF32:
      return bits_float((uint32_t)u & 0xffffe000);
    // The conversions below round if f32 cannot represent the value exactly.
    case DT_I64: return (float)(int64_t)u;
    case DT_U64: case DT_U128: return (float)u;
    default: return (float)dtype_to_double(t, u);
  }
}

uint64_t dtype_from_float(DType t, float x) {
  switch ((int)t) {
    case DT_F32: return float_bits(x);
    case DT_BF16: return float_bf16(x);
    case DT_F16: return float_f16(x);
    default: break;
  }
  if (isnan(x) && dtype_is_int(t)) return nan_integer(t, false);
  return dtype_from_double(t, (double)x);
}

// ---- packed arrays ----

uint64_t dtype_load(DType t, const void *p, size_t i) {
  const unsigned char *b = p;
  int bits = dtype_bits(t);
  uint64_t u = 0;
  switch (bits) {
    case 8: return b[i];
    case 16: { uint16_t v; memcpy(&v, b + 2 * i, 2); return v; }
    case 32: { uint32_t v; memcpy(&v, b + 4 * i, 4); return v; }
    case 64: memcpy(&u, b + 8 * i, 8); return u;
    // For a complex type, only the real part is loaded.
    case 128: memcpy(&u, b + 16 * i, 8); return u;
    default: break;
  }
  size_t at = i * (size_t)bits;
  for (int k = 0; k < bits; k++, at++)
    u |= (uint64_t)(b[at >> 3] >> (at & 7) & 1) << k;
  return u;
}

void dtype_store(DType t, void *p, size_t i, uint64_t bits) {
  unsigned char *b = p;
  int n = dtype_bits(t);
  switch (n) {
    case 8: b[i] = (unsigned char)bits; return;
    case 16: { uint16_t v = (uint16_t)bits; memcpy(b + 2 * i, &v, 2); return; }
    case 32: { uint32_t v = (uint32_t)bits; memcpy(b + 4 * i, &v, 4); return; }
    case 64: memcpy(b + 8 * i, &bits, 8); return;
    // The upper half of a 128-bit element, such as the imaginary part of a
    // complex number, becomes zero.
    case 128:
      memcpy(b + 16 * i, &bits, 8);
      memset(b + 16 * i + 8, 0, 8);
      return;
    default: break;
  }
  size_t at = i * (size_t)n;
  for (int k = 0; k < n; k++, at++) {
    unsigned char one = (unsigned char)(1u << (at & 7));
    b[at >> 3] = (unsigned char)(bits >> k & 1 ? b[at >> 3] | one
                                               : b[at >> 3] & ~one);
  }
}
// SPDX-License-Identifier: MIT
