// One sum of a tensor core, computed with integers (tile.h).
#include <math.h>

#include "hardware/tile.h"

// A finite value sig * 2^(exp - 23). exp is at least the smallest exponent of
// its format.
typedef struct Part {
  uint64_t sig;
  int exp;
  bool neg;
} Part;

static Part part_of(float x, int emin) {
  uint32_t u = float_bits(x);
  int e = (int)(u >> 23 & 0xff);
  Part p = {u & 0x7fffff, (e ? e : 1) - 127, u >> 31};
  if (e) p.sig |= 0x800000;
  if (p.sig && p.exp < emin) {  // The value is subnormal in its format.
    p.sig >>= emin - p.exp;
    p.exp = emin;
  }
  return p;
}

// Returns x * 2^-right, negated if `neg`, truncated toward zero. right may be
// negative.
static int64_t cut(uint64_t x, int right, bool neg) {
  uint64_t y = right <= 0 ? x << -right : right > 63 ? 0 : x >> right;
  return neg ? -(int64_t)y : (int64_t)y;
}

float mma_round(int64_t sum, int exp, int keep) {
  if (sum == 0) return 0;
  uint64_t mag = sum < 0 ? (uint64_t)-sum : (uint64_t)sum;
  int top = 63 - __builtin_clzll(mag) + exp;  // exponent of the result
  if (top > 127) return sum < 0 ? -INFINITY : INFINITY;
  int quantum = (top < -126 ? -126 : top) - keep;
  if (quantum > exp) {
    int n = quantum - exp;
    mag = n > 63 ? 0 : mag >> n;
    exp = quantum;
  }
  float x = (float)ldexp((double)mag, exp);
  return sum < 0 && mag ? -x : x;
}

bool mma_special(int n, const float *a, const float *b, float c,
                 float *out) {
  bool pos = c > 0 && isinf(c), neg = c < 0 && isinf(c), bad = isnan(c);
  for (int i = 0; i < n; i++) {
    if (isnan(a[i]) || isnan(b[i])) bad = true;
    if (!isinf(a[i]) && !isinf(b[i])) continue;
    if (a[i] == 0 || b[i] == 0) bad = true;
    else if (signbit(a[i]) == signbit(b[i])) pos = true;
    else neg = true;
  }
  if (!pos && !neg && !bad) return false;
  *out = bad || (pos && neg) ? bits_float(SIM_NAN_BITS)
         : pos               ? INFINITY
                             : -INFINITY;
  return true;
}

// A zero result is +0, even if negative terms were truncated to zero.
float mma_sum(const SimRule *r, int n, const float *a, const float *b,
              int scale, float c) {
  float out;
  if (scale > SIM_SCALE_NAN / 2) return bits_float(SIM_NAN_BITS);
  if (mma_special(n, a, b, c, &out)) return out;
  Part pc = part_of(c, r->half ? -14 : -126), pa[SIM_MOST_K], pb[SIM_MOST_K];
  bool any = pc.sig != 0;
  int e = pc.sig ? pc.exp : -10000;
  for (int i = 0; i < n; i++) {
    pa[i] = part_of(a[i], r->emin_a);
    pb[i] = part_of(b[i], r->emin_b);
    if (!pa[i].sig || !pb[i].sig) continue;
    any = true;
    int ei = pa[i].exp + pb[i].exp + scale;
    if (ei > e) e = ei;
  }
  if (!any) return 0;
  if (r->floor && e < r->floor) e = r->floor;
  int64_t sum = pc.sig ? cut(pc.sig, 23 - r->f + e - pc.exp, pc.neg) : 0;
  for (int i = 0; i < n; i++) {
    uint64_t sig = pa[i].sig * pb[i].sig;
    int ei = pa[i].exp + pb[i].exp + scale;
    if (sig) sum += cut(sig, 46 - r->f + e - ei, pa[i].neg != pb[i].neg);
  }
  if (!r->half) return mma_round(sum, e - r->f, r->keep);
  double x = ldexp((double)sum, e - r->f);
  return dtype_to_float(DT_F16, dtype_from_double(DT_F16, x)) + 0.0f;
}
int mma_exponent(float x, int emin) { return part_of(x, emin).exp; }

float mma_scaled_sum(int n, const double *value, const int *exp, int f,
                     float c) {
  Part pc = part_of(c, -126);
  int e = pc.sig ? pc.exp : -10000;
  for (int i = 0; i < n; i++)
    if (value[i] != 0 && exp[i] > e) e = exp[i];
  if (e == -10000) return 0;
  int64_t sum = pc.sig ? cut(pc.sig, 23 - f + e - pc.exp, pc.neg) : 0;
  for (int i = 0; i < n; i++)
    sum += (int64_t)ldexp(value[i], exp[i] + f - e);
  return mma_round(sum, e - f, 23);
}
// SPDX-License-Identifier: MIT
