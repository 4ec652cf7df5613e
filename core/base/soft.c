// Evaluates scalar instructions of PTX: calls the floating-point or the integer
// function, for each 16-bit half of a packed operand.
#include "base/soft.h"

static const char *const names[SOFT_COUNT] = {
#define SO(id, name, how) name,
  SOFT_OPS(SO)
#undef SO
};

const char *soft_name(SoftOp op) { return names[op]; }

Fidelity soft_fidelity(SoftOp op) {
  static const uint8_t t[SOFT_COUNT] = {
#define SO(id, name, how) FI_##how,
    SOFT_OPS(SO)
#undef SO
  };
  return (Fidelity)t[op];
}

static uint64_t one(Soft s, const uint64_t x[3]) {
  bool number = dtype_is_float((DType)s.type);
  switch ((SoftOp)s.op) {
  case SOFT_ADD: case SOFT_SUB: case SOFT_MIN: case SOFT_MAX:
    return number ? soft_float(s, x) : soft_integer(s, x);
  case SOFT_MUL: case SOFT_FMA: case SOFT_DIV: case SOFT_RCP: case SOFT_SQRT:
  case SOFT_NEG: case SOFT_ABS: case SOFT_RINT: case SOFT_APPROX:
  case SOFT_DIV_APPROX: case SOFT_DIV_FULL:
    return soft_float(s, x);
  case SOFT_CVT: return soft_convert(s, x[0]);
  case SOFT_PACK: case SOFT_DP4A: case SOFT_DP2A: case SOFT_BMSK:
  case SOFT_SZEXT: case SOFT_FNS: case SOFT_PRMT: case SOFT_MADHI_SAT:
  case SOFT_MAD24HI_SAT: case SOFT_COUNT:
    break;
  }
  return soft_integer(s, x);
}

// Converts two values to a packed pair. 32-bit sources are in two registers,
// and the first one becomes the high half of the result. Narrower sources are
// in one register.
static uint64_t convert_pair(Soft s, const uint64_t x[3]) {
  int n = dtype_bits((DType)s.type), m = dtype_bits((DType)s.from);
  uint64_t hi = m == 32 ? x[0] : x[0] >> m;
  uint64_t lo = m == 32 ? x[1] : x[0] & (((uint64_t)1 << m) - 1);
  return soft_convert(s, lo) | soft_convert(s, hi) << n;
}

uint64_t soft_eval(Soft s, const uint64_t x[3]) {
  if (!(s.flags & SOFT_PAIR)) return one(s, x);
  s.flags &= (uint8_t)~SOFT_PAIR;
  if (s.op == SOFT_CVT) return convert_pair(s, x);
  uint64_t lo[3], hi[3];
  for (int k = 0; k < 3; k++) {
    lo[k] = x[k] & 0xffff;
    hi[k] = x[k] >> 16 & 0xffff;
  }
  return one(s, lo) | one(s, hi) << 16;
}
// SPDX-License-Identifier: MIT
