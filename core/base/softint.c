// Evaluates integer instructions of PTX: saturation, packing, dot products, bit
// fields.
#include "base/soft.h"

static uint64_t mask_of(int bits) {
  return bits < 64 ? ((uint64_t)1 << bits) - 1 : UINT64_MAX;
}

// Returns the number in the low `bits` bits of u, in two's complement if
// `sign`.
static int64_t number(uint64_t u, int bits, bool sign) {
  u &= mask_of(bits);
  if (sign && bits < 64 && u >> (bits - 1)) u |= ~mask_of(bits);
  return (int64_t)u;
}

static int64_t within(int64_t v, int bits, bool sign) {
  int64_t most = (int64_t)mask_of(sign ? bits - 1 : bits);
  int64_t least = sign ? -most - 1 : 0;
  return v < least ? least : v > most ? most : v;
}

// Computes cvt.pack: saturates a and b to n bits. The result has b in its low
// bits, then a, then the low bits of c.
static uint64_t packed(Soft s, const uint64_t x[3]) {
  DType t = (DType)s.type;
  int n = s.mode;
  bool sign = dtype_class(t) == 'I';
  uint64_t hi = (uint64_t)within((int32_t)x[0], n, sign) & mask_of(n);
  uint64_t lo = (uint64_t)within((int32_t)x[1], n, sign) & mask_of(n);
  uint64_t both = hi << n | lo;
  return n == 16 ? both : (x[2] << (2 * n) | both) & UINT32_MAX;
}

static uint64_t dot(Soft s, const uint64_t x[3], int parts) {
  bool sa = dtype_class((DType)s.type) == 'I';
  bool sb = dtype_class((DType)s.from) == 'I';
  int wide = 32 / parts;  // bits of each part of a; each part of b has 8 bits
  uint64_t sum = x[2];
  for (int k = 0; k < parts; k++) {
    int at = parts == 2 ? k + 2 * s.mode : k;
    sum += (uint64_t)(number(x[0] >> (k * wide), wide, sa) *
                      number(x[1] >> (at * 8), 8, sb));
  }
  return sum & UINT32_MAX;
}

// Returns a mask of n bits, the lowest at position p: PTX's bmsk.
static uint64_t bit_mask(uint64_t p, uint64_t n, bool clamps) {
  if (!clamps) {
    p &= 31;
    n &= 31;
  }
  if (p >= 32) return 0;
  uint64_t all = n >= 32 ? UINT32_MAX : mask_of((int)n);
  return all << p & UINT32_MAX;
}

// Returns the low n bits of a, extended to 32 bits by their sign or by zeros:
// PTX's szext.
static uint64_t extended(uint64_t a, uint64_t n, bool sign, bool clamps) {
  if (!clamps) n &= 31;
  if (n >= 32) return a;
  return n ? (uint64_t)number(a, (int)n, sign) & UINT32_MAX : 0;
}

// Computes PTX's fns: returns the position of the n-th set bit of m, counted
// upward from bit `base`, or downward if n is negative.
static uint64_t nth_set(uint64_t m, uint64_t base, int32_t n) {
  int step = n < 0 ? -1 : 1;
  int64_t left = n < 0 ? -(int64_t)n : n;
  if (base > 31) return UINT32_MAX;
  if (left == 0) return m >> base & 1 ? base : UINT32_MAX;
  for (int k = (int)base; k >= 0 && k < 32; k += step) {
    if (m >> k & 1 && --left == 0) return (uint64_t)k;
  }
  return UINT32_MAX;
}

// Returns the index (0 to 7) of the byte of {b, a} that prmt copies to byte k
// of its result.
static unsigned chosen(int mode, unsigned sel, unsigned k) {
  switch ((SoftPermute)mode) {
  case SOFT_F4E: return (sel + k) & 7;
  case SOFT_B4E: return (sel - k) & 7;
  case SOFT_RC8: return sel;
  case SOFT_ECL: return k > sel ? k : sel;
  case SOFT_ECR: return k < sel ? k : sel;
  case SOFT_RC16: return (sel & 1) * 2 + (k & 1);
  }
  return 0;
}

static uint64_t permute(Soft s, const uint64_t x[3]) {
  uint64_t bytes = x[1] << 32 | x[0], d = 0;
  for (unsigned k = 0; k < 4; k++) {
    unsigned at = chosen(s.mode, (unsigned)x[2] & 3, k);
    d |= (bytes >> (8 * at) & 255) << (8 * k);
  }
  return d;
}

static uint64_t add_up(Soft s, uint64_t a, uint64_t b, bool minus) {
  int n = dtype_bits((DType)s.type);
  bool sign = dtype_class((DType)s.type) == 'I';
  int64_t x = number(a, n, sign), y = number(b, n, sign);
  int64_t r = minus ? x - y : x + y;
  if (s.flags & SOFT_SAT) r = within(r, n, sign);
  return (uint64_t)r & mask_of(n);
}

static uint64_t least(Soft s, uint64_t a, uint64_t b, bool max) {
  int n = dtype_bits((DType)s.type);
  bool sign = dtype_class((DType)s.type) == 'I';
  int64_t x = number(a, n, sign), y = number(b, n, sign);
  int64_t r = (x < y) == max ? y : x;
  if (s.flags & SOFT_RELU && r < 0) r = 0;
  return (uint64_t)r & mask_of(n);
}

static int64_t s24(uint64_t a) { return number(a, 24, true); }

uint64_t soft_integer(Soft s, const uint64_t x[3]) {
  int64_t a = (int32_t)x[0], b = (int32_t)x[1], c = (int32_t)x[2];
  bool sign = dtype_class((DType)s.type) == 'I';
  switch ((SoftOp)s.op) {
  case SOFT_ADD: return add_up(s, x[0], x[1], false);
  case SOFT_SUB: return add_up(s, x[0], x[1], true);
  case SOFT_MIN: case SOFT_MAX:
    return least(s, x[0], x[1], s.op == SOFT_MAX);
  case SOFT_PACK: return packed(s, x);
  case SOFT_DP4A: return dot(s, x, 4);
  case SOFT_DP2A: return dot(s, x, 2);
  case SOFT_BMSK: return bit_mask(x[0], x[1], s.mode);
  case SOFT_SZEXT: return extended(x[0], x[1], sign, s.mode);
  case SOFT_FNS: return nth_set(x[0], x[1], (int32_t)x[2]);
  case SOFT_PRMT: return permute(s, x);
  case SOFT_MADHI_SAT:
    return (uint64_t)within((a * b >> 32) + c, 32, true) & UINT32_MAX;
  case SOFT_MAD24HI_SAT:
    return (uint64_t)within((s24(x[0]) * s24(x[1]) >> 16) + c, 32, true) &
           UINT32_MAX;
  case SOFT_MUL: case SOFT_FMA: case SOFT_DIV: case SOFT_RCP: case SOFT_SQRT:
  case SOFT_NEG: case SOFT_ABS: case SOFT_CVT: case SOFT_RINT:
  case SOFT_APPROX: case SOFT_DIV_APPROX: case SOFT_DIV_FULL: case SOFT_COUNT:
    break;  // for floats
  }
  return 0;
}
// SPDX-License-Identifier: MIT
