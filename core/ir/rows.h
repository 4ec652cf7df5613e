// Enumerations of the rows of ops.h and of the functions in MATHS.
#ifndef CUTE_IRROWS_H
#define CUTE_IRROWS_H

#include "base/base.h"

typedef enum Op {
#define OP(id, name, operands, imm, rule, effect, who) OP_##id,
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
} OpRow;
extern const OpRow op_rows[OP_COUNT];

static inline const char *op_name(Op op) { return op_rows[op].name; }
static inline unsigned op_effect(Op op) { return op_rows[op].effect; }
static inline bool op_pure(Op op) { return op_rows[op].effect & EF_PURE; }
static inline Who op_who(Op op) { return (Who)op_rows[op].who; }
const char *who_name(Who who);  // returns a name such as "lane"

// MF(id, "name", operands): float functions of OP_MATH. The last rows are the
// hardware's approximate functions, for f32 only, which have their own names.
#define MATHS(MF) \
  MF(SQRT, "sqrt", 1) MF(RSQRT, "rsqrt", 1) MF(RCP, "rcp", 1) \
  MF(EXP, "exp", 1) MF(EXP2, "exp2", 1) MF(EXPM1, "expm1", 1) \
  MF(LOG, "log", 1) MF(LOG2, "log2", 1) MF(LOG10, "log10", 1) \
  MF(LOG1P, "log1p", 1) MF(SIN, "sin", 1) MF(COS, "cos", 1) \
  MF(TAN, "tan", 1) MF(ASIN, "asin", 1) MF(ACOS, "acos", 1) \
  MF(ATAN, "atan", 1) MF(SINH, "sinh", 1) MF(COSH, "cosh", 1) \
  MF(TANH, "tanh", 1) MF(ASINH, "asinh", 1) MF(ACOSH, "acosh", 1) \
  MF(ATANH, "atanh", 1) MF(ERF, "erf", 1) MF(ERFC, "erfc", 1) \
  MF(CBRT, "cbrt", 1) MF(FLOOR, "floor", 1) MF(CEIL, "ceil", 1) \
  MF(TRUNC, "trunc", 1) MF(ROUND, "round", 1) MF(RINT, "rint", 1) \
  MF(POW, "pow", 2) MF(ATAN2, "atan2", 2) MF(COPYSIGN, "copysign", 2) \
  MF(FMOD, "fmod", 2) MF(EX2APPROX, "ex2.approx", 1) \
  MF(TANHAPPROX, "tanh.approx", 1) MF(RCPAPPROX, "rcp.approx", 1) \
  MF(SINAPPROX, "sin.approx", 1) MF(COSAPPROX, "cos.approx", 1) \
  MF(LG2APPROX, "lg2.approx", 1) MF(SQRTAPPROX, "sqrt.approx", 1) \
  MF(RSQRTAPPROX, "rsqrt.approx", 1) MF(DIVAPPROX, "div.full", 2)
typedef enum MathFn {
#define MF(id, name, n) MF_##id,
  MATHS(MF)
#undef MF
  MF_COUNT
} MathFn;
const char *math_name(MathFn f);
int math_arity(MathFn f);
static inline bool math_is_approx(MathFn f) { return f >= MF_EX2APPROX; }

#endif
// SPDX-License-Identifier: MIT
