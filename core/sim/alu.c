// Arithmetic on raw bits, with the same results as the GPU. One implementation
// computes a single lane and supports every type. The other computes all 32
// lanes and supports only the common types.
#include "ir/eval.h"
#include "sim/machine.h"

#include <math.h>
#include <string.h>

#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#endif

// Marks a function that is compiled twice: once for every processor, and once
// for processors with the feature "avx2" or "fma". The loader chooses a version
// when the program starts. The thread sanitizer does not support this, because
// it is not ready when the loader runs.
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && \
    !defined(__clang__) && !defined(__SANITIZE_THREAD__)
#define CLONES(feature) __attribute__((target_clones(feature, "default")))
#else
#define CLONES(feature)
#endif

// A loop over lanes that computes results from operands. Slots of operands and
// results do not overlap, unless they are the same slot. gcc does not know
// this, and vectorizes the loop only with this pragma.
#if defined(__GNUC__) && !defined(__clang__)
#define EACH_LANE(l) _Pragma("GCC ivdep") for (int l = 0; l < LANES; l++)
#else
#define EACH_LANE(l) for (int l = 0; l < LANES; l++)
#endif

static float f32_of(uint64_t u) { return bits_float((uint32_t)u); }

// ---- conversions ----

// Rounds a large integer to odd (a dropped 1 sets the last kept bit), so that a
// double represents it exactly. A later conversion to a type with fewer than 42
// significant bits then rounds correctly, as if in one step.
static uint64_t odd(uint64_t a, uint64_t magnitude) {
  if (magnitude < (uint64_t)1 << 53) return a;
  return (a & ~(uint64_t)0x7ff) | (a & 0x7ff ? 0x800 : 0);
}

// Converts a NaN of f64 to f32 or f16. The result keeps the sign and the upper
// bits of the significand.
static uint64_t narrow_nan(DType to, uint64_t a) {
  uint32_t sign = (uint32_t)(a >> 32) & 0x80000000u;
  uint32_t u = sign | 0x7fc00000u | ((uint32_t)(a >> 29) & 0x7fffff);
  if (to == DT_F32) return u;
  return (sign >> 16) | 0x7c00 | (u >> 13 & 0x3ff);
}

static uint64_t convert_nan(DType from, DType to, uint64_t a, double x) {
  if (from == DT_F64 && (to == DT_F32 || to == DT_F16))
    return narrow_nan(to, a);
  // A conversion of a NaN to a type below f32, except bf16, goes through f32,
  // where the NaN becomes 7fffffff.
  bool by_f32 = to == DT_F64 && from != DT_F32 && from != DT_BF16;
  return by_f32 ? 0x7fffffffe0000000u : dtype_from_double(to, x);
}

static uint64_t convert(DType from, DType to, uint64_t a) {
  if (dtype_is_float(from)) {
    double x = dtype_to_double(from, a);
    if (to == DT_BOOL) return x != 0;
    if (isnan(x) && dtype_is_float(to) && (from == DT_F64 || to == DT_F64))
      return convert_nan(from, to, a, x);
    // a NaN becomes an integer whose value depends on the source type
    if (!dtype_is_float(to))
      return eval_narrow(to, from == DT_F64 ? dtype_from_double(to, x)
                                       : dtype_from_float(to, (float)x));
    if (from == DT_F32 && to != DT_F64) return dtype_from_float(to, f32_of(a));
    return dtype_from_double(to, x);
  }
  if (to == DT_BOOL) return a != 0;
  int64_t x = eval_widen(from, a);
  if (!dtype_is_float(to)) return eval_narrow(to, (uint64_t)x);
  bool big = from == DT_U64;
  if (to == DT_F32) return float_bits(big ? (float)a : (float)x);
  if (to == DT_F64) return double_bits(big ? (double)a : (double)x);
  bool below = !big && x < 0;
  a = odd((uint64_t)x, below ? 0 - (uint64_t)x : (uint64_t)x);
  return dtype_from_double(to, big ? (double)a : (double)(int64_t)a);
}

static uint64_t math(const SimIns *i, uint64_t a, uint64_t b) {
  DType t = (DType)i->type;
  MathFn f = (MathFn)i->imm;
  if (t == DT_F32) return eval_math(f, (uint32_t)a, (uint32_t)b);
  if (t == DT_F64) return eval_math_f64(f, a, b);
  // types narrower than f32 are computed in f32
  uint32_t r = eval_math(f, float_bits(dtype_to_float(t, a)),
                         float_bits(dtype_to_float(t, b)));
  return dtype_from_float(t, bits_float(r));
}

uint64_t simalu_one(const SimIns *i, uint64_t a, uint64_t b, uint64_t c) {
  DType t = (DType)i->type;
  if (i->op == OP_SEL) return a ? b : c;
  if (i->op == OP_CVT) return convert(t, (DType)i->to, a);
  if (i->op == OP_BITCAST) return eval_narrow((DType)i->to, a);
  if (i->op == OP_MATH) return math(i, a, b);
  if (op_effect((Op)i->op) & EF_VAR) return a;
  return eval_scalar((Op)i->op, t, a, b, c);
}

// ---- 32 lanes ----

static uint64_t lane_get(const char *v, uint32_t slot, bool wide, int l) {
  if (!slot) return 0;
  if (wide) return ((const uint64_t *)(const void *)(v + slot))[l];
  return ((const uint32_t *)(const void *)(v + slot))[l];
}

// Executes any arithmetic operation, one lane after another.
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

static inline float result(float x) {
  return x == x ? x : bits_float(0x7fffffff);
}

// least and most return the minimum and the maximum, like eval_scalar. If one
// operand is a NaN, they return the other one. -0 is less than +0: if the
// operands compare equal, their bits differ at most in the sign of a zero.
static inline float least(float a, float b) {
  float x = a < b ? a : b;
  x = b == b ? x : a;
  return a == b ? bits_float(float_bits(a) | float_bits(b)) : x;
}
static inline float most(float a, float b) {
  float x = a > b ? a : b;
  x = b == b ? x : a;
  return a == b ? bits_float(float_bits(a) & float_bits(b)) : x;
}

// Returns x, the result of an operation, or the second operand b if b is a NaN.
// The hardware also returns the second operand if both operands are NaNs.
static inline double second(double x, double b) { return b == b ? x : b + b; }

#define KEY(op, cls) ((op) * 8 + (cls))
#define EACH(TD, TA, expr) { \
  TD *d = (TD *)(void *)(v + i->d); \
  const TA *a = (const TA *)(const void *)(v + i->a); \
  const TA *b = (const TA *)(const void *)(v + i->b); \
  EACH_LANE(l) d[l] = (TD)(expr); \
  (void)b; \
  return; }
#define INT2(OPN, expr) \
  case KEY(OPN, SC_I32): case KEY(OPN, SC_U32): \
    EACH(uint32_t, uint32_t, expr) \
  case KEY(OPN, SC_I64): case KEY(OPN, SC_U64): \
    EACH(uint64_t, uint64_t, expr)
#define FLT2(OPN, expr) \
  case KEY(OPN, SC_F32): EACH(float, float, result(expr)) \
  case KEY(OPN, SC_F64): EACH(double, double, second(expr, b[l]))
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
    EACH_LANE(l) d[l] = p[l] ? a[l] : b[l];
  } else {
    const uint32_t *a = (const uint32_t *)(const void *)(v + i->b);
    const uint32_t *b = (const uint32_t *)(const void *)(v + i->c);
    uint32_t *d = (uint32_t *)(void *)(v + i->d);
    EACH_LANE(l) d[l] = p[l] ? a[l] : b[l];
  }
}

// Executes conversions between the types that index arithmetic and epilogues
// use. Returns false for other types.
static bool lanes_convert(const SimIns *i, char *v) {
  const uint32_t *a = (const uint32_t *)(const void *)(v + i->a);
  uint32_t *d = (uint32_t *)(void *)(v + i->d);
  uint64_t *dw = (uint64_t *)(void *)(v + i->d);
  switch (i->type * DT_COUNT + i->to) {
    case DT_I32 * DT_COUNT + DT_I64:
      EACH_LANE(l) dw[l] = (uint64_t)(int32_t)a[l];
      return true;
    case DT_U32 * DT_COUNT + DT_I64:
      EACH_LANE(l) dw[l] = a[l];
      return true;
    case DT_BF16 * DT_COUNT + DT_F32:
      EACH_LANE(l) d[l] = a[l] << 16;
      return true;
    case DT_F32 * DT_COUNT + DT_BF16:
      EACH_LANE(l) {
        uint32_t u = a[l];
        uint32_t r = (u + 0x7fff + (u >> 16 & 1)) >> 16;
        d[l] = (u & 0x7fffffff) > 0x7f800000 ? 0x7fff : r;
      }
      return true;
    default: return false;
  }
}

// Computes d = a * b + c with one rounding.
CLONES("fma")
static void lanes_fma(const SimIns *i, char *v) {
  float *d = (float *)(void *)(v + i->d);
  const float *a = (const float *)(const void *)(v + i->a);
  const float *b = (const float *)(const void *)(v + i->b);
  const float *c = (const float *)(const void *)(v + i->c);
  EACH_LANE(l) d[l] = result(fmaf(a[l], b[l], c[l]));
}

static void lanes_fma_f64(const SimIns *i, char *v) {
  uint64_t *d = (uint64_t *)(void *)(v + i->d);
  const uint64_t *a = (const uint64_t *)(const void *)(v + i->a);
  const uint64_t *b = (const uint64_t *)(const void *)(v + i->b);
  const uint64_t *c = (const uint64_t *)(const void *)(v + i->c);
  for (int l = 0; l < LANES; l++)
    d[l] = eval_scalar(OP_FMA, DT_F64, a[l], b[l], c[l]);
}

CLONES("avx2")
void simalu_lanes(const SimIns *i, char *v) {
  switch (KEY(i->op, i->cls)) {
    INT2(OP_ADD, a[l] + b[l])
    FLT2(OP_ADD, a[l] + b[l])
    INT2(OP_SUB, a[l] - b[l])
    FLT2(OP_SUB, a[l] - b[l])
    INT2(OP_MUL, a[l] * b[l])
    FLT2(OP_MUL, a[l] * b[l])
    case KEY(OP_DIV, SC_F32): EACH(float, float, result(a[l] / b[l]))
    case KEY(OP_DIV, SC_F64): EACH(double, double, a[l] / b[l])
    case KEY(OP_FMA, SC_F32): lanes_fma(i, v); return;
    case KEY(OP_FMA, SC_F64): lanes_fma_f64(i, v); return;
    case KEY(OP_MIN, SC_F32): EACH(float, float, result(least(a[l], b[l])))
    case KEY(OP_MAX, SC_F32): EACH(float, float, result(most(a[l], b[l])))
    case KEY(OP_NEG, SC_F32): EACH(float, float, result(-a[l]))
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
  if (i->op == OP_MATH && i->type == DT_F32)
    EACH(uint32_t, uint32_t, eval_math((MathFn)i->imm, a[l], b[l]))
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
// SPDX-License-Identifier: MIT
