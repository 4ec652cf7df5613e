// Enumerations of the rows of ops.h and of the functions in MATHS.
#ifndef CUTE_IRROWS_H
#define CUTE_IRROWS_H

#include "base/base.h"
#include "base/fidelity.h"

typedef enum Op {
#define OP(id, name, operands, imm, rule, effect, who, fidelity) OP_##id,
#include "ir/ops.h"
  OP_COUNT
} Op;

// The threads of a warp that execute an operation together. ops.h describes the
// values.
typedef enum Who {
  WHO_LANE = 1, WHO_MASK, WHO_WARP, WHO_FULL, WHO_ROW, WHO_TEXT
} Who;
typedef enum Rule {
  RULE_NONE, RULE_SAME, RULE_INT, RULE_FLT, RULE_CMP, RULE_SHF, RULE_SEL,
  RULE_SET, RULE_ANY
} Rule;
typedef enum ImmKind {
  IMM_NONE, IMM_RAW, IMM_ARG, IMM_MEM, IMM_TEXT, IMM_SREG, IMM_MATH,
  IMM_INTRIN, IMM_ELEMENTS, IMM_BITS, IMM_MMA, IMM_COPY, IMM_UNROLL,
  IMM_BARRIER, IMM_GROUPS, IMM_FENCE, IMM_ATOMIC, IMM_REGISTERS, IMM_MODE,
  IMM_LEVELS
} ImmKind;
// What an operation depends on and affects, as bits. EF_ORDERED: no memory
// access moves past it, whatever its operands are.
enum {
  EF_PURE = 1, EF_FIXED = 2, EF_OBJECT = 4, EF_VAR = 8, EF_REGS = 16,
  EF_MEMORY = 32, EF_ORDERED = 64, EF_OPENS = 128, EF_CLOSES = 256,
  EF_LATER = 512
};
typedef struct OpRow {
  const char *name, *operands;
  uint16_t effect;   // bits EF_*
  uint8_t done;  // EF_LATER: the Op that waits until this operation completes
  uint8_t imm, rule, who;
  uint8_t fidelity;  // the Fidelity
} OpRow;
extern const OpRow op_rows[OP_COUNT];

static inline const char *op_name(Op op) { return op_rows[op].name; }
static inline unsigned op_effect(Op op) { return op_rows[op].effect; }
static inline bool op_pure(Op op) { return op_rows[op].effect & EF_PURE; }
// Reports whether op begins a region and ends none, as ELSE does.
static inline bool op_opens(Op op) {
  return (op_rows[op].effect & (EF_OPENS | EF_CLOSES)) == EF_OPENS;
}
static inline Who op_who(Op op) { return (Who)op_rows[op].who; }
const char *who_name(Who who);  // returns a name such as "lane"

// MF(id, "name", operands, fidelity): float functions of OP_MATH. The last rows
// are the hardware's approximate functions, for f32 only, which have their own
// names.
#define MATHS(MF) \
  MF(SQRT, "sqrt", 1, EXACT) MF(RSQRT, "rsqrt", 1, CUDA) \
  MF(RCP, "rcp", 1, EXACT) MF(EXP, "exp", 1, CUDA) MF(EXP2, "exp2", 1, CUDA) \
  MF(EXPM1, "expm1", 1, CUDA) MF(LOG, "log", 1, CUDA) \
  MF(LOG2, "log2", 1, CUDA) MF(LOG10, "log10", 1, CUDA) \
  MF(LOG1P, "log1p", 1, CUDA) MF(SIN, "sin", 1, CUDA) MF(COS, "cos", 1, CUDA) \
  MF(TAN, "tan", 1, CUDA) MF(ASIN, "asin", 1, CUDA) MF(ACOS, "acos", 1, CUDA) \
  MF(ATAN, "atan", 1, CUDA) MF(SINH, "sinh", 1, CUDA) \
  MF(COSH, "cosh", 1, CUDA) MF(TANH, "tanh", 1, CUDA) \
  MF(ASINH, "asinh", 1, CUDA) MF(ACOSH, "acosh", 1, CUDA) \
  MF(ATANH, "atanh", 1, CUDA) MF(ERF, "erf", 1, CUDA) \
  MF(ERFC, "erfc", 1, CUDA) MF(CBRT, "cbrt", 1, CUDA) \
  MF(FLOOR, "floor", 1, EXACT) MF(CEIL, "ceil", 1, EXACT) \
  MF(TRUNC, "trunc", 1, EXACT) MF(ROUND, "round", 1, EXACT) \
  MF(RINT, "rint", 1, EXACT) MF(POW, "pow", 2, CUDA) \
  MF(ATAN2, "atan2", 2, CUDA) MF(COPYSIGN, "copysign", 2, EXACT) \
  MF(FMOD, "fmod", 2, EXACT) MF(EX2APPROX, "ex2.approx", 1, UNIT) \
  MF(TANHAPPROX, "tanh.approx", 1, UNIT) MF(RCPAPPROX, "rcp.approx", 1, UNIT) \
  MF(SINAPPROX, "sin.approx", 1, UNIT) MF(COSAPPROX, "cos.approx", 1, UNIT) \
  MF(LG2APPROX, "lg2.approx", 1, UNIT) MF(SQRTAPPROX, "sqrt.approx", 1, UNIT) \
  MF(RSQRTAPPROX, "rsqrt.approx", 1, UNIT) MF(DIVAPPROX, "div.full", 2, UNIT)
typedef enum MathFn {
#define MF(id, name, n, fidelity) MF_##id,
  MATHS(MF)
#undef MF
  MF_COUNT
} MathFn;
const char *math_name(MathFn f);
Fidelity math_fidelity(MathFn f);
int math_arity(MathFn f);
static inline bool math_is_approx(MathFn f) { return f >= MF_EX2APPROX; }

#endif
// SPDX-License-Identifier: MIT
