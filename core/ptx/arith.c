// arith.c: arithmetic on floats and integers.
#include <stdlib.h>
#include <string.h>

#include "ptx/inside.h"

// ---- floats ----

// Describes the current instruction for base/soft.h: its rounding, flags and
// element type.
static Soft descriptor(PtxOp *o, SoftOp op, uint8_t allowed) {
  Soft s = {.op = (uint8_t)op, .type = (uint8_t)o->elem[0],
            .mode = (uint8_t)op_rounding(o), .flags = op_flags(o)};
  bool small = dtype_bits(o->elem[0]) == 16;
  if (s.flags & ~allowed)
    op_reject(o, "one of its modifiers is not valid for this instruction");
  if (small && s.mode != SOFT_RN)
    op_reject(o, "16-bit floats allow only the rounding .rn");
  if (o->elem[0] == DT_BF16 && s.flags & SOFT_SAT) {
    op_reject(o, ".sat is not valid for bf16");
  }
  return s;
}

static bool is_plain(Soft s) { return s.mode == SOFT_RN && !s.flags; }

// Records that a compiler may contract the float product or sum r, because the
// instruction names no rounding. Returns r.
static Ref contractible(PtxOp *o, Ref r) {
  if (ptx_row(o->b, o->i)->fidelity != FI_CONTRACTED) return r;
  if (!dtype_is_float(o->elem[0])) return r;
  for (int k = 0; k < o->n; k++) {
    const char *m = o->mod[k];
    if (m[0] == 'r' && strchr("nzmp", m[1]) && m[1] && !m[2]) return r;
  }
  ir_note_fidelity(o->b->cx, o->b->fn, r, FI_CONTRACTED);
  return r;
}

// Emits the soft.h operation s on the instruction's first n sources.
static void soft_result(PtxOp *o, Soft s, uint32_t n) {
  DType raw = unsigned_of(op_type(o, 0).bits);
  Ref x[3] = {0, 0, 0};
  for (uint32_t k = 0; k < n; k++) x[k] = op_operand(o, k + 1, raw);
  if (o->pair[0]) s.flags |= SOFT_PAIR;
  Ref r = op_soft(o, s, dtype_bits(raw), x[0], x[1], x[2]);
  op_result(o, contractible(o, r));
}

// Returns operand k of a float instruction as a value of its element type.
static Ref element(PtxOp *o, uint32_t k) {
  DType t = o->elem[0];
  if (dtype_bits(t) != 16) return op_operand(o, k, t);
  return as(o, t, op_operand(o, k, DT_U16));
}

// Returns the immediate of an intrinsic on f32x2: the rounding mode, plus
// INTRIN_FTZ for .ftz.
static int64_t modifiers(PtxOp *o, Soft s) {
  if (atoi(o->b->m->target + strlen("sm_")) < intrin_row(IN_FMAF322)->sm)
    op_reject(o, "it needs .target sm_100 or newer");
  if (s.flags & SOFT_SAT) op_reject(o, ".sat is not valid for f32x2");
  return s.mode + (s.flags & SOFT_FTZ ? INTRIN_FTZ : 0);
}

// Emits a float instruction with n sources. An instruction without modifiers
// becomes one operation of the IR.
static void float_op(PtxOp *o, Soft s, Op op, uint32_t n) {
  static const struct { Op op; IntrinId half, brain, single; } packed[] = {
    {OP_ADD, IN_ADDF162, IN_ADDBF2, IN_ADDF322},
    {OP_SUB, IN_SUBF162, IN_SUBBF2, IN_SUBF322},
    {OP_MUL, IN_MULF162, IN_MULBF2, IN_MULF322},
    {OP_FMA, IN_FMAF162, IN_FMABF2, IN_FMAF322},
    {OP_MIN, IN_MINF162, IN_MINBF2, IN_COUNT},
    {OP_MAX, IN_MAXF162, IN_MAXBF2, IN_COUNT}};
  bool wide = o->pair[0] && o->elem[0] == DT_F32;
  if (!wide && !is_plain(s)) {
    soft_result(o, s, n);
    return;
  }
  if (!o->pair[0]) {
    Ref a = element(o, 1), b = element(o, 2);
    Ref r = n == 3 ? op3(o, op, a, b, element(o, 3)) : op2(o, op, a, b);
    op_result(o, contractible(o, r));
    return;
  }
  int64_t imm = wide ? modifiers(o, s) : 0;
  DType raw = wide ? DT_U64 : DT_U32;
  for (size_t k = 0; k < sizeof packed / sizeof *packed; k++) {
    if (packed[k].op != op) continue;
    IntrinId id = wide ? packed[k].single
                  : o->elem[0] == DT_BF16 ? packed[k].brain : packed[k].half;
    Ref r = op_intrin(o, id, imm, op_operand(o, 1, raw),
                      op_operand(o, 2, raw),
                      n == 3 ? op_operand(o, 3, raw) : 0);
    op_result(o, contractible(o, r));
    return;
  }
}

// ---- the carry ----

// Signed and unsigned sums and products have the same bits. They are computed
// as unsigned values, because unsigned arithmetic wraps.
static DType wrapping(PtxType t) {
  return t.kind == PTX_F ? op_dtype(t) : unsigned_of(t.bits);
}

static Ref carry(PtxOp *o, DType t) {
  Ref c = ir_emit(o->b->cx, o->b->fn, (Ins){.op = OP_VGET, .type = DT_BOOL,
                                            .a = {o->b->carry}});
  return to(o, t, c);
}

// Emits a + b + c of unsigned values, where c is 0, 1 or absent. With .cc,
// stores the carry out of the sum in the condition code.
static void carried_sum(PtxOp *o, Ref a, Ref b, Ref c) {
  Ref s = op2(o, OP_ADD, a, b), out = op2(o, OP_LT, s, a);
  if (c) {
    s = op2(o, OP_ADD, s, c);
    out = op2(o, OP_OR, out, op2(o, OP_LT, s, c));
  }
  op_result(o, s);
  if (!op_has(o, "cc")) return;
  ir_emit(o->b->cx, o->b->fn, (Ins){.op = OP_VSET, .a = {o->b->carry, out}});
}

// Translates add.cc, addc, sub.cc and subc. A difference is a + ~b + 1, so its
// carry is 1 if there was no borrow.
static void with_carry(PtxOp *o, bool minus, bool takes) {
  DType t = wrapping(op_type(o, 0));
  Ref a = op_operand(o, 1, t), b = op_operand(o, 2, t);
  if (minus) b = op1(o, OP_NOT, b);
  Ref c = takes ? carry(o, t) : minus ? number(o, t, 1) : 0;
  carried_sum(o, a, b, c);
}

// ---- add, sub ----

void row_sum(PtxOp *o, int k) {
  PtxType t = op_type(o, 0);
  DType e = o->elem[0];
  SoftOp op = k == OP_ADD ? SOFT_ADD : SOFT_SUB;
  bool takes = strncmp(o->i->op, "addc", 4) == 0 ||
               strncmp(o->i->op, "subc", 4) == 0;
  if (o->types > 1) op_reject(o, "operands of two types need sm_100");
  if (takes || strstr(o->i->op, ".cc")) {
    if (dtype_is_float(e) || o->pair[0])
      op_reject(o, "only single integers have a carry");
    with_carry(o, k == OP_SUB, takes);
  } else if (dtype_is_float(e)) {
    float_op(o, descriptor(o, op, SOFT_FTZ | SOFT_SAT), (Op)k, 2);
  } else if (o->pair[0] || op_has(o, "sat")) {
    if (!o->pair[0] && e != DT_I32)
      op_reject(o, ".sat is valid only for .s32");
    Soft s = {.op = (uint8_t)op, .type = (uint8_t)e, .flags = op_flags(o)};
    soft_result(o, s, 2);
  } else if (op_root(o, op_arg(o, 0)) >= 0) {
    op_result(o, op2(o, (Op)k, op_offset(o, op_arg(o, 1)),
                     op_offset(o, op_arg(o, 2))));
  } else {
    op_result(o, op2(o, (Op)k, op_operand(o, 1, wrapping(t)),
                     op_operand(o, 2, wrapping(t))));
  }
}

// ---- mul, mad, fma ----

// Returns the product a * b in twice the width of its factors.
static Ref wide_product(PtxOp *o, PtxType t) {
  bool sign = t.kind == PTX_S;
  DType own = op_dtype(t), twice = sign ? signed_of(t.bits * 2)
                                        : unsigned_of(t.bits * 2);
  Ref a = to(o, twice, op_operand(o, 1, own));
  Ref b = to(o, twice, op_operand(o, 2, own));
  DType u = unsigned_of(t.bits * 2);
  if (ir_type(o->b->fn, a) == DT_I64) return op2(o, OP_MUL, a, b);
  return op2(o, OP_MUL, as(o, u, a), as(o, u, b));
}

static Ref high_product(PtxOp *o, PtxType t) {
  bool sign = t.kind == PTX_S;
  if (t.bits == 16) {
    Ref p = wide_product(o, t);
    p = op2(o, OP_SHR, as(o, DT_U32, p), number(o, DT_U32, 16));
    return to(o, DT_U16, p);
  }
  DType own = op_dtype(t);
  IntrinId id = t.bits == 32 ? (sign ? IN_MULHI : IN_MULHIU)
                             : (sign ? IN_MULHI64 : IN_MULHIU64);
  return op_intrin(o, id, 0, op_operand(o, 1, own), op_operand(o, 2, own), 0);
}

static Ref product(PtxOp *o, PtxType t) {
  if (op_has(o, "wide")) return wide_product(o, t);
  if (op_has(o, "hi")) return high_product(o, t);
  if (!op_has(o, "lo")) op_reject(o, "one of .lo, .hi, .wide is needed");
  return op2(o, OP_MUL, op_operand(o, 1, wrapping(t)),
             op_operand(o, 2, wrapping(t)));
}

static void float_product(PtxOp *o, int k) {
  bool adds = k > 0;
  unsigned allowed = SOFT_FTZ | SOFT_SAT;
  if (adds && dtype_bits(o->elem[0]) == 16) allowed |= SOFT_RELU | SOFT_OOB;
  if (o->types > 1) op_reject(o, "operands of two types need sm_100");
  Soft s = descriptor(o, adds ? SOFT_FMA : SOFT_MUL, (uint8_t)allowed);
  float_op(o, s, adds ? OP_FMA : OP_MUL, adds ? 3 : 2);
}

void row_mul(PtxOp *o, int k) {
  PtxType t = op_type(o, 0);
  if (dtype_is_float(o->elem[0])) {
    float_product(o, k);
    return;
  }
  if (op_has(o, "sat")) {  // mad.hi.sat.s32
    if (!op_has(o, "hi") || k != 1 || o->elem[0] != DT_I32) {
      op_reject(o, ".sat is valid only for mad.hi.s32");
    }
    soft_result(o, (Soft){.op = SOFT_MADHI_SAT, .type = DT_I32}, 3);
    return;
  }
  Ref p = product(o, t);
  if (k == 0) {
    op_result(o, p);
    return;
  }
  const PtxArg *c = op_arg(o, 3);
  if (op_root(o, op_arg(o, 0)) >= 0) {
    op_result(o, op2(o, OP_ADD, as(o, DT_I64, p), op_offset(o, c)));
    return;
  }
  DType w = unsigned_of(dtype_bits(ir_type(o->b->fn, p)));
  Ref v = op_value(o, c, w);
  if (k == 2 || strstr(o->i->op, ".cc")) {
    carried_sum(o, as(o, w, p), v, k == 2 ? carry(o, w) : 0);
  } else {
    op_result(o, op2(o, OP_ADD, as(o, w, p), v));
  }
}

void row_mul24(PtxOp *o, int adds) {
  bool hi = op_has(o, "hi"), sign = op_type(o, 0).kind == PTX_S;
  DType t = o->elem[0];
  if (!hi) op_has(o, "lo");
  if (op_has(o, "sat")) {
    if (!hi || !adds || !sign)
      op_reject(o, ".sat is valid only for mad24.hi.s32");
    soft_result(o, (Soft){.op = SOFT_MAD24HI_SAT, .type = DT_I32}, 3);
    return;
  }
  static const IntrinId ids[2][2][2] = {
    {{IN_MUL24U, IN_MUL24}, {IN_MUL24HU, IN_MUL24H}},
    {{IN_MAD24U, IN_MAD24}, {IN_MAD24HU, IN_MAD24H}}};
  op_result(o, op_intrin(o, ids[adds][hi][sign], 0, op_operand(o, 1, t),
                         op_operand(o, 2, t),
                         adds ? op_operand(o, 3, t) : 0));
}

// ---- div, rem, functions ----

// Returns a / b rounded toward zero, as in PTX. (The IR's division rounds
// down.) The arithmetic wraps, so the least integer divided by -1 is the least
// integer.
static Ref truncated(PtxOp *o, DType t, Ref a, Ref b) {
  Ref q = op2(o, OP_DIV, a, b);
  if (dtype_class(t) != 'I') return q;
  DType w = unsigned_of(dtype_bits(t));
  Ref r = op2(o, OP_SUB, as(o, w, a), op2(o, OP_MUL, as(o, w, q), as(o, w, b)));
  Ref zero = number(o, w, 0);
  Ref part = op2(o, OP_NE, r, zero);
  Ref apart = op2(o, OP_LT, op2(o, OP_XOR, a, b), number(o, t, 0));
  Ref fix = op3(o, OP_SEL, op2(o, OP_AND, part, apart), number(o, w, 1), zero);
  return op2(o, OP_ADD, as(o, w, q), fix);
}

static void float_quotient(PtxOp *o) {
  DType t = o->elem[0];
  bool approx = op_has(o, "approx"), full = op_has(o, "full");
  Soft s = descriptor(o, full ? SOFT_DIV_FULL : approx ? SOFT_DIV_APPROX
                                                       : SOFT_DIV, SOFT_FTZ);
  if (full && !s.flags) {
    op_result(o, ir_math(o->b->cx, o->b->fn, MF_DIVAPPROX,
                         op_operand(o, 1, t), op_operand(o, 2, t)));
  } else if (approx || full) {
    soft_result(o, s, 2);
  } else {
    float_op(o, s, OP_DIV, 2);
  }
}

void row_divide(PtxOp *o, int k) {
  PtxType t = op_type(o, 0);
  DType own = op_dtype(t), w = wrapping(t);
  if (t.kind == PTX_F) {
    float_quotient(o);
    return;
  }
  Ref a = op_operand(o, 1, own), b = op_operand(o, 2, own);
  Ref q = truncated(o, own, a, b);
  if (k == OP_MOD) {
    q = op2(o, OP_SUB, as(o, w, a), op2(o, OP_MUL, as(o, w, q), as(o, w, b)));
  }
  op_result(o, q);
}

// Translates sqrt and rcp without .approx. With .rn and no other modifier,
// emits operations of the IR, otherwise operations of soft.h.
static void rounded_function(PtxOp *o, SoftApprox f) {
  DType t = o->elem[0];
  Soft s = descriptor(o, f == SOFT_A_RCP ? SOFT_RCP : SOFT_SQRT, SOFT_FTZ);
  if (!is_plain(s)) {
    soft_result(o, s, 1);
  } else if (f == SOFT_A_RCP) {
    Ref one = ir_float(o->b->cx, o->b->fn, t, 1);
    op_result(o, op2(o, OP_DIV, one, op_operand(o, 1, t)));
  } else {
    op_result(o, ir_math(o->b->cx, o->b->fn, MF_SQRT, op_operand(o, 1, t), 0));
  }
}

void row_function(PtxOp *o, int k) {
  static const struct { MathFn plain; IntrinId ftz; } f32[] = {
    [SOFT_EX2] = {MF_EX2APPROX, IN_EX2FTZ},
    [SOFT_LG2] = {MF_LG2APPROX, IN_LG2FTZ},
    [SOFT_A_RCP] = {MF_RCPAPPROX, IN_RCPFTZ},
    [SOFT_A_SQRT] = {MF_SQRTAPPROX, IN_SQRTFTZ},
    [SOFT_RSQRT] = {MF_RSQRTAPPROX, IN_RSQRTFTZ},
    [SOFT_SIN] = {MF_SINAPPROX, IN_SINFTZ},
    [SOFT_COS] = {MF_COSAPPROX, IN_COSFTZ},
    [SOFT_TANH] = {MF_TANHAPPROX, IN_COUNT}};
  op_type(o, 0);
  DType t = o->elem[0];
  if (!op_has(o, "approx")) {
    if (k != SOFT_A_RCP && k != SOFT_A_SQRT) op_reject(o, ".approx is missing");
    rounded_function(o, (SoftApprox)k);
    return;
  }
  bool ftz = op_has(o, "ftz");
  if (t != DT_F32) {
    bool small = k == SOFT_EX2 || k == SOFT_TANH;
    bool wide = k == SOFT_RSQRT || (k == SOFT_A_RCP && ftz);
    if (t == DT_F64 ? !wide : !small)
      op_reject(o, "this operation does not have this type");
    soft_result(o, (Soft){.op = SOFT_APPROX, .type = (uint8_t)t,
                          .mode = (uint8_t)k, .flags = ftz ? SOFT_FTZ : 0}, 1);
  } else if (!ftz) {
    op_result(o, ir_math(o->b->cx, o->b->fn, f32[k].plain,
                         op_operand(o, 1, t), 0));
  } else {
    if (f32[k].ftz == IN_COUNT) op_reject(o, ".ftz of tanh");
    op_result(o, op_intrin(o, f32[k].ftz, 0, op_operand(o, 1, t), 0, 0));
  }
}

// ---- min, max, neg, abs ----

// Emits min or max of three f32: first of two operands, then of that result and
// the third operand.
static void extreme_of_3(PtxOp *o, int k) {
  if (o->elem[0] != DT_F32 || o->pair[0])
    op_reject(o, "only f32 has three operands");
  if (atoi(o->b->m->target + strlen("sm_")) < 100)
    op_reject(o, "three operands need .target sm_100 or newer");
  Soft s = descriptor(o, k == OP_MIN ? SOFT_MIN : SOFT_MAX,
                      SOFT_FTZ | SOFT_NAN);
  Ref x = op_operand(o, 1, DT_F32);
  for (uint32_t q = 2; q < 4; q++) {
    Ref y = op_operand(o, q, DT_F32);
    x = is_plain(s) ? op2(o, (Op)k, x, y)
                    : as(o, DT_F32, op_soft(o, s, 32, as(o, DT_U32, x),
                                            as(o, DT_U32, y), 0));
  }
  op_result(o, x);
}

void row_extreme(PtxOp *o, int k) {
  op_type(o, 0);
  DType t = o->elem[0];
  SoftOp op = k == OP_MIN ? SOFT_MIN : SOFT_MAX;
  if (o->i->args > 3) {
    extreme_of_3(o, k);
    return;
  }
  if (dtype_is_float(t)) {
    Soft s = descriptor(o, op, SOFT_FTZ | SOFT_NAN | SOFT_XORSIGN);
    float_op(o, s, (Op)k, 2);
  } else if (o->pair[0] || op_has(o, "relu")) {
    Soft s = {.op = (uint8_t)op, .type = (uint8_t)t, .flags = op_flags(o)};
    soft_result(o, s, 2);
  } else {
    op_result(o, op2(o, (Op)k, op_operand(o, 1, t), op_operand(o, 2, t)));
  }
}

void row_sign(PtxOp *o, int k) {
  op_type(o, 0);
  DType t = o->elem[0];
  bool word = t == DT_F32 || t == DT_F64, ftz = strstr(o->i->op, ".ftz");
  if (dtype_is_float(t) && (!word || ftz)) {
    Soft s = descriptor(o, k == OP_NEG ? SOFT_NEG : SOFT_ABS, SOFT_FTZ);
    soft_result(o, s, 1);
    return;
  }
  if (k == OP_NEG && !word) t = wrapping(op_type(o, 0));
  op_result(o, op1(o, (Op)k, op_operand(o, 1, t)));
}

// ---- sums of differences and of products ----

void row_sad(PtxOp *o, int k) {
  (void)k;
  PtxType t = op_type(o, 0);
  DType own = op_dtype(t), w = wrapping(t);
  Ref a = op_operand(o, 1, own), b = op_operand(o, 2, own);
  Ref apart = op2(o, OP_SUB, as(o, w, op2(o, OP_MAX, a, b)),
                  as(o, w, op2(o, OP_MIN, a, b)));
  op_result(o, op2(o, OP_ADD, apart, op_operand(o, 3, w)));
}

void row_dot(PtxOp *o, int k) {
  op_type(o, 1);
  bool hi = op_has(o, "hi");
  if (!hi) op_has(o, "lo");
  soft_result(o, (Soft){.op = (uint8_t)k, .type = (uint8_t)o->elem[0],
                        .from = (uint8_t)o->elem[1], .mode = hi}, 3);
}
// SPDX-License-Identifier: MIT
