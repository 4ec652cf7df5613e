// Cost of arithmetic (price.h): the number of instructions that a compiler
// emits for an operation, and the pipes that these instructions use. For
// mathematical functions, the numbers come from the code of ptxas 13.0 for
// sm_90, on the path of ordinary operands.
#include "timing/price.h"

#include "ir/intrin.h"
#include "ir/operands.h"

struct SimPrices {
  const Fn *fn;
  uint32_t *uses;   // for each value: number of its uses
  // for each value: whether an instruction uses it for more than computing an
  // address
  bool *plain;
  // for each value: the result of in_pairs (is it a packed 16-bit value?)
  bool *paired;
  // for each value: whether it costs nothing, because the compiler merges its
  // computation with the computation of an operand
  bool *free;
};

// ---- folding ----

static bool is_logic(Op op) {
  return op_class(op) == CLASS_LOGIC;
}

static bool is_sum(Op op) { return op_class(op) == CLASS_SUM; }

static bool by_const(const Fn *fn, const Ins *i) {
  int64_t v;
  return (i->a[0] && ir_const(fn, i->a[0], &v)) ||
         (i->a[1] && ir_const(fn, i->a[1], &v));
}

// Reports whether the compiler merges i with `part`, which computes an operand
// of i and has no other uses. For integers, it merges sums of three terms, sums
// with a product or a shifted value, and logic on three words. If i selects
// between operands, the compiler predicates `part`, so that the selection costs
// nothing.
static bool joins(const SimPrices *p, const Ins *i, const Ins *part) {
  Op op = (Op)part->op;
  bool whole = !dtype_is_float((DType)part->type);
  bool fixed = by_const(p->fn, part);
  if (i->op == OP_SEL)
    return op_pure(op) && op != OP_CVT && !(whole && is_sum(op) && fixed);
  if (!whole || part->type != i->type) return false;
  if (is_logic((Op)i->op)) return is_logic(op);
  return is_sum((Op)i->op) && !by_const(p->fn, i) &&
         (op == OP_MUL || (op == OP_SHL && fixed) || (is_sum(op) && !fixed));
}

// Reports whether r is a 16-bit value from a fragment, or is computed from such
// values. The compiler packs two operations on such values into one
// instruction.
static bool in_pairs(const SimPrices *p, Ref r) {
  const Ins *i = ir_get(p->fn, r);
  Operand o;
  if (dtype_bits((DType)i->type) != 16) return false;
  for (Operands w = operands_of(p->fn, i); operands_next(&w, &o);) {
    if (i->op == OP_LD && o.kind == OPERAND_MEM)
      return ir_memof(p->fn, o.ref)->space == SP_RMEM;
    if (op_pure((Op)i->op) && o.ref && p->paired[o.ref]) return true;
  }
  return false;
}

// Marks the operands that the instruction at r uses for more than computing an
// address.
static void mark_plain(SimPrices *p, Ref r) {
  const Ins *i = ir_get(p->fn, r);
  bool part = op_pure((Op)i->op) && !p->plain[r] &&
              !dtype_is_float((DType)i->type);
  Operand o;
  for (Operands w = operands_of(p->fn, i); operands_next(&w, &o);) {
    bool address = o.kind == OPERAND_MEM;
    Ref at = address ? o.off : o.ref;
    if (!at) continue;
    p->uses[at]++;
    if (!address && !part) p->plain[at] = true;
  }
}

SimPrices *price_new(Ctx *cx, const Fn *fn) {
  SimPrices *p = NEW(cx, SimPrices, 1);
  size_t n = fn->ins.n;
  *p = (SimPrices){.fn = fn,
    .uses = arena_zero(cx, &cx->scratch, n * sizeof *p->uses),
    .plain = arena_zero(cx, &cx->scratch, n * sizeof *p->plain),
    .paired = arena_zero(cx, &cx->scratch, n * sizeof *p->paired),
    .free = arena_zero(cx, &cx->scratch, n * sizeof *p->free)};
  for (Ref r = (Ref)n; r-- > 1;) mark_plain(p, r);
  for (Ref r = 1; r < n; r++) {
    const Ins *i = ir_get(fn, r);
    p->paired[r] = in_pairs(p, r);
    for (int k = i->op == OP_SEL; k < 3 && !p->free[r]; k++) {
      Ref a = i->a[k];
      if (!op_pure((Op)i->op) || !a || p->uses[a] != 1 || p->free[a]) continue;
      p->free[r] = joins(p, i, ir_get(fn, a));
    }
  }
  return p;
}

// ---- integers ----

static SimPrice of(double issue, double fma, double alu, double xu) {
  return (SimPrice){(float)issue, (float)fma, (float)alu, (float)xu, 0};
}

// Returns the cost of a division by a divisor that is known only at run time.
// `fixed` is true if the reciprocal of the divisor is computed before the loop.
// The costs of 64-bit divisions are for numbers that fit in 32 bits.
static SimPrice division(Op op, DType t, bool fixed) {
  bool rest = op == OP_MOD;
  if (dtype_bits(t) > 32) return of(48, 36, 24, 3);
  if (dtype_class(t) != 'I') return fixed ? of(9, 6, 4, 0) : of(21, 14, 9, 3);
  if (fixed) return rest ? of(14, 12, 7, 0) : of(20, 11, 11, 0);
  return of(30, 18, 17, 3);
}

// Finds the cost of an operation with a constant operand. `power` is true if
// the constant is a power of two, so that the compiler uses shifts. `plain` is
// true if the result is used for more than computing an address. Returns false
// if the constant does not change the cost.
static bool by_constant(Op op, DType t, bool power, bool plain,
                        SimPrice *out) {
  double wide = dtype_bits(t) > 32 ? 2 : 1;
  bool rest = op == OP_MOD, sign = dtype_class(t) == 'I';
  if (is_sum(op)) {
    if (plain) return false;
    // the operation is free, because the constant becomes a part of the address
    *out = (SimPrice){0};
  } else if (op == OP_SHL || (op == OP_MUL && power)) {
    *out = of(wide, 0.6 * wide, 0.6 * wide, 0);
  } else if (op != OP_DIV && !rest) {
    return false;
  } else if (power) {
    *out = of(wide, 0, wide, 0);
  } else if (sign) {
    *out = rest ? of(7 * wide, 6 * wide, 4 * wide, 0)
                : of(9 * wide, 7 * wide, 6 * wide, 0);
  } else {
    *out = of((3 + rest) * wide, (4.5 + rest) * wide, 1.5 * wide, 0);
  }
  return true;
}

// ---- scalar operations ----

// The cost of each operation (SimPrice): number of instructions, and cycles of
// the pipes. Two packed 16-bit operations become one instruction.
#define NOTHING {0, 0, 0, 0, 0}
#define FMA(n) {n, n, 0, 0, 0}
#define ALU(n) {n, 0, n, 0, 0}
#define EITHER {1, 0.7f, 0.7f, 0, 0}
#define F64 {1, 0, 0, 0, 1}
static const struct { SimPrice f16, f32, f64, i32; } SCALARS[OP_COUNT] = {
  [OP_ADD] = {FMA(0.5f), FMA(1), F64, EITHER},
  [OP_SUB] = {FMA(0.5f), FMA(1), F64, EITHER},
  [OP_MUL] = {FMA(0.5f), FMA(1), F64, {1, 1.75f, 0, 0, 0}},
  [OP_FMA] = {FMA(0.5f), FMA(1), F64, NOTHING},
  [OP_DIV] = {{9, 5, 2, 1, 0}, {14, 7, 3, 2, 0}, {24, 5, 5, 1, 8}, NOTHING},
  [OP_MOD] = {{40, 20, 20, 2, 0}, {50, 20, 25, 3, 0},
              {80, 30, 30, 2, 20}, NOTHING},
  [OP_MIN] = {ALU(0.5f), ALU(1), {5, 0, 4, 0, 1}, ALU(1)},
  [OP_MAX] = {ALU(0.5f), ALU(1), {5, 0, 4, 0, 1}, ALU(1)},
  [OP_NEG] = {ALU(0.5f), NOTHING, NOTHING, EITHER},
  [OP_ABS] = {ALU(0.5f), NOTHING, NOTHING, ALU(1)},
  [OP_LT] = {ALU(0.5f), ALU(1), F64, ALU(1)},
  [OP_LE] = {ALU(0.5f), ALU(1), F64, ALU(1)},
  [OP_EQ] = {ALU(0.5f), ALU(1), F64, ALU(1)},
  [OP_NE] = {ALU(0.5f), ALU(1), F64, ALU(1)},
  [OP_AND] = {NOTHING, NOTHING, NOTHING, ALU(1)},
  [OP_OR] = {NOTHING, NOTHING, NOTHING, ALU(1)},
  [OP_XOR] = {NOTHING, NOTHING, NOTHING, ALU(1)},
  [OP_NOT] = {NOTHING, NOTHING, NOTHING, ALU(1)},
  [OP_SHL] = {NOTHING, NOTHING, NOTHING, ALU(1)},
  [OP_SHR] = {NOTHING, NOTHING, NOTHING, ALU(1)},
  [OP_SEL] = {ALU(1), ALU(1), ALU(2), ALU(1)},
};
#undef NOTHING
#undef FMA
#undef ALU
#undef EITHER
#undef F64

static SimPrice integer(const SimPrices *p, Ref r, DType t, bool fixed) {
  const Ins *i = ir_get(p->fn, r);
  Op op = (Op)i->op;
  int64_t v = 0;
  bool wide = dtype_bits(t) > 32;
  bool constant = (i->a[0] && ir_const(p->fn, i->a[0], &v)) ||
                  (i->a[1] && ir_const(p->fn, i->a[1], &v));
  bool power = constant && v > 0 && !(v & (v - 1));
  SimPrice c;
  // operations on booleans cost nothing, because comparisons set predicates
  if (t == DT_BOOL) return (SimPrice){0};
  if (constant && by_constant(op, t, power, p->plain[r], &c)) return c;
  if (op == OP_DIV || op == OP_MOD) return division(op, t, fixed);
  if (op == OP_MUL && wide) return of(4, 7.2, 0, 0);
  if (wide && is_sum(op)) return of(2, 0, 2, 0);
  c = SCALARS[op].i32;
  return wide ? of(2 * c.issue, 2 * c.fma, 2 * c.alu, 0) : c;
}

// Returns the cost of a 16-bit operation that is not packed with another one.
// Except for an FMA, derives it from the cost of this operation on f32.
static SimPrice single_half(Op op, SimPrice f32) {
  if (op == OP_FMA) return of(1, 0.8, 0.4, 0);
  if (f32.issue != 1) return f32;
  return of(3, f32.fma + 1, f32.alu + 1, 0);
}

static SimPrice scalar(const SimPrices *p, Ref r, DType t, bool fixed) {
  Op op = (Op)ir_get(p->fn, r)->op;
  if (!dtype_is_float(t)) return integer(p, r, t, fixed);
  if (dtype_bits(t) == 64) return SCALARS[op].f64;
  if (dtype_bits(t) != 16) return SCALARS[op].f32;
  if (op == OP_SEL || op_class(op) == CLASS_QUOTIENT || p->paired[r])
    return SCALARS[op].f16;
  return single_half(op, SCALARS[op].f32);
}

// ---- functions ----

static const SimPrice MATH32[MF_COUNT] = {
  [MF_SQRT] = {10, 5, 3, 1, 0}, [MF_RSQRT] = {4, 2, 1, 1, 0},
  [MF_RCP] = {10, 4, 4, 1, 0}, [MF_EXP] = {8, 6, 1, 1, 0},
  [MF_EXP2] = {4, 2, 1, 1, 0}, [MF_EXPM1] = {27, 15, 9, 2, 0},
  [MF_LOG] = {26, 13, 13, 0, 0}, [MF_LOG2] = {27, 14, 13, 0, 0},
  [MF_LOG10] = {27, 14, 13, 0, 0}, [MF_LOG1P] = {28, 15, 13, 0, 0},
  [MF_SIN] = {24, 12, 8, 1, 0}, [MF_COS] = {24, 12, 8, 1, 0},
  [MF_TAN] = {34, 20, 12, 2, 0}, [MF_ASIN] = {22, 15, 7, 1, 0},
  [MF_ACOS] = {23, 16, 7, 1, 0}, [MF_ATAN] = {18, 10, 8, 1, 0},
  [MF_SINH] = {23, 15, 6, 3, 0}, [MF_COSH] = {15, 9, 4, 3, 0},
  [MF_TANH] = {15, 9, 5, 2, 0}, [MF_ASINH] = {40, 20, 18, 2, 0},
  [MF_ACOSH] = {40, 22, 18, 1, 0}, [MF_ATANH] = {36, 20, 16, 1, 0},
  [MF_ERF] = {23, 16, 13, 1, 0}, [MF_ERFC] = {44, 36, 8, 4, 0},
  [MF_CBRT] = {15, 9, 5, 2, 0}, [MF_FLOOR] = {1, 0, 0, 1, 0},
  [MF_CEIL] = {1, 0, 0, 1, 0}, [MF_TRUNC] = {1, 0, 0, 1, 0},
  [MF_ROUND] = {4, 2, 1, 1, 0}, [MF_RINT] = {1, 0, 0, 1, 0},
  [MF_POW] = {62, 30, 32, 1, 0}, [MF_ATAN2] = {40, 24, 16, 2, 0},
  [MF_COPYSIGN] = {1, 0, 1, 0, 0}, [MF_FMOD] = {45, 20, 22, 2, 0},
  [MF_EX2APPROX] = {4, 2, 1, 1, 0}, [MF_TANHAPPROX] = {1, 0, 0, 1, 0},
  [MF_RCPAPPROX] = {4, 2, 1, 1, 0}, [MF_SINAPPROX] = {2, 1, 0, 1, 0},
  [MF_COSAPPROX] = {2, 1, 0, 1, 0}, [MF_LG2APPROX] = {4, 2, 1, 1, 0},
  [MF_SQRTAPPROX] = {4, 2, 1, 1, 0}, [MF_RSQRTAPPROX] = {4, 2, 1, 1, 0},
  [MF_DIVAPPROX] = {7, 4, 2, 1, 0},
};

static SimPrice math64(MathFn f) {
  switch ((int)f) {
    case MF_SQRT: return (SimPrice){24, 4, 6, 1, 8};
    case MF_RSQRT: return (SimPrice){20, 3, 5, 1, 7};
    case MF_RCP: return (SimPrice){16, 2, 4, 1, 6};
    case MF_EXP: case MF_EXP2: return (SimPrice){34, 8, 8, 0, 17};
    case MF_LOG: case MF_LOG2: case MF_LOG10: case MF_LOG1P:
      return (SimPrice){70, 16, 16, 1, 30};
    case MF_SIN: case MF_COS: return (SimPrice){50, 16, 16, 2, 17};
    case MF_FLOOR: case MF_CEIL: case MF_TRUNC: case MF_RINT:
      return (SimPrice){1, 0, 0, 2, 0};
    case MF_TANH: return (SimPrice){56, 10, 10, 4, 30};
    case MF_ERF: return (SimPrice){52, 8, 4, 4, 42};
    case MF_POW: return (SimPrice){200, 50, 45, 2, 95};
    case MF_COPYSIGN: return of(1, 0, 1, 0);
    default: return (SimPrice){80, 20, 20, 2, 35};
  }
}

static SimPrice math_price(const Fn *fn, const Ins *i) {
  int bits = dtype_bits((DType)i->type);
  if (bits == 64) return math64((MathFn)i->imm);
  SimPrice p = MATH32[i->imm];
  // A pow whose exponent is a constant needs no code for special cases.
  bool fixed = i->imm == MF_POW && ir_get(fn, i->a[1])->op == OP_CONST;
  if (fixed) p = of(31, 15, 16, 1);
  if (bits == 16) {  // functions of 16-bit floats are computed in f32
    p.issue += 2;
    p.fma += 1;
    p.alu += 1;
  }
  return p;
}

// ---- conversions ----

static SimPrice from_float(DType from, DType to) {
  int a = dtype_bits(from), b = dtype_bits(to);
  if (!dtype_is_float(to)) {
    if (to == DT_BOOL) return of(1, 0, 1, 0);
    if (a == 64 || b == 64) return of(1, 0, 0, 1);
    if (a < 32) return of(2, 1, 0, 2);
    return of(b < 32 ? 2 : 1, 0, b < 32, 1);
  }
  if (a == 64 || b == 64) return of(1, 0, 0, 1);
  if (to == DT_TF32) return of(8, 0, 7, 0);
  SimPrice p = {0};
  if (a == 16) p = from == DT_BF16 ? of(1, 1, 0.5, 0) : of(1, 1, 0, 0);
  if (a == 8) p = of(2, 1, 1.4, 0);
  if (b == 16) p = of(p.issue + 1, p.fma, p.alu + 1, 0);
  if (b == 8) p = of(p.issue + 1, p.fma, p.alu + 1.5, 0);
  if (a < 8 || b < 8) p = of(6, 2, 4, 0);
  return p;
}

static SimPrice convert(DType from, DType to) {
  int a = dtype_bits(from), b = dtype_bits(to);
  if (from == to) return (SimPrice){0};
  if (dtype_is_float(from)) return from_float(from, to);
  if (from == DT_BOOL) return of(1, 0, 1, 0);
  if (!dtype_is_float(to)) {
    if (b < a && b >= 32) return (SimPrice){0};
    return of(1, 0.4, 0.6, 0);
  }
  if (a == 64 || b == 64) return of(1, 0, 0, 1);
  return b == 32 ? of(1, 0, 1, 0) : of(2, 0, 1, 3);
}

// ---- intrinsics ----

static SimPrice intrinsic(IntrinId id) {
  switch ((int)id) {
    case IN_POPC: case IN_CLZ: case IN_BREV: case IN_BFIND: case IN_BFINDS:
    case IN_REDADD: case IN_REDMIN: case IN_REDMINU: case IN_REDMAX:
    case IN_REDMAXU: case IN_REDAND: case IN_REDOR: case IN_REDXOR:
      return of(1, 0, 0, 1);
    case IN_POPC64: case IN_BREV64: return of(3, 0, 1, 2);
    case IN_CLZ64: case IN_BFIND64: case IN_BFINDS64: return of(6, 2, 3, 1);
    case IN_BFE: case IN_BFES: return of(2, 0, 2, 0);
    case IN_BFI: return of(2.2, 1.2, 1.3, 0);
    case IN_BFE64: case IN_BFES64: case IN_BFI64: return of(6, 0, 6, 0);
    case IN_MULHI: case IN_MULHIU: case IN_MULWIDE: case IN_MULWIDEU:
      return of(1, 3.5, 0, 0);
    case IN_MULHI64: case IN_MULHIU64: return of(8, 14, 4, 0);
    case IN_MUL24: case IN_MUL24U: case IN_MUL24H: case IN_MUL24HU:
    case IN_MAD24: case IN_MAD24U: case IN_MAD24H: case IN_MAD24HU:
      return of(3, 1.75, 2, 0);
    case IN_MULWIDE16: case IN_MULWIDEU16: return of(2, 1.75, 1, 0);
    case IN_ADDRZ: case IN_MULRZ: case IN_FMARZ: case IN_ADDRP: case IN_MULRP:
    case IN_FMARP: case IN_ADDRM: case IN_MULRM: case IN_FMARM:
    case IN_ADDBF2: case IN_SUBBF2: case IN_MULBF2: case IN_FMABF2:
    case IN_ADDF162: case IN_SUBF162: case IN_MULF162: case IN_FMAF162:
    case IN_ADDF322: case IN_SUBF322: case IN_MULF322: case IN_FMAF322:
      return of(1, 1, 0, 0);
    case IN_DIVRZ: case IN_DIVRP: case IN_DIVRM: return of(14, 7, 3, 2);
    case IN_SQRTRZ: case IN_SQRTRP: case IN_SQRTRM: case IN_RCPRZ:
    case IN_RCPRP: case IN_RCPRM:
      return of(10, 5, 3, 1);
    case IN_TF32RNA: return of(2, 0, 2.2, 0);
    case IN_E4M3F16: case IN_E5M2F16: case IN_F16E4M3: case IN_F16E5M2:
    case IN_PACKE4M3: case IN_PACKE5M2:
      return of(1, 0, 1.5, 0);
    case IN_CLCVALID: case IN_CLCX: case IN_CLCY: case IN_CLCZ:
      return of(2, 0, 0, 0);
    case IN_E2M1F16: return of(5, 1, 4, 0);
    case IN_EX2FTZ: case IN_LG2FTZ: case IN_RCPFTZ: case IN_SQRTFTZ:
    case IN_RSQRTFTZ:
      return of(1, 0, 0, 1);
    case IN_SINFTZ: case IN_COSFTZ: return of(2, 1, 0, 1);
    case IN_EX2H2: case IN_EX2B2: case IN_TANHH2: case IN_TANHB2:
      return of(2, 0, 0, 2);
    case IN_MATCHANY: case IN_MATCHANY64: case IN_MATCHALL: case IN_MATCHALL64:
      return of(1, 0, 0, 1.05);
    case IN_LMEQ: case IN_LMLE: case IN_LMLT: case IN_LMGE: case IN_LMGT:
    case IN_NSMID: case IN_NWARPID: case IN_GRIDID: case IN_DYNSMEM:
    case IN_TOTSMEM: case IN_AGGSMEM: case IN_WARPID:
      return of(1, 0, 0, 0);
    case IN_SHUFIDX: case IN_SHUFIDXI: case IN_SHUFIDXF: case IN_SHUFUP:
    case IN_SHUFUPI: case IN_SHUFUPF: case IN_SHUFDOWN: case IN_SHUFDOWNI:
    case IN_SHUFDOWNF: case IN_SHUFBFLY: case IN_SHUFBFLYI: case IN_SHUFBFLYF:
      // Shuffles use the pipe of shared memory. work.c adds this cost.
      return (SimPrice){0};
    default: return of(1, 0, 1, 0);
  }
}

// ---- dispatch ----

SimPrice price_of(const SimPrices *p, const SimIns *d, bool fixed) {
  const Ins *i = ir_get(p->fn, d->ref);
  if (p->free[d->ref]) return (SimPrice){0};
  if (d->op == OP_MATH) return math_price(p->fn, i);
  if (d->op == OP_CVT) return convert((DType)d->type, (DType)i->type);
  if (d->op == OP_INTRIN || d->op == OP_ASK)
    return intrinsic(intrin_id(i->imm));
  return scalar(p, d->ref, (DType)d->type, fixed);
}
// SPDX-License-Identifier: MIT
