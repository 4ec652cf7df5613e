// Rules of the tensor cores' arithmetic. sum.c computes a single element with
// integers. A vectorized version (tile.c) computes tiles, and leaves elements
// that it cannot compute to sum.c.
#include "hardware/mma.h"

#include <math.h>
#include <string.h>

#include "hardware/tile.h"

// ---- rules ----

int mma_least_exponent(DType t) {
  switch ((int)t) {
    case DT_F16: case DT_E5M2: return -14;
    case DT_E4M3: return -6;
    case DT_E2M1: case DT_E2M3: return 0;
    case DT_E3M2: return -2;
    default: return -126;
  }
}

static bool is_fp8(DType t) { return t == DT_E4M3 || t == DT_E5M2; }

int mma_floor(DType t) { return t == DT_TF32 || t == DT_BF16 ? -133 : 0; }

SimRule mma_rule(const SimMma *m) {
  bool ampere = m->arch >= 80 && m->arch < 90, fp8 = is_fp8(m->a);
  SimRule r = {.f = 25, .step = m->k, .keep = 23, .half = m->c == DT_F16};
  r.emin_a = mma_least_exponent(m->a);
  r.emin_b = mma_least_exponent(m->b);
  if (m->arch >= 90) r.floor = mma_floor(m->a);
  if (m->arch < 75) r.f = 23;
  else if (m->arch < 90) r.f = 24;
  if (fp8 && (ampere || (m->arch == 90 && m->wgmma))) r.f = r.keep = 13;
  if (ampere && !m->wgmma) {
    int whole = fp8 ? 32 : m->a == DT_TF32 ? 8 : 16;
    if (m->k == whole) r.step = m->k / 2;
  }
  if (m->arch == 90 && !m->wgmma && fp8) {
    r.emulated = true;
    // The hardware converts fp8 operands to f16, so the smallest exponent is
    // that of f16.
    r.emin_a = r.emin_b = -14;
  }
  return r;
}

static bool small_float(DType t) {
  switch ((int)t) {
    case DT_F16: case DT_BF16: case DT_TF32: case DT_E4M3: case DT_E5M2:
    case DT_E2M1: case DT_E2M3: case DT_E3M2:
      return true;
    default: return false;
  }
}

static bool small_int(DType t) {
  return t == DT_I8 || t == DT_U8 || t == DT_I4 || t == DT_U4;
}

bool mma_known(const SimMma *m) {
  if (m->k < 1 || m->k > SIM_MOST_K) return false;
  if (m->a == DT_B1)
    return m->b == DT_B1 && m->c == DT_I32 && m->op != MMA_MUL;
  if (m->op != MMA_MUL) return false;
  if (small_float(m->a))
    return small_float(m->b) && m->k <= SIM_TILE_K &&
           (m->c == DT_F32 || m->c == DT_F16);
  if (small_int(m->a)) return small_int(m->b) && m->c == DT_I32;
  return m->a == DT_F64 && m->b == DT_F64 && m->c == DT_F64;
}

// ---- one element ----

// Splits the operands of an fp8 mma.sync on Hopper. The compiler implements
// this instruction as two f16 MMAs, the first for k = 0,1,4,5,... and the
// second for the other k. C is then added to their result.
static void emulated_operands(int k, const float *a, float *first,
                              float *second) {
  for (int i = 0; i < k; i++)
    *(i & 2 ? second++ : first++) = a[i];
}

static float add_accumulator(float x, float c, bool half) {
  float s = x + c;
  if (isnan(s)) return bits_float(SIM_NAN_BITS);
  if (!half) return s;
  return dtype_to_float(DT_F16, dtype_from_float(DT_F16, s));
}

static float dot_emulated(const SimRule *r, int k, const float *a,
                          const float *b, float c) {
  float a2[2][SIM_MOST_K], b2[2][SIM_MOST_K];
  emulated_operands(k, a, a2[0], a2[1]);
  emulated_operands(k, b, b2[0], b2[1]);
  float x = mma_sum(r, k / 2, a2[0], b2[0], 0, 0);
  x = mma_sum(r, k / 2, a2[1], b2[1], 0, x);
  return add_accumulator(x, c, r->half);
}

// Returns one element of the result of an MMA.
static float dot_plain(const SimRule *r, int k, const float *a, const float *b,
                       float c) {
  if (r->emulated) return dot_emulated(r, k, a, b, c);
  for (int i = 0; i < k; i += r->step)
    c = mma_sum(r, r->step, a + i, b + i, 0, c);
  return c;
}

// ---- integers, bits, doubles ----

static int32_t clamp_or_wrap(int64_t s, bool sat) {
  if (sat) {
    if (s > INT32_MAX) return INT32_MAX;
    if (s < INT32_MIN) return INT32_MIN;
  }
  return (int32_t)(uint32_t)(uint64_t)s;
}

static int32_t dot_int(const SimMma *m, const int16_t *a, const int16_t *b,
                       int32_t c) {
  // The sum is at most 256 * 255 * 255, which fits in an int32_t.
  int32_t s = 0;
  for (int i = 0; i < m->k; i++) s += a[i] * b[i];
  return clamp_or_wrap((int64_t)c + s, m->sat);
}

static int32_t dot_bit(const SimMma *m, const uint32_t *a, const uint32_t *b,
                       int32_t c) {
  int32_t s = 0;
  for (int i = 0; i < m->k / 32; i++)
    s += __builtin_popcount(m->op == MMA_XOR ? a[i] ^ b[i] : a[i] & b[i]);
  return clamp_or_wrap((int64_t)c + s, m->sat);
}

static double dot_f64(int k, const double *a, const double *b, double c) {
  for (int i = 0; i < k; i++) c = fma(a[i], b[i], c);
  return isnan(c) ? bits_double(0xfff8000000000000ull) : c;
}

// ---- block scales ----

// Returns scale factor `code` of type t as sig * 2^exp, with 1 <= sig < 2, or
// sig < 1 if it is subnormal. The sig of a NaN is a NaN.
static double scale_of(DType t, uint8_t code, int *exp) {
  double x = dtype_to_double(t, t == DT_UE8M0 ? code : code & 0x7f);
  *exp = 0;
  if (isnan(x) || x == 0) return x;
  x = frexp(x, exp) * 2;
  int least = t == DT_UE8M0 ? -127 : -6;
  if (--*exp < least) {
    x = ldexp(x, *exp - least);
    *exp = least;
  }
  return x;
}

float mma_scaled(const SimScaled *q, const float *a, const float *b,
                 float c) {
  SimRule r = mma_rule(q->m);
  float out;
  if (!q->per) return mma_sum(&r, q->n, a, b, 0, c);
  if (mma_special(q->n, a, b, c, &out)) return out;
  bool small = dtype_bits(q->m->a) == 4 && q->n == 64;
  int group = small ? 16 : 1, terms = 0;
  double value[SIM_MOST_K];
  int exp[SIM_MOST_K];
  for (int i = 0; i < q->n; i += group, terms++) {
    int ea, eb;
    double sa = scale_of(q->type, q->sa[i / q->per], &ea);
    double sb = scale_of(q->type, q->sb[i / q->per], &eb), p = 0;
    if (isnan(sa) || isnan(sb)) return bits_float(SIM_NAN_BITS);
    for (int k = i; k < i + group; k++) p += (double)a[k] * (double)b[k];
    exp[terms] = ea + eb;
    // For 8-bit operands, also add the exponents of the operands.
    if (!small) {
      int own = mma_exponent(a[i], r.emin_a) +
                mma_exponent(b[i], r.emin_b);
      p = ldexp(p, -own);
      exp[terms] += own;
    }
    value[terms] = p * sa * sb;
  }
  return mma_scaled_sum(terms, value, exp, small ? 35 : r.f, c);
}

// ---- mma_dot ----

static uint64_t dot_words(const SimMma *m, const uint64_t *a,
                          const uint64_t *b, uint64_t c) {
  int64_t s = (int32_t)(uint32_t)c;
  for (int i = 0; i < m->k; i++) {
    if (m->op == MMA_XOR) s += (int)((a[i] ^ b[i]) & 1);
    else if (m->op == MMA_AND) s += (int)(a[i] & b[i] & 1);
    else
      s += (int64_t)dtype_to_double(m->a, a[i]) *
           (int64_t)dtype_to_double(m->b, b[i]);
  }
  return (uint32_t)clamp_or_wrap(s, m->sat);
}

static uint64_t dot_doubles(const SimMma *m, const uint64_t *a,
                            const uint64_t *b, uint64_t c) {
  double x[SIM_MOST_K], y[SIM_MOST_K];
  for (int i = 0; i < m->k; i++) {
    x[i] = dtype_to_double(DT_F64, a[i]);
    y[i] = dtype_to_double(DT_F64, b[i]);
  }
  return dtype_from_double(
    DT_F64, dot_f64(m->k, x, y, dtype_to_double(DT_F64, c)));
}

uint64_t mma_dot(const SimMma *m, const uint64_t *a, const uint64_t *b,
                 uint64_t c) {
  if (m->c == DT_I32) return dot_words(m, a, b, c);
  if (m->c == DT_F64) return dot_doubles(m, a, b, c);
  float x[SIM_MOST_K], y[SIM_MOST_K];
  for (int i = 0; i < m->k; i++) {
    x[i] = dtype_to_float(m->a, a[i]);
    y[i] = dtype_to_float(m->b, b[i]);
  }
  SimRule r = mma_rule(m);
  return dtype_from_float(
    m->c, dot_plain(&r, m->k, x, y, dtype_to_float(m->c, c)));
}

// ---- tiles ----

// Reorders each of n rows of A or B for an fp8 mma.sync on Hopper: first the
// elements of its first sum (emulated_operands), then those of the second.
static void emulated_rows(int n, int K, const float *from, float *to) {
  for (int i = 0; i < n; i++, from += K, to += K)
    emulated_operands(K, from, to, to + K / 2);
}

static void prepare_rows(const SimRule *r, int n, int K, const float *A,
                         float *to) {
  float ordered[MMA_ROWS * SIM_TILE_K];
  if (r->emulated) emulated_rows(n, K, A, ordered);
  tile_best()->rows(r, n, K, r->emulated ? ordered : A, to);
}

static void prepare_columns(const SimRule *r, int n, int K, const float *B,
                            float *to) {
  float ordered[MMA_COLUMNS * SIM_TILE_K];
  for (int j = 0; r->emulated && j < n; j += MMA_COLUMNS) {
    int some = n - j < MMA_COLUMNS ? n - j : MMA_COLUMNS;
    emulated_rows(some, K, B + j * K, ordered);
    tile_best()->columns(r, some, K, ordered, to);
    to += MMA_B_FLOATS(MMA_COLUMNS, K);
  }
  if (!r->emulated) tile_best()->columns(r, n, K, B, to);
}

// Multiplies as an fp8 mma.sync on Hopper: adds both halves of K, then C.
static bool multiply_emulated(SimRule r, int N, int K, const float *A,
                              const float *B, const float *C, float *D) {
  enum { BLOCK = MMA_ROWS * MMA_COLUMNS };
  static const float zero[BLOCK];
  bool special = false;
  r.step = K / 2;
  for (int j = 0; j < N; j += MMA_COLUMNS, C += BLOCK, D += BLOCK) {
    tile_best()->multiply(&r, MMA_COLUMNS, K, A, B, zero, D);
    B += MMA_B_FLOATS(MMA_COLUMNS, K);
    for (int i = 0; i < BLOCK; i++) {
      D[i] = add_accumulator(D[i], C[i], r.half);
      special |= !isfinite(D[i]);
    }
  }
  return special;
}

static bool multiply(const SimRule *r, int N, int K, const float *A,
                     const float *B, const float *C, float *D) {
  if (r->emulated) return multiply_emulated(*r, N, K, A, B, C, D);
  return tile_best()->multiply(r, N, K, A, B, C, D);
}

void mma_rows(const SimMma *m, int n, const float *A, float *to) {
  SimRule r = mma_rule(m);
  prepare_rows(&r, n, m->k, A, to);
}

void mma_columns(const SimMma *m, int n, const float *B, float *to) {
  SimRule r = mma_rule(m);
  prepare_columns(&r, n, m->k, B, to);
}

bool mma_multiply(const SimMma *m, int N, const float *A, const float *B,
                  const float *C, float *D) {
  SimRule r = mma_rule(m);
  return multiply(&r, N, m->k, A, B, C, D);
}

void mma_tile_by(const SimRule *r, int M, int N, int K, const float *A,
                 const float *B, const float *C, float *D) {
  enum { TN = 64 };
  float a[MMA_A_FLOATS(SIM_TILE_K)], b[MMA_B_FLOATS(TN, SIM_TILE_K)];
  float c[MMA_ROWS * TN] = {0}, d[MMA_ROWS * TN];
  SimRule part = *r;
  for (int n0 = 0; n0 < N; n0 += TN) {
    int tn = N - n0 < TN ? N - n0 : TN;
    if (r->scale_b) part.scale_b = r->scale_b + n0;
    prepare_columns(&part, tn, K, B + n0 * K, b);
    for (int m0 = 0; m0 < M; m0 += MMA_ROWS) {
      int tm = M - m0 < MMA_ROWS ? M - m0 : MMA_ROWS;
      if (r->scale_a) part.scale_a = r->scale_a + m0;
      prepare_rows(&part, tm, K, A + m0 * K, a);
      for (int i = 0; i < tm; i++)
        for (int j = 0; j < tn; j++)
          c[mma_place(i, j)] = C[(m0 + i) * N + n0 + j];
      multiply(&part, (tn + 7) & ~7, K, a, b, c, d);
      for (int i = 0; i < tm; i++)
        for (int j = 0; j < tn; j++)
          D[(m0 + i) * N + n0 + j] = d[mma_place(i, j)];
    }
  }
}

void mma_tile(const SimMma *m, int M, int N, const float *A,
              const float *B, const float *C, float *D) {
  SimRule r = mma_rule(m);
  mma_tile_by(&r, M, N, m->k, A, B, C, D);
}

// ---- other tiles ----

void mma_tile_f64(const SimMma *m, int M, int N, const double *A,
                  const double *B, const double *C, double *D) {
  for (int i = 0; i < M; i++)
    for (int j = 0; j < N; j++)
      D[i * N + j] = dot_f64(m->k, A + i * m->k, B + j * m->k, C[i * N + j]);
}

void mma_tile_int(const SimMma *m, int M, int N, const int16_t *A,
                  const int16_t *B, const int32_t *C, int32_t *D) {
  for (int i = 0; i < M; i++)
    for (int j = 0; j < N; j++)
      D[i * N + j] = dot_int(m, A + i * m->k, B + j * m->k, C[i * N + j]);
}

void mma_tile_bit(const SimMma *m, int M, int N, const uint32_t *A,
                  const uint32_t *B, const int32_t *C, int32_t *D) {
  int words = m->k / 32;
  for (int i = 0; i < M; i++)
    for (int j = 0; j < N; j++)
      D[i * N + j] = dot_bit(m, A + i * words, B + j * words, C[i * N + j]);
}

// ---- widening ----

void mma_widen(DType t, const void *src, size_t n, float *dst) {
  if (t == DT_F16 || t == DT_BF16) {
    tile_best()->widen(t == DT_F16, src, n, dst);
    return;
  }
  for (size_t i = 0; i < n; i++)
    dst[i] = dtype_to_float(t, dtype_load(t, src, i));
}
// SPDX-License-Identifier: MIT
