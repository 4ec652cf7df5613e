// Computes the approximate functions of a GPU's special function unit: the
// quadratic interpolation of the hardware, and the code that the PTX compiler
// emits around the hardware's instruction.
//
// The upper bits of the argument choose a row {c0, c1, c2} of the function's
// table (approxrows.h). x is the lower 17 bits of the argument. The result is
// the fixed-point number
//   c0 * 2^s0 + c1 * x + c2 * square(x) * 2^s2 + bias,
// truncated. s0, s2 and bias depend on the function (Oberman and Siu, "A
// High-Performance Area-Efficient Multifunction Interpolator", 2005).
#include "base/approx.h"

#include <math.h>

#include "base/approxrows.h"
#include "base/dtype.h"

enum {
  NAN_BITS = 0x7fffffff, INF_BITS = 0x7f800000, ONE_BITS = 0x800000,
  FRACTION = 0x7fffff, BIAS = 127
};
#define SIGN_BIT 0x80000000u

// Products of two 3-bit numbers, divided by 4. Like the hardware, the products
// omit the partial products of weight 1 and 2.
static const uint8_t corner[8][8] = {
  {0, 0, 0, 0, 0, 0, 0, 0},
  {0, 0, 0, 0, 1, 1, 1, 1},
  {0, 0, 1, 1, 2, 2, 3, 3},
  {0, 0, 1, 1, 3, 3, 4, 4},
  {0, 1, 2, 3, 4, 5, 6, 7},
  {0, 1, 2, 3, 5, 6, 7, 8},
  {0, 1, 3, 4, 6, 7, 9, 10},
  {0, 1, 3, 4, 7, 8, 10, 11}
};

// Returns x * x / 2^19 for a 17-bit x, computed like a hardware squarer that
// omits all bit products below 2^18. For x = 512 h + l, h * h is exact and l *
// l is omitted. The squarer approximates h * l by a product of 4-bit numbers
// and two entries of `corner`.
static inline uint32_t square(uint32_t x) {
  uint32_t h = x >> 9, a = x >> 10, b = x >> 2 & 127;
  return h * h / 2 + (a >> 3) * (b >> 3) + corner[a >> 4][b & 7] +
         corner[b >> 4][a & 7];
}

static inline int64_t quadratic(const ApproxRow *r, uint32_t x, int s0,
                                int s2) {
  return (int64_t)r->c0 * (1 << s0) + (int64_t)r->c1 * x +
         (int64_t)r->c2 * square(x) * (1 << s2);
}

static int exponent(uint32_t x) { return (int)(x >> 23 & 255); }
static bool is_nan(uint32_t x) { return (x & ~SIGN_BIT) > INF_BITS; }
static bool is_tiny(uint32_t x) { return (x & ~SIGN_BIT) < ONE_BITS; }

// Returns u / 2^point as f32 bits. Truncates the significand to 24 bits.
static uint32_t cut(uint32_t sign, uint64_t u, int point) {
  if (u == 0) return sign;
  int top = 63 - __builtin_clzll(u);
  uint64_t m = top > 23 ? u >> (top - 23) : u << (23 - top);
  return sign | ((uint32_t)(top - point + BIAS) << 23) |
         ((uint32_t)m & FRACTION);
}

// ---- functions of the special function unit: subnormals become zeros ----

// Returns the reciprocal of 1 + f / 2^23, scaled by 2^24.
static uint32_t rcp_of(uint32_t f) {
  int64_t r = quadratic(&approx_rcp_rows[f >> 16], (f & 0xffff) << 1, 14, 1);
  return (uint32_t)((r + 0x8fce) >> 16);
}

// Returns the fraction bits of 1 / sqrt(a) as an f32. For f below 2^23, a is 1
// + f / 2^23. Otherwise a is 2 * (f / 2^23).
static uint32_t rsqrt_of(uint32_t f) {
  int64_t r = quadratic(&approx_rsqrt_rows[f >> 17], f & 0x1ffff, 14, 2);
  return (uint32_t)((r + 0x7fff) >> 16) - ONE_BITS;
}

static uint32_t unit_rcp(uint32_t a) {
  uint32_t sign = a & SIGN_BIT, f = a & FRACTION;
  int e = exponent(a);
  if (e == 255) return f ? NAN_BITS : sign;
  if (e == 0) return sign | INF_BITS;
  uint32_t m = rcp_of(f);
  e = 253 - e;
  if (e < 0 || (e == 0 && m < 2 * ONE_BITS)) return sign;
  return sign | (((uint32_t)e << 23) + m - ONE_BITS);
}

static uint32_t unit_rsqrt(uint32_t a) {
  int e = exponent(a) - BIAS;
  if (is_nan(a)) return NAN_BITS;
  if (e == -BIAS) return (a & SIGN_BIT) | INF_BITS;
  if (a & SIGN_BIT) return NAN_BITS;
  if (e == 128) return 0;
  uint32_t f = (a & FRACTION) | (uint32_t)(e & 1) << 23;
  e = BIAS - 1 - (e - (e & 1)) / 2;
  if (f == 0) return (uint32_t)(e + 1) << 23;
  return ((uint32_t)e << 23) + rsqrt_of(f);
}

static uint32_t unit_sqrt(uint32_t a) {
  int e = exponent(a) - BIAS;
  if (is_nan(a)) return NAN_BITS;
  if (e == -BIAS) return a & SIGN_BIT;
  if (a & SIGN_BIT) return NAN_BITS;
  if (e == 128) return INF_BITS;
  uint32_t f = a & FRACTION;
  const ApproxRow *row = &approx_sqrt_rows[(e & 1 ? 64 : 0) + (f >> 17)];
  int64_t r = e & 1 ? quadratic(row, f & 0x1ffff, 14, 0) + 0x3fff
                    : (quadratic(row, f & 0x1ffff, 15, 1) + 0x7fff) >> 1;
  e = BIAS + (e - (e & 1)) / 2;
  return ((uint32_t)e << 23) + (uint32_t)(r >> 16) - ONE_BITS;
}

// Computes ex2 of f32 bits. Converts the argument to a fixed-point number with
// 23 fractional bits, truncated toward zero. For a negative argument, uses the
// complement of the fraction.
static inline uint32_t unit_ex2(uint32_t a) {
  if (is_nan(a)) return NAN_BITS;
  int e = exponent(a), shift = BIAS - e;
  if (e >= BIAS + 7) return a & SIGN_BIT ? 0 : INF_BITS;
  uint32_t u = e == 0 ? 0 : (a & FRACTION) | ONE_BITS;
  u = shift <= 0 ? u << -shift : shift > 31 ? 0 : u >> shift;
  int whole = (int)(u >> 23);
  uint32_t f = u & FRACTION;
  if (a & SIGN_BIT) {
    whole = f ? -whole - 1 : -whole;
    if (f) f ^= FRACTION;
  }
  int64_t r = quadratic(&approx_ex2_rows[f >> 17], f & 0x1ffff, 13, 0);
  if (whole <= -BIAS) return 0;
  return ((uint32_t)(whole + BIAS) << 23) +
         (uint32_t)((r + 0x77e2) >> 15) - ONE_BITS;
}

static uint32_t unit_lg2(uint32_t a) {
  int e = exponent(a);
  if (is_nan(a)) return NAN_BITS;
  if (e == 0) return SIGN_BIT | INF_BITS;
  if (a & SIGN_BIT) return NAN_BITS;
  if (e == 255) return INF_BITS;
  uint32_t f = a & FRACTION;
  int64_t r = 0;
  if (f != 0 || e != BIAS)
    r = quadratic(&approx_lg2_rows[f >> 17], f & 0x1ffff, 12, 1) + 0x3345;
  r = (r >> 2) + (e - BIAS) * ((int64_t)1 << 36);
  return r < 0 ? cut(SIGN_BIT, (uint64_t)~r, 36) : cut(0, (uint64_t)r, 36);
}

// Returns the sine or cosine of an angle in full turns, given as f32 bits.
// Computes with 23 fractional bits of a quarter turn.
static uint32_t unit_sin(uint32_t turns, bool cosine) {
  int e = exponent(turns), shift = e - BIAS + 2;
  if (e == 255) return NAN_BITS;
  uint32_t u = e == 0 ? 0 : (turns & FRACTION) | ONE_BITS;
  u = shift < -31 || shift > 31 ? 0 : shift < 0 ? u >> -shift : u << shift;
  uint32_t sign = cosine ? 0 : turns & SIGN_BIT;
  uint32_t quarter = (u >> 23) + cosine, f = u & FRACTION;
  if (quarter & 1) f ^= FRACTION;
  if (quarter & 2) sign ^= SIGN_BIT;
  int64_t r = quadratic(&approx_sin_rows[f >> 17], f & 0x1ffff, 11, 0);
  return cut(sign, (uint64_t)r, 37);
}

// One entry for each binary exponent of tanh's argument, from -8 to 2. `start`
// is the first table row of this exponent. The leading `bits` bits of the
// fraction are added to it.
static const struct { uint8_t start, bits; } tanh_pieces[] = {
  {0, 0}, {1, 0}, {2, 0}, {3, 1}, {5, 1}, {7, 2}, {11, 2}, {15, 2}, {19, 3},
  {27, 4}, {43, 3}
};

uint32_t approx_tanh(uint32_t a) {
  uint32_t sign = a & SIGN_BIT, f = a & FRACTION;
  int e = exponent(a) - BIAS;
  if (is_nan(a)) return NAN_BITS;
  if (e < -8) return a;
  if (e > 2) return sign | (uint32_t)BIAS << 23;
  int bits = tanh_pieces[e + 8].bits;
  const ApproxRow *row = &approx_tanh_rows[tanh_pieces[e + 8].start +
                                           (f >> (23 - bits))];
  return cut(sign, (uint64_t)quadratic(row, f >> (6 - bits) & 0x1ffff, 15, 0),
             39);
}

// ---- the instructions ----

static uint32_t times(uint32_t x, float y) {
  float p = bits_float(x) * y;
  return isnan(p) ? NAN_BITS : float_bits(p);
}

uint32_t approx_ex2(uint32_t x, bool ftz) {
  if (ftz || !(bits_float(x) < -126.0f)) return unit_ex2(x);
  uint32_t root = unit_ex2(times(x, 0.5f));
  return times(root, bits_float(root));
}

void approx_ex2_all(const uint32_t *x, int n, uint32_t *out) {
  for (int k = 0; k < n; k++) out[k] = unit_ex2(x[k]);
}

uint32_t approx_lg2(uint32_t x, bool ftz) {
  if (ftz || !is_tiny(x)) return unit_lg2(x);
  uint32_t r = unit_lg2(times(x, 0x1p24f));
  return is_nan(r) ? r : float_bits(bits_float(r) - 24);
}

uint32_t approx_rcp(uint32_t x, bool ftz) {
  if (ftz) return unit_rcp(x);
  float scale = is_tiny(x) ? 0x1p24f
              : fabsf(bits_float(x)) > 0x1p126f ? 0.25f : 1.0f;
  return times(unit_rcp(times(x, scale)), scale);
}

uint32_t approx_sqrt(uint32_t x, bool ftz) {
  if (ftz || !is_tiny(x)) return unit_sqrt(x);
  return times(unit_sqrt(times(x, 0x1p24f)), 0x1p-12f);
}

uint32_t approx_rsqrt(uint32_t x, bool ftz) {
  if (ftz || !is_tiny(x)) return unit_rsqrt(x);
  return times(unit_rsqrt(times(x, 0x1p24f)), 0x1p12f);
}

// Converts an angle from radians to turns: multiplies it by 1 / (2 pi),
// truncating.
static uint32_t turns(uint32_t x) {
  double p = (double)bits_float(x) * (double)0x1.45f306p-3f;  // exact
  float t = (float)p;
  if (fabs((double)t) > fabs(p)) t = bits_float(float_bits(t) - 1);
  return float_bits(t);
}

uint32_t approx_sin(uint32_t x) { return unit_sin(turns(x), false); }
uint32_t approx_cos(uint32_t x) { return unit_sin(turns(x), true); }

uint32_t approx_div(uint32_t x, uint32_t y) {
  float scale = is_tiny(y) ? 0x1p24f
              : fabsf(bits_float(y)) > 0x1p126f ? 0.25f : 1.0f;
  uint32_t r = unit_rcp(times(y, scale));
  return times(r, bits_float(times(x, scale)));
}

// ---- 16-bit results ----

// Returns an f32 converted to f16 by truncation.
static uint32_t cut_f16(uint32_t u) {
  uint32_t sign = u >> 16 & 0x8000, v = u & ~SIGN_BIT;
  if (is_nan(u)) return 0x7fff;
  if (v >= 0x47800000) return sign | 0x7c00;  // 2^16
  int drop = v < 0x38800000 ? 13 + 113 - exponent(v) : 13;  // 2^-14
  if (drop == 13) return sign | ((v >> 13) - (112 << 10));
  return drop > 24 ? sign : sign | ((v & FRACTION) | ONE_BITS) >> drop;
}

static uint32_t f32_of(DType t, uint32_t h) {
  return float_bits(dtype_to_float(t, h));
}

uint32_t approx_ex2_f16(uint32_t x) {
  return cut_f16(approx_ex2(f32_of(DT_F16, x), false));
}

uint32_t approx_ex2_bf16(uint32_t x) { return unit_ex2(x << 16) >> 16; }

uint32_t approx_tanh_f16(uint32_t x) {
  return cut_f16(approx_tanh(f32_of(DT_F16, x)));
}

uint32_t approx_tanh_bf16(uint32_t x) { return approx_tanh(x << 16) >> 16; }

// ---- f64: functions of the upper 32 bits, which have 20 fraction bits ----

enum { HIGH_INF = 0x7ff00000, HIGH_NAN = 0x7fffffff, HIGH_BIAS = 1023 };

static uint32_t high_rcp(uint32_t a) {
  uint32_t sign = a & SIGN_BIT, v = a & ~SIGN_BIT;
  int e = (int)(v >> 20);
  if (v > HIGH_INF) return HIGH_NAN;
  if (v == HIGH_INF) return sign;
  if (e == 0) return sign | HIGH_INF;
  uint32_t m = rcp_of((v & 0xfffff) << 3);
  e = 2 * HIGH_BIAS - 1 - e;
  if (e < 0 || (e == 0 && m < 2 * ONE_BITS)) return sign;
  return sign | (((uint32_t)e << 20) + ((m - ONE_BITS) >> 3));
}

static uint32_t high_rsqrt(uint32_t a) {
  int e = (int)(a >> 20 & 2047) - HIGH_BIAS;
  if ((a & ~SIGN_BIT) > HIGH_INF) return HIGH_NAN;
  if (e == -HIGH_BIAS) return (a & SIGN_BIT) | HIGH_INF;
  if (a & SIGN_BIT) return HIGH_NAN;
  if (a == HIGH_INF) return 0;
  uint32_t f = (a & 0xfffff) << 3 | (uint32_t)(e & 1) << 23;
  e = HIGH_BIAS - 1 - (e - (e & 1)) / 2;
  if (f == 0) return (uint32_t)(e + 1) << 20;
  return ((uint32_t)e << 20) + (rsqrt_of(f) >> 3);
}

uint64_t approx_rcp_f64(uint64_t x) {
  return (uint64_t)high_rcp((uint32_t)(x >> 32)) << 32;
}

uint64_t approx_rsqrt_f64(uint64_t x, bool ftz) {
  double a = bits_double(x), scale = 1;
  if (ftz || a == 0 || isinf(a) || a < 0) {
    uint64_t r = (uint64_t)high_rsqrt((uint32_t)(x >> 32)) << 32;
    return ftz || !(a < 0) ? r : 0xfff8000000000000u;
  }
  if (isnan(a)) return x | (uint64_t)1 << 51;
  if (a < 0x1p-1022) {
    a *= 0x1p54;
    scale = 0x1p27;
  }
  // One Newton step improves the hardware's 1 / sqrt(a) to 53 bits.
  uint32_t high = high_rsqrt((uint32_t)(double_bits(a) >> 32));
  double y = bits_double((uint64_t)high << 32), square = y * y;
  double rest = fma(a, -square, 1);
  return double_bits(fma(fma(rest, 0.375, 0.5), rest * y, y) * scale);
}
// SPDX-License-Identifier: MIT
