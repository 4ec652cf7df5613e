// Evaluates scalar instructions of PTX for which the IR has no operation.
// Operands and results are raw bits: floats with every rounding mode and
// modifier, and integers.
//
// A descriptor (Soft) names an instruction and its modifiers. Where the PTX ISA
// does not specify a result (NaNs, subnormals before rounding), it is that of
// an H100.
#ifndef CUTE_SOFT_H
#define CUTE_SOFT_H

#include "base/dtype.h"
#include "base/fidelity.h"

// SO(ID, "name in PTX", fidelity). The operands are a, b and c. Soft.type is
// the type of the result. fidelity: a row of base/fidelity.h.
#define SOFT_OPS(SO) \
  SO(ADD, "add", EXACT) SO(SUB, "sub", EXACT) SO(MUL, "mul", EXACT) \
  SO(FMA, "fma", EXACT) \
  SO(DIV, "div", EXACT) SO(RCP, "rcp", EXACT) SO(SQRT, "sqrt", EXACT) \
  SO(MIN, "min", EXACT) SO(MAX, "max", EXACT) \
  SO(NEG, "neg", EXACT) SO(ABS, "abs", EXACT) \
  SO(CVT, "cvt", EXACT)          /* converts from type Soft.from */ \
  SO(RINT, "cvt.rint", EXACT)    /* rounds to an integral value */ \
  SO(APPROX, "approx", UNIT)    /* Soft.mode selects the function */ \
  SO(DIV_APPROX, "div.approx", UNIT) SO(DIV_FULL, "div.full", UNIT) \
  SO(PACK, "cvt.pack", EXACT)    /* result: c, a, b from the high bits down */ \
  /* Soft.from: type of b; Soft.mode: 1 for `.hi` */ \
  SO(DP4A, "dp4a", EXACT) SO(DP2A, "dp2a", EXACT) \
  SO(BMSK, "bmsk", EXACT) SO(SZEXT, "szext", EXACT) /* Soft.mode: .clamp */ \
  SO(FNS, "fns", EXACT) SO(PRMT, "prmt", EXACT)  /* Soft.mode: SoftPermute */ \
  SO(MADHI_SAT, "mad.hi.sat", EXACT) SO(MAD24HI_SAT, "mad24.hi.sat", EXACT)
typedef enum SoftOp {
#define SO(id, name, fidelity) SOFT_##id,
  SOFT_OPS(SO)
#undef SO
  SOFT_COUNT
} SoftOp;

// Values of Soft.mode for floats: round to nearest even, toward zero, down, up,
// or to nearest with ties away from zero.
typedef enum SoftRound {
  SOFT_RN, SOFT_RZ, SOFT_RM, SOFT_RP, SOFT_RNA
} SoftRound;
// Values of Soft.mode for APPROX: the approximate functions.
typedef enum SoftApprox {
  SOFT_EX2, SOFT_LG2, SOFT_A_RCP, SOFT_A_SQRT, SOFT_RSQRT, SOFT_SIN, SOFT_COS,
  SOFT_TANH
} SoftApprox;
// Values of Soft.mode for PRMT: PTX's modes of prmt.
typedef enum SoftPermute {
  SOFT_F4E, SOFT_B4E, SOFT_RC8, SOFT_ECL, SOFT_ECR, SOFT_RC16
} SoftPermute;

// Bits of Soft.flags, named like PTX's modifiers. SOFT_PAIR: each 32-bit
// operand and result is a pair of 16-bit values.
enum {
  SOFT_FTZ = 1, SOFT_SAT = 2, SOFT_RELU = 4, SOFT_FINITE = 8, SOFT_OOB = 16,
  SOFT_NAN = 32, SOFT_XORSIGN = 64, SOFT_PAIR = 128
};

typedef struct Soft {
  uint8_t op;          // SoftOp
  // Type of the result, and type of the operands if it differs.
  uint8_t type, from;
  uint8_t mode;
  uint8_t flags;
} Soft;

static inline int64_t soft_pack(Soft s) {
  return (int64_t)s.op | (int64_t)s.type << 8 | (int64_t)s.from << 16 |
         (int64_t)s.mode << 24 | (int64_t)s.flags << 32;
}
static inline Soft soft_unpack(int64_t u) {
  return (Soft){(uint8_t)u, (uint8_t)(u >> 8), (uint8_t)(u >> 16),
                (uint8_t)(u >> 24), (uint8_t)(u >> 32)};
}

const char *soft_name(SoftOp op);
Fidelity soft_fidelity(SoftOp op);

// Computes one lane's result from zero-extended operands.
uint64_t soft_eval(Soft s, const uint64_t x[3]);

// Compute one unpacked result for soft_eval: a float operation, a conversion,
// an integer operation.
uint64_t soft_float(Soft s, const uint64_t x[3]);
uint64_t soft_convert(Soft s, uint64_t a);
uint64_t soft_integer(Soft s, const uint64_t x[3]);

#endif
// SPDX-License-Identifier: MIT
