// Arithmetic on raw bits as the target does it: one lane for every type,
// all 32 lanes at once for the usual ones.
#include "sim/inside.h"

#include <math.h>
#include <string.h>

#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#endif

// The vector switch is compiled for AVX2 as well, chosen when loaded (before
// the thread sanitizer is ready for it).
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && \
    !defined(__clang__) && !defined(__SANITIZE_THREAD__)
#define CLONES __attribute__((target_clones("avx2", "default")))
#else
#define CLONES
#endif

static float f32_of(uint64_t u) { return bits_float((uint32_t)u); }

// ---- integers of any width, as int64 or uint64 ----

static int64_t widen(DType t, uint64_t u) {
  switch ((int)t) {
    case DT_I4: return (int64_t)((u & 15) ^ 8) - 8;
    case DT_I8: return (int8_t)u;
    case DT_I16: return (int16_t)u;
    case DT_I32: return (int32_t)u;
    default: return (int64_t)u;
  }
}

static uint64_t narrow(DType t, uint64_t u) {
  int n = dtype_bits(t);
  return n < 64 ? u & (((uint64_t)1 << n) - 1) : u;
}

static uint64_t shift(Op op, DType t, uint64_t a, uint64_t b) {
  uint64_t n = b & FULL, bits = (uint64_t)dtype_bits(t);
  if (op == OP_SHL) return n >= bits ? 0 : a << n;
  if (dtype_class(t) != 'I') return n >= bits ? 0 : a >> n;
  return (uint64_t)(widen(t, a) >> (n >= bits ? bits - 1 : n));
}

static uint64_t int_op(Op op, DType t, uint64_t a, uint64_t b, uint64_t c) {
  bool sign = dtype_class(t) == 'I';
  int64_t x = widen(t, a), y = widen(t, b);
  switch ((int)op) {
    case OP_ADD: return a + b;
    case OP_SUB: return a - b;
    case OP_MUL: return a * b;
    case OP_FMA: return a * b + c;
    case OP_DIV:  // by 0: the hardware's answers
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
    default: return 0;
  }
}

// ---- floats ----

static double lua_mod(double a, double b) {
  double m = fmod(a, b);
  return m * b < 0 ? m + b : m;
}

// A NaN loses against a number (C's fmin lets a signaling one win); -0 is
// less than +0.
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

// In f32 where that rounds right: the operands' type is f32 or narrower. The
// result of narrower types is rounded once more, which is innocuous for one
// operation (24 >= 2 * 11 + 2); fma goes through double for the same reason.
static float f32_op(Op op, float a, float b) {
  switch ((int)op) {
    case OP_ADD: return a + b;
    case OP_SUB: return a - b;
    case OP_MUL: return a * b;
    case OP_DIV: return a / b;
    case OP_MOD: {
      float m = fmodf(a, b);
      return m * b < 0 ? m + b : m;
    }
    case OP_MIN: return (float)min_of(a, b);
    case OP_MAX: return (float)max_of(a, b);
    default: return 0;
  }
}

static double f64_op(Op op, double a, double b) {
  switch ((int)op) {
    case OP_ADD: return a + b;
    case OP_SUB: return a - b;
    case OP_MUL: return a * b;
    case OP_DIV: return a / b;
    case OP_MOD: return lua_mod(a, b);
    case OP_MIN: return min_of(a, b);
    case OP_MAX: return max_of(a, b);
    default: return 0;
  }
}

// The exact a * b + c of narrow types rounded to odd in double, so that the
// rounding to the type is the only one.
static double fma_odd(double a, double b, double c) {
  double p = a * b;  // exact: at most 22 bits
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

static uint64_t float_op(Op op, DType t, uint64_t a, uint64_t b, uint64_t c) {
  uint64_t sign = (uint64_t)1 << (dtype_bits(t) - 1);
  if (op == OP_NEG) return a ^ sign;
  if (op == OP_ABS) return a & ~sign;
  if (op >= OP_LT && op <= OP_NE) {
    double x = dtype_to_double(t, a), y = dtype_to_double(t, b);
    if (op == OP_LT) return x < y;
    if (op == OP_LE) return x <= y;
    return op == OP_EQ ? x == y : x != y;
  }
  if (t == DT_F64) {
    double x = bits_double(a), y = bits_double(b);
    if (op == OP_FMA) return double_bits(fma(x, y, bits_double(c)));
    return double_bits(f64_op(op, x, y));
  }
  if (t == DT_F32 || t == DT_TF32) {
    float x = f32_of(a), y = f32_of(b);
    if (op == OP_FMA) return float_bits(fmaf(x, y, f32_of(c)));
    return float_bits(f32_op(op, x, y));
  }
  float x = dtype_to_float(t, a), y = dtype_to_float(t, b);
  if (op == OP_FMA)
    return dtype_from_double(t, fma_odd(x, y, dtype_to_float(t, c)));
  return dtype_from_float(t, f32_op(op, x, y));
}

static double math_of(MathFn f, double x, double y) {
  switch (f) {
    case MF_SQRT: case MF_SQRTAPPROX: return sqrt(x);
    case MF_RSQRT: case MF_RSQRTAPPROX: return 1 / sqrt(x);
    case MF_RCP: case MF_RCPAPPROX: return 1 / x;
    case MF_EXP: return exp(x);
    case MF_EXP2: case MF_EX2APPROX: return exp2(x);
    case MF_EXPM1: return expm1(x);
    case MF_LOG: return log(x);
    case MF_LOG2: case MF_LG2APPROX: return log2(x);
    case MF_LOG10: return log10(x);
    case MF_LOG1P: return log1p(x);
    case MF_SIN: case MF_SINAPPROX: return sin(x);
    case MF_COS: case MF_COSAPPROX: return cos(x);
    case MF_TAN: return tan(x);
    case MF_ASIN: return asin(x);
    case MF_ACOS: return acos(x);
    case MF_ATAN: return atan(x);
    case MF_SINH: return sinh(x);
    case MF_COSH: return cosh(x);
    case MF_TANH: case MF_TANHAPPROX: return tanh(x);
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
    case MF_DIVAPPROX: return x / y;
    case MF_COUNT: break;
  }
  return 0;
}

// ---- conversions ----

static uint64_t convert(DType from, DType to, uint64_t a) {
  if (dtype_is_float(from)) {
    double x = dtype_to_double(from, a);
    if (to == DT_BOOL) return x != 0;
    if (!dtype_is_float(to))  // what a NaN becomes depends on the source
      return narrow(to, from == DT_F64 ? dtype_from_double(to, x)
                                       : dtype_from_float(to, (float)x));
    if (from == DT_F32 && to != DT_F64) return dtype_from_float(to, f32_of(a));
    return dtype_from_double(to, x);
  }
  if (to == DT_BOOL) return a != 0;
  int64_t x = widen(from, a);
  if (!dtype_is_float(to)) return narrow(to, (uint64_t)x);
  bool big = from == DT_U64;
  if (to == DT_F32) return float_bits(big ? (float)a : (float)x);
  return dtype_from_double(to, big ? (double)a : (double)x);
}

uint64_t simalu_op(Op op, DType t, uint64_t a, uint64_t b) {
  if (dtype_is_float(t)) return float_op(op, t, a, b, 0);
  return narrow(t, int_op(op, t, a, b, 0));
}

uint64_t simalu_one(const SimIns *i, uint64_t a, uint64_t b, uint64_t c) {
  DType t = (DType)i->type;
  switch ((int)i->op) {
    case OP_SEL: return a ? b : c;
    case OP_CVT: return convert(t, (DType)i->to, a);
    case OP_BITCAST: return narrow((DType)i->to, a);
    case OP_VAR: case OP_VGET: case OP_VSET: return a;
    case OP_MATH:
      if (t == DT_F32 && i->imm == MF_SQRT) return float_bits(sqrtf(f32_of(a)));
      if (t == DT_F32 && (i->imm == MF_RCP))
        return float_bits(1 / f32_of(a));
      return dtype_from_double(t, math_of((MathFn)i->imm,
                                          dtype_to_double(t, a),
                                          dtype_to_double(t, b)));
    default: break;
  }
  if (dtype_is_float(t)) return float_op((Op)i->op, t, a, b, c);
  return narrow(i->op >= OP_LT && i->op <= OP_NE ? DT_BOOL : t,
                int_op((Op)i->op, t, a, b, c));
}

// ---- 32 lanes ----

static uint64_t lane_get(const char *v, uint32_t slot, bool wide, int l) {
  if (!slot) return 0;
  if (wide) return ((const uint64_t *)(const void *)(v + slot))[l];
  return ((const uint32_t *)(const void *)(v + slot))[l];
}

// Any operation, lane by lane.
static void lanes_slow(const SimIns *i, char *v) {
  bool in = sim_wide((DType)i->type);
  bool bw = i->op == OP_SHL || i->op == OP_SHR ? false : in;
  bool aw = i->op == OP_SEL ? false : in;
  for (int l = 0; l < LANES; l++) {
    uint64_t r = simalu_one(i, lane_get(v, i->a, aw, l),
                            lane_get(v, i->b, bw, l),
                            lane_get(v, i->c, in, l));
    if (i->wide) ((uint64_t *)(void *)(v + i->d))[l] = r;
    else ((uint32_t *)(void *)(v + i->d))[l] = (uint32_t)r;
  }
}

#define KEY(op, cls) ((op) * 8 + (cls))
#define EACH(TD, TA, expr) { \
  TD *d = (TD *)(void *)(v + i->d); \
  const TA *a = (const TA *)(const void *)(v + i->a); \
  const TA *b = (const TA *)(const void *)(v + i->b); \
  for (int l = 0; l < LANES; l++) d[l] = (TD)(expr); \
  (void)b; \
  return; }
#define INT2(OPN, expr) \
  case KEY(OPN, SC_I32): case KEY(OPN, SC_U32): \
    EACH(uint32_t, uint32_t, expr) \
  case KEY(OPN, SC_I64): case KEY(OPN, SC_U64): \
    EACH(uint64_t, uint64_t, expr)
#define FLT2(OPN, expr) \
  case KEY(OPN, SC_F32): EACH(float, float, expr) \
  case KEY(OPN, SC_F64): EACH(double, double, expr)
#define CMP2(OPN, expr) \
  case KEY(OPN, SC_I32): EACH(uint32_t, int32_t, expr) \
  case KEY(OPN, SC_U32): EACH(uint32_t, uint32_t, expr) \
  case KEY(OPN, SC_I64): EACH(uint32_t, int64_t, expr) \
  case KEY(OPN, SC_U64): EACH(uint32_t, uint64_t, expr) \
  case KEY(OPN, SC_F32): EACH(uint32_t, float, expr) \
  case KEY(OPN, SC_F64): EACH(uint32_t, double, expr)
#define BIT2(OPN, expr) \
  case KEY(OPN, SC_PRED): EACH(uint32_t, uint32_t, expr) \
  INT2(OPN, expr)
#define MIN2(OPN, expr) \
  case KEY(OPN, SC_I32): EACH(int32_t, int32_t, expr) \
  case KEY(OPN, SC_U32): EACH(uint32_t, uint32_t, expr) \
  case KEY(OPN, SC_I64): EACH(int64_t, int64_t, expr)

static void lanes_select(const SimIns *i, char *v) {
  const uint32_t *p = (const uint32_t *)(const void *)(v + i->a);
  if (i->wide) {
    const uint64_t *a = (const uint64_t *)(const void *)(v + i->b);
    const uint64_t *b = (const uint64_t *)(const void *)(v + i->c);
    uint64_t *d = (uint64_t *)(void *)(v + i->d);
    for (int l = 0; l < LANES; l++) d[l] = p[l] ? a[l] : b[l];
  } else {
    const uint32_t *a = (const uint32_t *)(const void *)(v + i->b);
    const uint32_t *b = (const uint32_t *)(const void *)(v + i->c);
    uint32_t *d = (uint32_t *)(void *)(v + i->d);
    for (int l = 0; l < LANES; l++) d[l] = p[l] ? a[l] : b[l];
  }
}

// The conversions that index arithmetic and epilogues are made of.
static bool lanes_convert(const SimIns *i, char *v) {
  const uint32_t *a = (const uint32_t *)(const void *)(v + i->a);
  uint32_t *d = (uint32_t *)(void *)(v + i->d);
  uint64_t *dw = (uint64_t *)(void *)(v + i->d);
  switch (i->type * DT_COUNT + i->to) {
    case DT_I32 * DT_COUNT + DT_I64:
      for (int l = 0; l < LANES; l++) dw[l] = (uint64_t)(int32_t)a[l];
      return true;
    case DT_U32 * DT_COUNT + DT_I64:
      for (int l = 0; l < LANES; l++) dw[l] = a[l];
      return true;
    case DT_BF16 * DT_COUNT + DT_F32:
      for (int l = 0; l < LANES; l++) d[l] = a[l] << 16;
      return true;
    case DT_F32 * DT_COUNT + DT_BF16:
      for (int l = 0; l < LANES; l++) {
        uint32_t u = a[l];
        uint32_t r = (u + 0x7fff + (u >> 16 & 1)) >> 16;
        d[l] = (u & 0x7fffffff) > 0x7f800000 ? 0x7fff : r;
      }
      return true;
    default: return false;
  }
}

CLONES
void simalu_lanes(const SimIns *i, char *v) {
  switch (KEY(i->op, i->cls)) {
    INT2(OP_ADD, a[l] + b[l])
    FLT2(OP_ADD, a[l] + b[l])
    INT2(OP_SUB, a[l] - b[l])
    FLT2(OP_SUB, a[l] - b[l])
    INT2(OP_MUL, a[l] * b[l])
    FLT2(OP_MUL, a[l] * b[l])
    FLT2(OP_DIV, a[l] / b[l])
    MIN2(OP_MIN, a[l] < b[l] ? a[l] : b[l])
    MIN2(OP_MAX, a[l] > b[l] ? a[l] : b[l])
    INT2(OP_NEG, 0 - a[l])
    BIT2(OP_AND, a[l] & b[l])
    BIT2(OP_OR, a[l] | b[l])
    BIT2(OP_XOR, a[l] ^ b[l])
    INT2(OP_NOT, ~a[l])
    CMP2(OP_LT, a[l] < b[l])
    CMP2(OP_LE, a[l] <= b[l])
    CMP2(OP_EQ, a[l] == b[l])
    CMP2(OP_NE, a[l] != b[l])
    case KEY(OP_NOT, SC_PRED): EACH(uint32_t, uint32_t, !a[l])
    case KEY(OP_EQ, SC_PRED): EACH(uint32_t, uint32_t, a[l] == b[l])
    case KEY(OP_NE, SC_PRED): EACH(uint32_t, uint32_t, a[l] != b[l])
    default: break;
  }
  if (i->op == OP_SEL) {
    lanes_select(i, v);
    return;
  }
  if (i->op == OP_CVT && lanes_convert(i, v)) return;
  bool whole = i->op == OP_BITCAST && dtype_bits((DType)i->to) >=
               dtype_bits((DType)i->type);
  if (i->op == OP_VAR || i->op == OP_VGET || whole) {
    memcpy(v + i->d, v + i->a, i->wide ? 8 * LANES : 4 * LANES);
    return;
  }
  lanes_slow(i, v);
}
