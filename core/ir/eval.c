// Evaluates the scalar operations of ops.h for every type as the GPU does.
// Constant folding and the simulator use these functions.
#include "ir/eval.h"

#include <math.h>

#include "base/approx.h"
#include "base/cudafn.h"

#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#endif

static float f32_of(uint64_t u) { return bits_float((uint32_t)u); }

// ---- integers of any width, as int64 or uint64 ----

int64_t eval_widen(DType t, uint64_t u) {
  switch ((int)t) {
    case DT_I4: return (int64_t)((u & 15) ^ 8) - 8;
    case DT_I8: return (int8_t)u;
    case DT_I16: return (int16_t)u;
    case DT_I32: return (int32_t)u;
    default: return (int64_t)u;
  }
}

uint64_t eval_narrow(DType t, uint64_t u) {
  int n = dtype_bits(t);
  return n < 64 ? u & (((uint64_t)1 << n) - 1) : u;
}

static uint64_t shift(Op op, DType t, uint64_t a, uint64_t b) {
  uint64_t n = b & UINT32_MAX, bits = (uint64_t)dtype_bits(t);
  if (op == OP_SHL) return n >= bits ? 0 : a << n;
  if (dtype_class(t) != 'I') return n >= bits ? 0 : a >> n;
  return (uint64_t)(eval_widen(t, a) >> (n >= bits ? bits - 1 : n));
}

static uint64_t int_op(Op op, DType t, uint64_t a, uint64_t b, uint64_t c) {
  bool sign = dtype_class(t) == 'I';
  int64_t x = eval_widen(t, a), y = eval_widen(t, b);
  switch (op) {
    case OP_ADD: return a + b;
    case OP_SUB: return a - b;
    case OP_MUL: return a * b;
    case OP_FMA: return a * b + c;
    case OP_DIV:  // division by 0 returns the hardware's result
      if (y == 0) return UINT64_MAX;
      return sign ? (uint64_t)base_floor_div(x, y) : a / b;
    case OP_MOD:
      if (y == 0) return a;
      return sign ? (uint64_t)base_floor_mod(x, y) : a % b;
    case OP_MIN: return (sign ? x < y : a < b) ? a : b;
    case OP_MAX: return (sign ? x > y : a > b) ? a : b;
    case OP_NEG: return 0 - a;
    case OP_ABS: return sign && x < 0 ? 0 - a : a;
    case OP_AND: return a & b;
    case OP_OR: return a | b;
    case OP_XOR: return a ^ b;
    case OP_NOT: return t == DT_BOOL ? !a : ~a;
    case OP_SHL: case OP_SHR: return shift(op, t, a, b);
    case OP_LT: return sign ? x < y : a < b;
    case OP_LE: return sign ? x <= y : a <= b;
    case OP_EQ: return a == b;
    case OP_NE: return a != b;
    case OP_COUNT:
#define OP(id, ...) case OP_##id:
#define SCALAR(...)
#include "ir/ops.h"
      break;  // Other operations are not scalar.
  }
  return 0;
}

// ---- floats ----

// Minimum and maximum as in PTX: if one operand is a NaN, the result is the
// other (C's fmin may return a signaling NaN), and -0 is less than +0.
static double min_of(double a, double b) {
  if (a == b) return signbit(a) ? a : b;
  if (isnan(a) || isnan(b)) return isnan(a) ? b : a;
  return a < b ? a : b;
}

static double max_of(double a, double b) {
  if (a == b) return signbit(a) ? b : a;
  if (isnan(a) || isnan(b)) return isnan(a) ? b : a;
  return a > b ? a : b;
}

// Defines the functions that compute in T, f32 or f64, with one rounding. For
// operands of a type narrower than f32, the caller rounds the result to that
// type. The second rounding is harmless: the significand of the narrow type has
// p <= 11 bits, and f32's has 24, at least 2p + 2.
#define ROUNDED(NAME, T, FMOD) \
  static T NAME(Op op, T a, T b) { \
    T m; \
    if (op == OP_ADD) return a + b; \
    if (op == OP_SUB) return a - b; \
    if (op == OP_MUL) return a * b; \
    if (op == OP_DIV) return a / b; \
    if (op == OP_MIN) return (T)min_of(a, b); \
    if (op == OP_MAX) return (T)max_of(a, b); \
    m = FMOD(a, b);  /* Lua's % */ \
    return m != 0 && (m < 0) != (b < 0) ? m + b : m; \
  }
ROUNDED(f32_op, float, fmodf)
ROUNDED(f64_op, double, fmod)

// ---- NaNs of f64: an operand's payload, quiet ----

enum { QUIET = 51 };
static bool is_nan64(uint64_t u) {
  return (u & INT64_MAX) > (uint64_t)0x7ff << 52;
}
static uint64_t quiet64(uint64_t u) { return u | (uint64_t)1 << QUIET; }

// Returns the first NaN among x, y and z, made quiet. If none is a NaN, returns
// the NaN that invalid operations produce.
static uint64_t first_nan(uint64_t x, uint64_t y, uint64_t z) {
  if (is_nan64(x)) return quiet64(x);
  if (is_nan64(y)) return quiet64(y);
  return is_nan64(z) ? quiet64(z) : 0xfff8000000000000u;
}

static uint64_t nan_of(Op op, uint64_t a, uint64_t b) {
  return op == OP_DIV ? first_nan(a, b, 0) : first_nan(b, a, 0);
}

uint64_t eval_quiet(uint64_t u) { return is_nan64(u) ? quiet64(u) : u; }

// Returns a * b + c for types narrower than f32, computed in double and rounded
// to odd. The caller's rounding to the narrow type is then correct.
static double fma_odd(double a, double b, double c) {
  double p = a * b;  // This product is exact, because it has at most 22 bits.
  double s = p + c;
  if (!isfinite(s)) return s;
  double bb = s - p;
  double err = (p - (s - bb)) + (c - bb);
  uint64_t u = double_bits(s);
  if (err != 0 && !(u & 1)) {
    bool away = (err > 0) == (s > 0);
    u = away ? u | 1 : u - 1;
  }
  return bits_double(u);
}

static uint64_t fused(DType t, uint64_t a, uint64_t b, uint64_t c) {
  if (t == DT_F64) {
    double x = fma(bits_double(a), bits_double(b), bits_double(c));
    return isnan(x) ? first_nan(b, c, a) : double_bits(x);
  }
  if (t == DT_F32 || t == DT_TF32)
    return float_result(fmaf(f32_of(a), f32_of(b), f32_of(c)));
  return dtype_from_double(t, fma_odd(dtype_to_float(t, a),
                                      dtype_to_float(t, b),
                                      dtype_to_float(t, c)));
}

static uint64_t rounded(Op op, DType t, uint64_t a, uint64_t b) {
  if (t == DT_F64) {
    double x = f64_op(op, bits_double(a), bits_double(b));
    return isnan(x) ? nan_of(op, a, b) : double_bits(x);
  }
  if (t == DT_F32 || t == DT_TF32)
    return float_result(f32_op(op, f32_of(a), f32_of(b)));
  return dtype_from_float(t, f32_op(op, dtype_to_float(t, a),
                                    dtype_to_float(t, b)));
}

// Computes NEG and ABS. For f32 and f64 the hardware uses an addition: an f32
// NaN becomes 7fffffff, and an f64 NaN keeps its sign and payload. For narrower
// types the hardware changes only the sign bit.
static uint64_t signed_op(Op op, DType t, uint64_t a) {
  uint64_t sign = (uint64_t)1 << (dtype_bits(t) - 1);
  if (t == DT_F64 && is_nan64(a)) return quiet64(a);
  if (t == DT_F32 && isnan(f32_of(a))) return 0x7fffffff;
  return op == OP_NEG ? a ^ sign : a & ~sign;
}

static uint64_t float_op(Op op, DType t, uint64_t a, uint64_t b, uint64_t c) {
  switch (op) {
    case OP_ADD: case OP_SUB: case OP_MUL: case OP_DIV: case OP_MOD:
    case OP_MIN: case OP_MAX:
      return rounded(op, t, a, b);
    case OP_FMA: return fused(t, a, b, c);
    case OP_NEG: case OP_ABS: return signed_op(op, t, a);
    case OP_LT: return dtype_to_double(t, a) < dtype_to_double(t, b);
    case OP_LE: return dtype_to_double(t, a) <= dtype_to_double(t, b);
    case OP_EQ: return dtype_to_double(t, a) == dtype_to_double(t, b);
    case OP_NE: return dtype_to_double(t, a) != dtype_to_double(t, b);
    case OP_AND: case OP_OR: case OP_XOR: case OP_NOT: case OP_SHL:
    case OP_SHR: case OP_COUNT:
#define OP(id, ...) case OP_##id:
#define SCALAR(...)
#include "ir/ops.h"
      break;  // operations on integers, or not on scalars
  }
  return 0;
}

uint64_t eval_scalar(Op op, DType t, uint64_t a, uint64_t b, uint64_t c) {
  if (dtype_is_float(t)) return float_op(op, t, a, b, c);
  bool test = op_rows[op].rule == RULE_CMP;
  return eval_narrow(test ? DT_BOOL : t, int_op(op, t, a, b, c));
}

static uint32_t flushed(uint32_t u) {
  return u & 0x7f800000 ? u : u & 0x80000000;
}

uint64_t eval_reduce(DType t, uint64_t old, uint64_t v, bool ftz) {
  if (t == DT_F64 && is_nan64(v)) return v;
  if (t == DT_F64 && is_nan64(old)) return old;
  if (t != DT_F32 || !ftz) return eval_scalar(OP_ADD, t, old, v, 0);
  old = flushed((uint32_t)old);
  v = flushed((uint32_t)v);
  return flushed((uint32_t)eval_scalar(OP_ADD, t, old, v, 0));
}

// Evaluates the functions that are single PTX instructions. Returns false for
// other functions.
static bool one_instruction(MathFn f, uint32_t x, uint32_t y, uint32_t *r) {
  switch ((int)f) {
    case MF_EXP2: case MF_EX2APPROX: *r = approx_ex2(x, false); break;
    case MF_LG2APPROX: *r = approx_lg2(x, false); break;
    case MF_RCPAPPROX: *r = approx_rcp(x, false); break;
    case MF_SQRTAPPROX: *r = approx_sqrt(x, false); break;
    case MF_RSQRT: case MF_RSQRTAPPROX: *r = approx_rsqrt(x, false); break;
    case MF_SINAPPROX: *r = approx_sin(x); break;
    case MF_COSAPPROX: *r = approx_cos(x); break;
    case MF_TANHAPPROX: *r = approx_tanh(x); break;
    case MF_DIVAPPROX: *r = approx_div(x, y); break;
    case MF_COPYSIGN: *r = (x & INT32_MAX) | (y & ~(uint32_t)INT32_MAX); break;
    default: return false;
  }
  return true;
}

static float cuda_math(MathFn f, float x, float y) {
  switch ((int)f) {
    case MF_SQRT: return sqrtf(x);
    case MF_RCP: return 1 / x;
    case MF_EXP: return cudafn_exp(x);
    case MF_EXPM1: return cudafn_expm1(x);
    case MF_LOG: return cudafn_log(x);
    case MF_LOG2: return cudafn_log2(x);
    case MF_LOG10: return cudafn_log10(x);
    case MF_LOG1P: return cudafn_log1p(x);
    case MF_SIN: return cudafn_sin(x);
    case MF_COS: return cudafn_cos(x);
    case MF_TAN: return cudafn_tan(x);
    case MF_ASIN: return cudafn_asin(x);
    case MF_ACOS: return cudafn_acos(x);
    case MF_ATAN: return cudafn_atan(x);
    case MF_SINH: return cudafn_sinh(x);
    case MF_COSH: return cudafn_cosh(x);
    case MF_TANH: return cudafn_tanh(x);
    case MF_ASINH: return cudafn_asinh(x);
    case MF_ACOSH: return cudafn_acosh(x);
    case MF_ATANH: return cudafn_atanh(x);
    case MF_ERF: return cudafn_erf(x);
    case MF_ERFC: return cudafn_erfc(x);
    case MF_CBRT: return cudafn_cbrt(x);
    case MF_FLOOR: return floorf(x);
    case MF_CEIL: return ceilf(x);
    case MF_TRUNC: return truncf(x);
    case MF_ROUND: return roundf(x);
    case MF_RINT: return rintf(x);
    case MF_POW: return cudafn_pow(x, y);
    case MF_ATAN2: return cudafn_atan2(x, y);
    case MF_FMOD: return fmodf(x, y);
    default: return 0;
  }
}

uint32_t eval_math(MathFn f, uint32_t x, uint32_t y) {
  uint32_t r;
  if (one_instruction(f, x, y, &r)) return r;
  return float_result(cuda_math(f, bits_float(x), bits_float(y)));
}

// Computes math function f of x in f64. y is the second argument of f, if f has
// two.
static double math_of(MathFn f, double x, double y) {
  switch (f) {
    case MF_SQRT: return sqrt(x);
    case MF_RSQRT: return 1 / sqrt(x);
    case MF_RCP: return 1 / x;
    case MF_EXP: return exp(x);
    case MF_EXP2: return exp2(x);
    case MF_EXPM1: return expm1(x);
    case MF_LOG: return log(x);
    case MF_LOG2: return log2(x);
    case MF_LOG10: return log10(x);
    case MF_LOG1P: return log1p(x);
    case MF_SIN: return sin(x);
    case MF_COS: return cos(x);
    case MF_TAN: return tan(x);
    case MF_ASIN: return asin(x);
    case MF_ACOS: return acos(x);
    case MF_ATAN: return atan(x);
    case MF_SINH: return sinh(x);
    case MF_COSH: return cosh(x);
    case MF_TANH: return tanh(x);
    case MF_ASINH: return asinh(x);
    case MF_ACOSH: return acosh(x);
    case MF_ATANH: return atanh(x);
    case MF_ERF: return erf(x);
    case MF_ERFC: return erfc(x);
    case MF_CBRT: return cbrt(x);
    case MF_FLOOR: return floor(x);
    case MF_CEIL: return ceil(x);
    case MF_TRUNC: return trunc(x);
    case MF_ROUND: return round(x);
    case MF_RINT: return rint(x);
    case MF_POW: return pow(x, y);
    case MF_ATAN2: return atan2(x, y);
    case MF_COPYSIGN: return copysign(x, y);
    case MF_FMOD: return fmod(x, y);
    case MF_EX2APPROX: case MF_TANHAPPROX: case MF_RCPAPPROX:
    case MF_SINAPPROX: case MF_COSAPPROX: case MF_LG2APPROX:
    case MF_SQRTAPPROX: case MF_RSQRTAPPROX: case MF_DIVAPPROX:
    case MF_COUNT:
      break;
  }
  return 0;
}

static bool rounds(MathFn f) {
  return f == MF_FLOOR || f == MF_CEIL || f == MF_TRUNC || f == MF_ROUND ||
         f == MF_RINT;
}

uint64_t eval_math_f64(MathFn f, uint64_t x, uint64_t y) {
  if (rounds(f) && is_nan64(x)) return quiet64(x);
  return double_bits(math_of(f, bits_double(x), bits_double(y)));
}
// SPDX-License-Identifier: MIT
