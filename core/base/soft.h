// Evaluates scalar instructions of PTX for which the IR has no operation, on
// raw bits: floats with every rounding mode and modifier, and integers.
//
// A descriptor (Soft) names an instruction and its modifiers. Where the PTX ISA
// leaves a result open (NaNs, subnormals before rounding), the result is that
// of an H100.
#ifndef CUTE_SOFT_H
#define CUTE_SOFT_H

#include "base/dtype.h"

// SO(ID, "name in PTX"). The operands are a, b and c. Soft.type is the type of
// the result.
#define SOFT_OPS(SO) \
  SO(ADD, "add") SO(SUB, "sub") SO(MUL, "mul") SO(FMA, "fma") \
  SO(DIV, "div") SO(RCP, "rcp") SO(SQRT, "sqrt") \
  SO(MIN, "min") SO(MAX, "max") SO(NEG, "neg") SO(ABS, "abs") \
  SO(CVT, "cvt")          /* converts from Soft.from */ \
  SO(RINT, "cvt.rint")    /* rounds to an integral value */ \
  SO(APPROX, "approx")    /* Soft.mode selects the function */ \
  SO(DIV_APPROX, "div.approx") SO(DIV_FULL, "div.full") \
  SO(PACK, "cvt.pack")    /* c a b, from the high bits down */ \
  SO(DP4A, "dp4a") SO(DP2A, "dp2a")  /* Soft.from: type of b; .mode: .hi */ \
  SO(BMSK, "bmsk") SO(SZEXT, "szext")  /* Soft.mode: .clamp */ \
  SO(FNS, "fns") SO(PRMT, "prmt")      /* Soft.mode: SoftPermute */ \
  SO(MADHI_SAT, "mad.hi.sat") SO(MAD24HI_SAT, "mad24.hi.sat")
typedef enum SoftOp {
#define SO(id, name) SOFT_##id,
  SOFT_OPS(SO)
#undef SO
  SOFT_COUNT
} SoftOp;

// Values of Soft.mode for floats: round to nearest even, toward zero, down, up,
// or to nearest with ties away from zero.
typedef enum SoftRound {
  SOFT_RN, SOFT_RZ, SOFT_RM, SOFT_RP, SOFT_RNA
} SoftRound;
// Values of Soft.mode for APPROX.
typedef enum SoftApprox {
  SOFT_EX2, SOFT_LG2, SOFT_A_RCP, SOFT_A_SQRT, SOFT_RSQRT, SOFT_SIN, SOFT_COS,
  SOFT_TANH
} SoftApprox;
// Values of Soft.mode for PRMT.
typedef enum SoftPermute {
  SOFT_F4E, SOFT_B4E, SOFT_RC8, SOFT_ECL, SOFT_ECR, SOFT_RC16
} SoftPermute;

// Bits of Soft.flags, named like modifiers. SOFT_PAIR: each 32-bit operand and
// result is a pair of 16-bit values.
enum {
  SOFT_FTZ = 1, SOFT_SAT = 2, SOFT_RELU = 4, SOFT_FINITE = 8, SOFT_OOB = 16,
  SOFT_NAN = 32, SOFT_XORSIGN = 64, SOFT_PAIR = 128
};

typedef struct Soft {
  uint8_t op;          // SoftOp
  // Types of the result, and of the operands if they differ.
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

// Computes one lane's result from zero-extended operands.
uint64_t soft_eval(Soft s, const uint64_t x[3]);

// Compute one unpacked result for soft_eval: of floats, of a conversion, of
// integers.
uint64_t soft_float(Soft s, const uint64_t x[3]);
uint64_t soft_convert(Soft s, uint64_t a);
uint64_t soft_integer(Soft s, const uint64_t x[3]);

#endif
// SPDX-License-Identifier: MIT
