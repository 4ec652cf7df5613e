// Computes CUDA's trigonometric functions and their inverses as NVRTC 13.0 does
// (cudafn.h).
#include "base/cudafn.h"

#include "base/cudapoly.h"

// ---- the quarter of the circle, and the angle in it ----

// 192 bits of 2 / pi after the binary point, the lowest first.
static const uint32_t two_over_pi[6] = {0x3c439041, 0xdb629599, 0xf534ddc0,
                                        0xfc2757d1, 0x4e441529, 0xa2f9836e};

// Subtracts the nearest multiple k * pi / 2 from x. |x| is 105615 or more.
// Returns the difference, and k modulo 4 in *quarter. Uses the method of Payne
// and Hanek (1983): in the product of x's significand and 2 / pi, only the bits
// around the binary point affect the result.
static float reduce_large(float x, int32_t *quarter) {
  uint32_t u = float_bits(x), e = (u >> 23 & 255) - 128, shift = e & 31;
  uint32_t fraction = u << 8 | 0x80000000u, product[7];
  uint64_t carry = 0;
  for (int i = 0; i < 6; i++) {
    carry += (uint64_t)two_over_pi[i] * fraction;
    product[i] = (uint32_t)carry;
    carry >>= 32;
  }
  product[6] = (uint32_t)carry;
  // 64 bits of the product, two of them before the binary point
  const uint32_t *w = product + 6 - e / 32;
  uint64_t bits = (uint64_t)w[0] << 32 | w[-1];
  if (shift) bits = bits << shift | w[-2] >> (32 - shift);
  bool negative = u >> 31;
  bool up = bits >> 61 & 1;  // whether the fraction is at least one half
  int32_t q = (int32_t)(bits >> 62) + up;
  bits <<= 2;
  *quarter = negative ? -q : q;
  double angle = (double)(int64_t)(up ? ~bits : bits) * 0x1.921fb54442d19p-64;
  return negative != up ? -(float)angle : (float)angle;
}

// Subtracts the nearest multiple k * pi / 2 from x. Returns the difference, and
// k modulo 4 in *quarter.
static inline float reduce(float x, int32_t *quarter) {
  *quarter = 0;
  if (x != x || isinf(x)) return x * 0;
  if (fabsf(x) >= 105615) return reduce_large(x, quarter);
  *quarter = (int32_t)rintf(x * 0x1.45f306p-1f);
  float n = (float)*quarter;  // n is +0 even if x is -0.
  float r = fmaf(n, -0x1.4442dp-24f, fmaf(n, -0x1.921fb4p0f, x));
  return fmaf(n, -0x1.84698ap-48f, r);
}

// ---- sine, cosine, tangent ----

// Returns the sine of r + quarter * pi / 2. Computes the sine of r in even
// quarters, and the cosine of r in odd quarters. Negates the result in quarters
// 2 and 3.
static inline float sine_of(float r, int32_t quarter) {
  float s = r * r, base = quarter & 1 ? 1 : r, p;
  if (quarter & 1)
    p = POLY(s, 0x1.9758p-16f, -0x1.6c0fdap-10f, 0x1.555576p-5f,
             -0x1.fffffep-2f);
  else
    p = POLY(s, -0x1.9a82a6p-13f, 0x1.110bc8p-7f, -0x1.55555p-3f);
  float y = fmaf(p, fmaf(s, base, 0), base);
  return quarter & 2 ? fmaf(y, -1, 0) : y;
}

WITH_FMA
float cudafn_sin(float x) {
  int32_t quarter;
  float r = reduce(x, &quarter);
  return sine_of(r, quarter);
}

WITH_FMA
float cudafn_cos(float x) {
  int32_t quarter;
  float r = reduce(x, &quarter);
  return sine_of(r, quarter + 1);
}

WITH_FMA
float cudafn_tan(float x) {
  int32_t quarter;
  float r = reduce(x, &quarter), s = r * r;
  float p = POLY(s, 0x1.32p-7f, 0x1.acp-9f, 0x1.8ep-6f, 0x1.b6p-5f,
                 0x1.11287p-3f, 0x1.55551p-2f);
  float y = fabsf(r) == 0x1.016878p-11f ? r : fmaf(p, s * r, r);
  return quarter & 1 ? unit_rcp(-y) : y;
}

// ---- inverse functions ----

// Two factors whose product is pi / 2. An FMA multiplies by both with one
// rounding.
#define PI_A 0x1.ddcb02p-1f
#define PI_B 0x1.aee9d6p0f

// Returns sqrt((1 - a) / 2). If a is near 1, the arc sine of a is computed from
// the arc sine of this value.
static inline float half_chord(float a) {
  float h = fmaf(0.5f, -a, 0.5f);
  float r = bits_float(approx_rsqrt(float_bits(h), true)), y = h * r;
  y = fmaf(y, fmaf(-y, r * 0.5f, 0.5f), y);
  return a == 1 ? 0 : y;
}

#define LARGE 0x1.1eb852p-1f

WITH_FMA
float cudafn_asin(float x) {
  float a = fabsf(x);
  bool large = a > LARGE;
  float t = large ? half_chord(a) : a, s = t * t;
  float p = s * POLY(s, 0x1.9ba5eep-5f, 0x1.33952ep-6f, 0x1.7f21dp-5f,
                     0x1.32799ep-4f, 0x1.555808p-3f);
  float y = fmaf(p, t, t);
  return copysignf(large ? fmaf(PI_A, PI_B, y * -2) : y, x);
}

WITH_FMA
float cudafn_acos(float x) {
  float a = fabsf(x);
  bool large = a > LARGE;
  float t = copysignf(large ? half_chord(a) : a, x), s = t * t;
  float p = s * POLY(s, 0x1.21d9dep-5f, 0x1.163576p-6f, 0x1.f80518p-6f,
                     0x1.6e4272p-5f, 0x1.3327b6p-4f, 0x1.55558cp-3f);
  float y = fmaf(p, t, t);
  if (!(x > LARGE)) y = fmaf(PI_A, PI_B, large ? y : -y);
  return large ? y + y : y;
}

WITH_FMA
float cudafn_atan(float x) {
  float a = fabsf(x), t = a > 1 ? unit_rcp(a) : a, s = t * t;
  float p = s * POLY(s, 0x1.412154p-9f, -0x1.d7c29ep-7f, 0x1.4672fcp-5f,
                     -0x1.2914f4p-4f, 0x1.aed642p-4f, -0x1.223d1p-3f,
                     0x1.995ecp-3f, -0x1.55544ep-2f);
  float y = fmaf(p, t, t);
  return copysignf(a > 1 ? fmaf(PI_A, PI_B, -y) : y, x);
}

WITH_FMA
float cudafn_atan2(float y, float x) {
  float a = fabsf(x), b = fabsf(y);
  bool negative = float_bits(x) >> 31, steep = b > a;
  float least = steep ? a : b, most = steep ? b : a;
  float t = least / most, s = t * t;
  float p = s * POLY(s, 0x1.66e216p-9f, -0x1.00ee9p-6f, 0x1.59b564p-5f,
                     -0x1.325a2p-4f, 0x1.b3d4d8p-4f, -0x1.22f962p-3f,
                     0x1.9979cp-3f, -0x1.5554fap-2f);
  float r = fmaf(p, t, t);
  if (steep) r = fmaf(PI_A, PI_B, negative ? r : -r);
  else if (negative) r = fmaf(2 * PI_A, PI_B, -r);
  if (a == b) r = negative ? 0x1.2d97c8p1f : 0x1.921fb6p-1f;
  if (most == 0) r = negative ? 0x1.921fb6p1f : 0;
  return a + b != a + b ? a + b : copysignf(r, y);
}
// SPDX-License-Identifier: MIT
