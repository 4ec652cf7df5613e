// Computes CUDA's exponential, logarithmic, hyperbolic and error functions as
// NVRTC 13.0 does (cudafn.h).
#include "base/cudafn.h"

#include "base/cudapoly.h"

#define LOG2E 0x1.715476p0f
#define LN2 0x1.62e43p-1f

// ---- powers of e ----

// Let k = 126 + x log2 e, rounded, and limited to 0 ... 252. The result is 2^(k
// - 126) times ex2.approx of x log2 e - (k - 126).
WITH_FMA
float cudafn_exp(float x) {
  float part = fmaf(x, 0x1.77313ap-8f, 0.5f);  // log2 e / 252
  part = !(part > 0) ? 0 : part > 1 ? 1 : part;
  int k = (int)((double)part * 252);
  float n = (float)(k - 126);
  float rest = fmaf(x, 0x1.4ae0cp-26f, fmaf(x, LOG2E, -n));
  return unit_ex2(rest) * bits_float((uint32_t)(k + 1) << 23);
}

// Returns e^x 2^(bias - 127). Splits x log2 e into an integer, truncated and
// limited to -126 ... 126, and a remainder.
static inline float exp_scaled(float x, int bias) {
  float n = truncf(x * LOG2E);
  if (fabsf(n) > 126) n = copysignf(126, n);
  float rest = fmaf(n, 0x1.05c61p-29f, fmaf(n, -LN2, x));
  uint32_t scale = float_bits(n + (0x1.8p23f + (float)bias)) << 23;
  return unit_ex2(rest * LOG2E) * bits_float(scale);
}

WITH_FMA
float cudafn_expm1(float x) {
  float n = fabsf(x) < 0x1.a3d70ap-2f ? 0 : rintf(x * LOG2E);
  float rest = fmaf(-n, 0x1.7f7d1cp-20f, fmaf(-n, 0x1.62e4p-1f, x));
  // f32 cannot represent 2^128: compute with 2^127, and double the result
  bool half = n == 128;
  float e = half ? n - 1 : n;
  float p = rest * POLY(rest, 0x1.6bd7ccp-10f, 0x1.12acc6p-7f, 0x1.5557c6p-5f,
                        0x1.5553ecp-3f, 0x1.fffffcp-2f);
  p = fmaf(p, rest, rest);
  float scale = bits_float(approx_ex2(float_bits(e), false));
  float y = fmaf(p, scale, scale - 1);
  if (half) y = y + y;
  if (e > 128) y = INFINITY;
  if (e < -25) y = -1;
  return x == 0 ? x + x : y;
}

// ---- logarithms ----

// A number x in the form 2^e (1 + r). `bits` has the f32 bits of x. If x is
// subnormal, they are those of x * 2^n, where n is a parameter of split().
typedef struct Split {
  uint32_t bits;
  float e, r;
} Split;

// Splits x so that 1 + r is at least the number with the bits `least`. A
// subnormal x is multiplied by 2^n first.
static inline Split split(float x, uint32_t least, int n) {
  bool tiny = x < 0x1p-126f;
  float scale = bits_float((uint32_t)(127 + n) << 23);
  uint32_t u = float_bits(tiny ? x * scale : x);
  uint32_t e = (u - least) & 0xff800000u;
  float down = tiny ? (float)-n : 0;
  return (Split){u, fmaf((float)(int32_t)e, 0x1p-23f, down),
                 bits_float(u - e) - 1};
}

// Returns y, or the special value of the logarithm if the float with these bits
// is negative, an infinity or a NaN.
static inline float log_special(uint32_t bits, float y) {
  return bits < 0x7f800000 ? y : fmaf(bits_float(bits), INFINITY, INFINITY);
}

static inline float log_of(float x) {
  Split s = split(x, 0x3f2aaaab, 23);
  float r = s.r;
  float p = r * POLY(r, -0x1.0aa04ep-3f, 0x1.2073ecp-3f, -0x1.f19b98p-4f,
                     0x1.1e52aap-3f, -0x1.55b172p-3f, 0x1.99da16p-3f,
                     -0x1.fffe44p-3f, 0x1.5554fp-2f, -0.5f);
  return log_special(s.bits, fmaf(s.e, LN2, fmaf(p, r, r)));
}

WITH_FMA
float cudafn_log(float x) { return x == 0 ? -INFINITY : log_of(x); }

WITH_FMA
float cudafn_log10(float x) {
  return x == 0 ? -INFINITY : log_of(x) * 0x1.bcb7b2p-2f;
}

WITH_FMA
float cudafn_log2(float x) {
  Split s = split(x, 0x3f3504f3, 23);
  float r = s.r;
  float p = r * POLY(r, 0x1.8d64fep-4f, -0x1.58fe6p-3f, 0x1.5f9e54p-3f,
                     -0x1.6e9c86p-3f, 0x1.a417e8p-3f, -0x1.ec7916p-3f,
                     0x1.277f32p-2f, -0x1.715492p-2f, 0x1.ec7094p-2f,
                     -0x1.715476p-1f);
  float y = s.e + fmaf(r, LOG2E, r * p);
  return x == 0 ? -INFINITY : log_special(s.bits, y);
}

// Returns x + 1, rounded toward zero.
static inline float plus_one(float x) {
  float sum = x + 1, one = sum - x;
  float error = (x - (sum - one)) + (1 - one);
  bool beyond = sum > 0 ? error < 0 : error > 0;
  return beyond ? bits_float(float_bits(sum) - 1) : sum;
}

static inline float log1p_of(float x) {
  uint32_t u = float_bits(x);
  uint32_t e = (float_bits(plus_one(x)) - 0x3f400000u) & 0xff800000u;
  // x = 2^e (1 + r) - 1
  float r = fmaf(0.25f, bits_float(0x40800000u - e), -1) + bits_float(u - e);
  float p = r * POLY(r, -0x1.737efp-5f, 0x1.b00024p-4f, -0x1.0ef1cp-3f,
                     0x1.28c8eap-3f, -0x1.54d1bap-3f, 0x1.995f3cp-3f,
                     -0x1.000084p-2f, 0x1.5555ccp-2f, -0.5f);
  float y = fmaf((float)(int32_t)e * 0x1p-23f, LN2, fmaf(p, r, r));
  if (u < 0x7f800000) return y;
  if (x == 0) return -0.0f;
  bool inside = u >= 0x80000000u && u <= 0xbf800000;  // -1 <= x < 0
  return inside ? y : fmaf(x, INFINITY, INFINITY);
}

WITH_FMA
float cudafn_log1p(float x) { return log1p_of(x); }

// ---- hyperbolic functions ----

WITH_FMA
float cudafn_sinh(float x) {
  float e = exp_scaled(fabsf(x), 125);
  if (fabsf(x) >= 1)
    return copysignf(fmaf(2, e, -0.125f * unit_rcp(e)), x);
  float s = x * x;
  float p = s * POLY(s, 0x1.7a15b4p-19f, 0x1.9ffe92p-13f, 0x1.111134p-7f,
                     0x1.555556p-3f);
  return fmaf(p, x, x);
}

WITH_FMA
float cudafn_cosh(float x) {
  float e = exp_scaled(fabsf(x), 125);
  return fmaf(2, e, 0.125f * unit_rcp(e));
}

WITH_FMA
float cudafn_tanh(float x) {
  float a = fabsf(x);
  if (a >= 0x1.333334p-1f) {
    float y = fmaf(unit_rcp(unit_ex2(a * 0x1.715476p1f) + 1), -2, 1);
    return copysignf(a >= 0x1.205968p3f ? 1 : y, x);
  }
  float s = x * x;
  float p = POLY(s, 0x1.01e104p-6f, -0x1.ac795cp-5f, 0x1.10b282p-3f,
                 -0x1.5553dap-2f, 0.0f);
  return fmaf(p, x, x);
}

WITH_FMA
float cudafn_asinh(float x) {
  float a = fabsf(x), b = fmaf(x, x, 1);
  bool large = a > 0x1p23f;
  float root = bits_float(approx_rsqrt(float_bits(b), true));
  float t = a * unit_rcp(fmaf(b, root, 1));
  float y = log1p_of(large ? a : fmaf(a, t, a));
  return copysignf(large ? y + LN2 : y, x);
}

WITH_FMA
float cudafn_acosh(float x) {
  float t = x - 1, b = fmaf(x, x, -1);
  bool large = float_bits(t) > 0x4b000000;  // also true for x < 1 and NaNs
  float r = bits_float(approx_rsqrt(float_bits(b), true));
  float root = b * r;
  root = fmaf(fmaf(-root, root, b), r * 0.5f, root);
  if (b == 0) root = 0;
  float y = log1p_of(t + (large ? -0x1.000002p0f : root));
  return large ? y + LN2 : y;
}

WITH_FMA
float cudafn_atanh(float x) {
  float a = fabsf(x), inverse = unit_rcp(1 - a);
  float y = log1p_of(a > 0x1p126f ? -2 : a * (inverse + inverse));
  return copysignf(0.5f, x) * y;
}

// ---- error functions, roots, powers ----

WITH_FMA
float cudafn_erf(float x) {
  float a = fabsf(x);
  if (a >= 0x1.00c1fcp0f) {
    float p = POLY(a, 0x1.d69874p-14f, -0x1.5c00b6p-10f, 0x1.13233ep-7f,
                   -0x1.49b334p-5f, 0x1.46aa32p-3f, 0x1.d369f2p-1f,
                   0x1.421428p-1f);
    return copysignf(1 - unit_ex2(fmaf(p, -a, -a)), x);
  }
  float p = POLY(x * x, 0x1.63d2d4p-14f, -0x1.ae9a4p-11f, 0x1.55abd4p-8f,
                 -0x1.b837cep-6f, 0x1.ce315ep-4f, -0x1.812758p-2f,
                 0x1.06eba6p-3f);
  return fmaf(p, x, x);
}

WITH_FMA
float cudafn_erfc(float x) {
  float a = fabsf(x);
  // q = (a - 4) / (a + 4)
  float inverse = unit_rcp(a + 4), q = (a - 4) * inverse;
  float rest = fmaf(-q, a, fmaf(-4, q + 1, a));
  q = fmaf(inverse, rest, q);
  float p = POLY(q, 0x1.d34122p-11f, 0x1.cdc0b6p-8f, -0x1.03f696p-6f,
                 0x1.2a6e76p-5f, -0x1.10f8b4p-4f, 0x1.8043aap-4f,
                 -0x1.9da848p-4f, 0x1.16e9bcp-4f, 0x1.f7e2ep-7f,
                 -0x1.1df1a8p-3f, 0x1.3ba592p0f);
  // p / (2 a + 1): p times an approximate reciprocal, corrected by one step of
  // Newton's method
  inverse = unit_rcp(fmaf(2, a, 1));
  float y = p * inverse;
  y = fmaf(fmaf(a, y * -2, p) - y, inverse, y);
  // multiply by e^(-a^2)
  float s = a * a, e = exp_scaled(-s, 127);
  y = y * fmaf(e, fmaf(-a, a, s), e);
  if (a > 0x1.41c29p3f) y = 0;
  return x < 0 ? 2 - y : y;
}

WITH_FMA
float cudafn_cbrt(float x) {
  if (x + x == x) return x + x;
  float a = fabsf(x);
  float third = bits_float(approx_lg2(float_bits(a), false)) * -0x1.555556p-1f;
  float r = unit_ex2(third);  // a^(-2/3)
  float y = a * r;
  y = fmaf(y, fmaf(y, -(r * y), 1) * 0x1.555556p-2f, y);
  return x < 0 ? -y : y;
}

// Returns log2 of a positive x, rounded to f32. Sets *low to the rest, which
// must be added to the result for full precision.
static inline float log2_of(float x, float *low) {
  Split s = split(x, 0x3f3504f3, 24);
  // Computes log2(1 + r) as 2 atanh(r / (r + 2)). q + ql is twice r / (r + 2),
  // where ql corrects the rounding of q.
  float inverse = unit_rcp(s.r + 2), q = (s.r + s.r) * inverse;
  float rest = s.r - q;
  float ql = inverse * fmaf(-q, s.r, rest + rest), qq = q * q;
  float p = qq * POLY(qq, 0x1.5865c8p-11f, 0x1.a5cfb6p-9f, 0x1.2776e6p-6f,
                      0x1.ec709ep-4f);
  float hi = fmaf(q, LOG2E, s.e), lo = fmaf(q, LOG2E, s.e - hi);
  lo = fmaf(q, 0x1.4abc68p-26f, fmaf(ql, LOG2E, lo));
  lo = fmaf(p, q, fmaf(p * 3, ql, lo));
  float sum = hi + lo;
  *low = lo - (sum - hi);
  return sum;
}

// Returns 2^(t + low).
static inline float exp2_of(float t, float low) {
  if (fabsf(t) > 152) return t < 0 ? 0 : INFINITY;
  float n = rintf(t), r = low + (t - n);
  float p = POLY(r, 0x1.3f971cp-13f, 0x1.5f0bdap-10f, 0x1.3b30acp-7f,
                 0x1.c6af76p-5f, 0x1.ebfbd8p-3f, LN2, 1.0f);
  // Scale by two factors, because 2^n may not be a normal number.
  uint32_t e = n == n ? (uint32_t)(int32_t)n << 23 : 0;
  uint32_t by = n > 0 ? 0 : 0x83000000u;
  return p * bits_float(by + 0x7f000000) * bits_float(e - by);
}

static inline bool is_odd(float y) {
  float half = truncf(y * 0.5f);
  return fabsf(y - (half + half)) == 1;
}

WITH_FMA
float cudafn_pow(float x, float y) {
  if (x == 1 || y == 0) return 1;
  if (x != x || y != y) return x + y;
  if (x == 0 || isinf(x)) {
    uint32_t u = float_bits(x + x);
    if (y < 0) u ^= 0x7f800000;
    return bits_float(is_odd(y) ? u : u & 0x7fffffff);
  }
  if (x == -1 && isinf(y)) return 1;
  if (x < 0 && floorf(y) != y) return NAN;
  float low, log = log2_of(fabsf(x), &low), t = log * y;
  float p = exp2_of(t, fmaf(low, y, fmaf(log, y, -t)));
  return x < 0 && is_odd(y) ? -p : p;
}
// SPDX-License-Identifier: MIT
