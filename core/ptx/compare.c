// compare.c: comparisons, selections, tests of floats.
#include <string.h>

#include "ptx/inside.h"

// ---- one comparison ----

// Returns the values to compare. 16-bit floats are compared as f32, which
// represents all 16-bit floats.
static Ref comparable(PtxOp *o, Ref v, DType t) {
  if (!dtype_is_float(t)) return v;
  // max.ftz(v, v) is v with subnormals flushed to zero
  if (strstr(o->i->op, ".ftz")) {
    op_has(o, "ftz");
    Soft s = {.op = SOFT_MAX, .type = (uint8_t)t, .flags = SOFT_FTZ};
    v = op_soft(o, s, dtype_bits(t), v, v, 0);
  }
  v = as(o, t, v);
  return dtype_bits(t) == 16 ? to(o, DT_F32, v) : v;
}

// A comparison of PTX as an operation of the IR. `swaps` is true if the
// operands are exchanged. `negates` is true if the result is negated, for
// comparisons that are true if an operand is a NaN.
typedef struct Test {
  const char *name;
  Op op;
  bool swaps, negates;
} Test;

static const Test tests[] = {
  {"eq", OP_EQ, false, false}, {"lt", OP_LT, false, false},
  {"le", OP_LE, false, false}, {"gt", OP_LT, true, false},
  {"ge", OP_LE, true, false}, {"lo", OP_LT, false, false},
  {"ls", OP_LE, false, false}, {"hi", OP_LT, true, false},
  {"hs", OP_LE, true, false}, {"neu", OP_EQ, false, true},
  {"ltu", OP_LE, true, true}, {"leu", OP_LT, true, true},
  {"gtu", OP_LE, false, true}, {"geu", OP_LT, false, true}};

Ref op_compare(PtxOp *o, bool floats, Ref a, Ref b) {
  for (size_t k = 0; k < sizeof tests / sizeof *tests; k++) {
    const Test *t = &tests[k];
    if (!op_has(o, t->name)) continue;
    Ref p = op2(o, t->op, t->swaps ? b : a, t->swaps ? a : b);
    return t->negates ? op1(o, OP_NOT, p) : p;
  }
  if (op_has(o, "ne") && !floats) return op2(o, OP_NE, a, b);
  Ref apart = op2(o, OP_OR, op2(o, OP_LT, a, b), op2(o, OP_LT, b, a));
  if (op_has(o, "ne")) return apart;
  if (op_has(o, "equ")) return op1(o, OP_NOT, apart);
  Ref both = op2(o, OP_AND, op2(o, OP_EQ, a, a), op2(o, OP_EQ, b, b));
  if (op_has(o, "num")) return both;
  if (op_has(o, "nan")) return op1(o, OP_NOT, both);
  op_reject(o, "a comparison such as .lt is missing");
}

static bool is_unsigned_test(PtxOp *o) {
  static const char *const names[] = {"lo", "ls", "hi", "hs"};
  for (int k = 0; k < 4; k++) {
    if (op_has(o, names[k])) return true;
  }
  return false;
}

// Compares operands 1 and 2, whose type is the k-th type among the modifiers.
// `half` is 1 for the upper half of a register with two elements.
static Ref compared(PtxOp *o, int k, int half) {
  PtxType t = op_type(o, k);
  DType e = o->elem[k];
  const PtxArg *x = op_arg(o, 1), *y = op_arg(o, 2);
  if (op_root(o, x) >= 0 && op_root(o, x) == op_root(o, y)) {
    return op_compare(o, false, op_offset(o, x), op_offset(o, y));
  }
  DType own = dtype_is_float(e) && t.bits > 16 && !o->pair[k]
              ? e : op_dtype(t);
  if (is_unsigned_test(o)) own = unsigned_of(t.bits);
  Ref a = op_value(o, x, own), b = op_value(o, y, own);
  if (o->pair[k]) {
    Ref n = number(o, DT_U32, 16 * half);
    a = to(o, DT_U16, op2(o, OP_SHR, a, n));
    b = to(o, DT_U16, op2(o, OP_SHR, b, n));
  }
  bool f = dtype_is_float(e);
  return op_compare(o, f, comparable(o, a, e), comparable(o, b, e));
}

// If the instruction has an operand 3, combines it with the predicate p by the
// modifier .and, .or or .xor. Otherwise returns p.
static Ref combine(PtxOp *o, Ref p) {
  if (o->i->args < 4) return p;
  Ref c = op_pred(o, op_arg(o, 3));
  if (op_has(o, "and")) return op2(o, OP_AND, p, c);
  if (op_has(o, "or")) return op2(o, OP_OR, p, c);
  if (op_has(o, "xor")) return op2(o, OP_XOR, p, c);
  op_reject(o, "a third operand needs .and, .or or .xor");
}

// ---- setp, set ----

// Writes the results p|q. q is the opposite comparison or, for a pair of
// elements, the comparison of the upper half.
void row_setp(PtxOp *o, int k) {
  (void)k;
  Ref p = compared(o, 0, 0);
  const PtxArg *d = op_arg(o, 0);
  if (d->kind != PTX_A_PAIR) {
    if (o->pair[0]) op_reject(o, "a comparison of pairs needs results p|q");
    op_set(o, d, combine(o, p));
    return;
  }
  Ref q = combine(o, o->pair[0] ? compared(o, 0, 1) : op1(o, OP_NOT, p));
  op_set(o, op_part(o, d, 0), combine(o, p));
  op_set(o, op_part(o, d, 1), q);
}

// Returns the value that `set` writes for true: all ones, or 1.0.
static Ref truth(PtxOp *o, DType t) {
  static const struct { DType t; int64_t one; } ones[] = {
    {DT_F16, 0x3c00}, {DT_BF16, 0x3f80}, {DT_F32, 0x3f800000}};
  DType raw = unsigned_of(dtype_bits(t));
  for (int k = 0; k < 3; k++) {
    if (ones[k].t == t) return number(o, raw, ones[k].one);
  }
  return number(o, raw, dtype_most(raw));
}

void row_set(PtxOp *o, int k) {
  (void)k;
  if (o->types != 2) op_reject(o, "two types are needed, .dtype.stype");
  DType t = o->elem[0];
  bool mask = o->pair[1] && (t == DT_U32 || t == DT_I32);
  if (mask) t = DT_U16;  // the result is a pair of 16-bit masks
  DType raw = unsigned_of(dtype_bits(t));
  Ref none = number(o, raw, 0);
  Ref v = op3(o, OP_SEL, combine(o, compared(o, 1, 0)), truth(o, t), none);
  if (o->pair[1]) {
    if (!o->pair[0] && !mask)
      op_reject(o, "a comparison of pairs needs a pair as result type");
    Ref hi = op3(o, OP_SEL, combine(o, compared(o, 1, 1)), truth(o, t), none);
    hi = op2(o, OP_SHL, to(o, DT_U32, hi), number(o, DT_U32, 16));
    v = op2(o, OP_OR, to(o, DT_U32, v), hi);
  }
  op_result(o, v);
}

// ---- selp, slct ----

void row_selp(PtxOp *o, int k) {
  (void)k;
  PtxType t = op_type(o, 0);
  const PtxArg *a = op_arg(o, 1), *b = op_arg(o, 2);
  Ref p = op_pred(o, op_arg(o, 3));
  bool pointer = op_root(o, op_arg(o, 0)) >= 0;
  Ref x = pointer ? op_offset(o, a) : op_value(o, a, op_dtype(t));
  Ref y = pointer ? op_offset(o, b) : op_value(o, b, op_dtype(t));
  op_result(o, op3(o, OP_SEL, p, x, y));
}

// Selects a if c is 0 or more, otherwise b. A NaN in c selects b.
void row_slct(PtxOp *o, int k) {
  (void)k;
  PtxType t = op_type(o, 0), by = op_type(o, 1);
  DType own = op_dtype(t);
  Ref a = op_operand(o, 1, own), b = op_operand(o, 2, own), p;
  if (by.kind == PTX_F) {
    Ref c = comparable(o, op_operand(o, 3, DT_F32), DT_F32);
    p = op2(o, OP_LE, ir_float(o->b->cx, o->b->fn, DT_F32, 0), c);
  } else {
    p = op2(o, OP_LE, number(o, DT_I32, 0), op_operand(o, 3, DT_I32));
  }
  op_result(o, op3(o, OP_SEL, p, a, b));
}

// ---- testp and copysign, which work on the bits ----

void row_testp(PtxOp *o, int k) {
  (void)k;
  PtxType t = op_type(o, 0);
  bool wide = t.bits == 64;
  DType u = unsigned_of(t.bits);
  int64_t inf = wide ? (int64_t)0x7ff << 52 : 0x7f800000;
  int64_t least = wide ? (int64_t)1 << 52 : 0x800000;
  Ref mag = op2(o, OP_AND, op_operand(o, 1, u),
                number(o, u, wide ? INT64_MAX : INT32_MAX));
  Ref top = number(o, u, inf), low = number(o, u, least);
  Ref zero = op2(o, OP_EQ, mag, number(o, u, 0)), p = 0;
  Ref tiny = op2(o, OP_LT, mag, low), finite = op2(o, OP_LT, mag, top);
  if (op_has(o, "finite")) p = finite;
  else if (op_has(o, "infinite")) p = op2(o, OP_EQ, mag, top);
  else if (op_has(o, "number")) p = op2(o, OP_LE, mag, top);
  else if (op_has(o, "notanumber")) p = op2(o, OP_LT, top, mag);
  else if (op_has(o, "subnormal")) {
    p = op2(o, OP_AND, tiny, op1(o, OP_NOT, zero));
  } else if (op_has(o, "normal")) {  // includes zeros
    p = op2(o, OP_OR, zero, op2(o, OP_AND, finite, op1(o, OP_NOT, tiny)));
  } else {
    op_reject(o, "a test such as .finite is missing");
  }
  op_result(o, p);
}

// Combines the sign of operand 1 with the magnitude of operand 2.
void row_copysign(PtxOp *o, int k) {
  (void)k;
  PtxType t = op_type(o, 0);
  DType u = unsigned_of(t.bits);
  Ref mag = number(o, u, t.bits == 64 ? INT64_MAX : INT32_MAX);
  Ref sign = op2(o, OP_AND, op_operand(o, 1, u), op1(o, OP_NOT, mag));
  op_result(o, op2(o, OP_OR, sign, op2(o, OP_AND, op_operand(o, 2, u), mag)));
}
// SPDX-License-Identifier: MIT
