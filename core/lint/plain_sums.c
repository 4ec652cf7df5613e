// Finds functions that store plain sums: sums of the elements of one argument,
// or sums of products of elements of two arguments. Nothing else may be
// computed from the elements, except that a constant or a scalar argument may
// scale the finished sum.
//
// A forward pass finds the origins of each value. The pass is repeated until
// nothing changes, because variables, registers and shared memory are mutable.
// A function is rejected if its sums may omit terms on purpose. This is assumed
// in these cases:
// - An address or a condition depends on data.
// - A condition compares two values that both depend on indices, such as `k <=
//   row` for a triangle.
// - The limit of a loop depends on an index.
// - An address of global memory depends on (i + k) % n or on i ^ k, as in a sum
//   over a diagonal.
#include "lint/plain_sums.h"

#include "ir/intrin.h"
#include "ir/operands.h"
#include "ir/rows.h"
#include "lint/updates.h"

// Origins of a value.
// - FIRST, SECOND: elements of the first and second input.
// - PRODUCT: products of elements of both inputs.
// - SUM: a sum of elements or products.
// - SCALED: a scaled sum.
// - OTHER: anything else that depends on elements.
// - INDEX: the index of a thread, block or loop.
// - CYCLIC: an index that wraps around.
enum { FIRST = 1, SECOND = 2, PRODUCT = 4, SUM = 8, SCALED = 16, OTHER = 32,
       INDEX = 64, CYCLIC = 128, ELEMENTS = FIRST | SECOND | PRODUCT,
       DATA = ELEMENTS | SUM | SCALED | OTHER };

typedef struct Made {
  const Fn *fn;
  PlainSums *s;
  // for each instruction: the origins of its value, variable or object
  uint8_t *of;
  bool changed, other;
  uint8_t out;   // origin of the values that are stored to the output
} Made;

static uint8_t of_argument(const Made *g, Ref mem) {
  int32_t arg = ir_memof(g->fn, mem)->arg;
  for (int k = 0; k < g->s->n; k++)
    if (g->s->in[k] == arg) return k ? SECOND : FIRST;
  return OTHER;
}

// Returns the origins of an operand, or 0 if the instruction does not read it.
static uint8_t of_operand(const Made *g, const Operand *o) {
  if (!o->ref || o->barrier) return 0;
  bool memory = o->kind == OPERAND_MEM || o->kind == OPERAND_MAP;
  bool place = memory || o->kind == OPERAND_RUN || o->kind == OPERAND_VAR;
  if (place && !o->read) return 0;
  uint8_t of = memory && ir_is_global(g->fn, o->ref) ? of_argument(g, o->ref)
                                                  : g->of[o->ref];
  bool gathers = o->kind == OPERAND_MEM && g->of[o->off] & DATA;
  return gathers ? of | OTHER : of;
}

static uint8_t of_role(const Made *g, const Ins *i, Role role) {
  Operand o = operand_of(g->fn, i, role);
  return of_operand(g, &o) & DATA;
}

static uint8_t of_product(uint8_t a, uint8_t b) {
  a &= DATA, b &= DATA;
  bool both = (a == FIRST && b == SECOND) || (a == SECOND && b == FIRST);
  return !a || !b ? 0 : both ? PRODUCT : OTHER;
}

// Returns the origins of the product or quotient of two values: one has the
// origins `of`, and the other is `by`.
static uint8_t of_scale(const Made *g, uint8_t of, Ref by) {
  const Ins *i = ir_get(g->fn, by);
  while (i->op == OP_CVT) i = ir_get(g->fn, i->a[0]);
  bool plain = i->op == OP_CONST || i->op == OP_ARG;
  return of | (plain ? SCALED : OTHER);
}

// Returns the origins of the sum of values r and q, whose origins are a and b.
// A variable that begins with a constant counts as a sum.
static uint8_t of_sum(const Made *g, uint8_t a, Ref r, uint8_t b, Ref q) {
  a &= DATA, b &= DATA;
  if (!a && !b) return 0;
  if ((a | b) & SCALED) return OTHER;
  Op other = (Op)ir_get(g->fn, a ? q : r)->op;
  bool mutable = op_class(other) == CLASS_ACCESS || other == OP_VGET ||
                 op_class(other) == CLASS_CHOICE;
  if (!mutable && !(a && b) && !updates_is_zero(g->fn, a ? q : r)) return OTHER;
  return a | b | SUM;
}

static uint8_t of_arithmetic(const Made *g, const Ins *i) {
  const uint8_t *of = g->of;
  Ref a = i->a[0], b = i->a[1], c = i->a[2];
  uint8_t x = of[a] & DATA, y = of[b] & DATA;
  if (i->op == OP_ADD) {
    // The sum of 64-bit integers may be a descriptor or an address of shared
    // memory. It keeps the origins of the elements in this memory.
    bool address = dtype_is_int((DType)i->type) &&
                   dtype_bits((DType)i->type) == 64;
    return address ? x | y : of_sum(g, x, a, y, b);
  }
  if (i->op == OP_MUL && x && y) return of_product(x, y);
  if (i->op == OP_MUL) return x ? of_scale(g, x, b) : of_scale(g, y, a);
  if (i->op == OP_DIV) return y ? OTHER : of_scale(g, x, b);
  if (i->op == OP_FMA && x && y)
    return of_sum(g, of_product(x, y), a, of[c], c);
  if (i->op == OP_FMA && updates_is_zero(g->fn, c))
    return x ? of_scale(g, x, b) : of_scale(g, y, a);
  if (i->op == OP_CVT) {
    DType from = ir_type(g->fn, a), to = (DType)i->type;
    bool wider = dtype_bits(to) >= dtype_bits(from) && !dtype_is_float(from);
    return wider || dtype_is_float(to) ? x : OTHER;
  }
  if (i->op == OP_SEL && !x) {
    uint8_t z = of[c] & DATA;
    bool plain = (y || updates_is_zero(g->fn, b)) &&
                 (z || updates_is_zero(g->fn, c));
    return plain ? y | z : OTHER;
  }
  return OTHER;
}

static uint8_t of_mma(const Made *g, const Ins *i) {
  uint8_t c = of_role(g, i, ROLE_C) | of_role(g, i, ROLE_ACC);
  uint8_t more = of_role(g, i, ROLE_META) | of_role(g, i, ROLE_SFA) |
                 of_role(g, i, ROLE_SFB);
  uint8_t ab = of_product(of_role(g, i, ROLE_A), of_role(g, i, ROLE_B));
  return more || c & SCALED ? OTHER : ab | c | SUM;
}

// Reports whether an operation only moves elements.
static bool moves(const Ins *i) {
  Op op = (Op)i->op;
  OpClass c = op_class(op);
  return c == CLASS_ACCESS || c == CLASS_SEND || op == OP_DESC ||
         op_effect(op) & (EF_VAR | EF_REGS | EF_OBJECT | EF_LATER) ||
         c == CLASS_MATRIX;
}

// Returns the origins of the operands of i, except those of addresses.
static uint8_t of_operands(const Made *g, const Ins *i) {
  uint8_t of = 0;
  Operand o;
  for (Operands w = operands_of(g->fn, i); operands_next(&w, &o);)
    of |= of_operand(g, &o);
  return of;
}

static uint8_t of_result(const Made *g, const Ins *i) {
  uint8_t of = of_operands(g, i), index = of & INDEX;
  if (!(of & DATA)) return op_loops((Op)i->op) ? index | INDEX : index;
  if (op_class((Op)i->op) == CLASS_MMA) return of_mma(g, i);
  if (moves(i)) return of & DATA;
  if (intrin_shuffles(i))
    return g->of[i->a[1]] & DATA ? OTHER : of & SCALED ? OTHER
                                         : (of & DATA) | SUM;
  return OTHER;
}

// Reports whether another instruction divides the dividend of remainder r. The
// quotient and the remainder are then coordinates of one index.
static bool is_coordinate(const Fn *fn, Ref r) {
  Ref v = ir_get(fn, r)->a[0];
  for (Ref k = 1; k < fn->ins.n; k++) {
    const Ins *i = ir_get(fn, k);
    if ((i->op == OP_DIV || i->op == OP_SHR) && i->a[0] == v) return true;
  }
  return false;
}

// Reports whether integer r is an index that wraps around: the remainder of a
// sum, difference or product, or an XOR.
static bool wraps(const Made *g, Ref r) {
  const Ins *i = ir_get(g->fn, r);
  if (!((g->of[i->a[0]] | g->of[i->a[1]]) & INDEX)) return false;
  if (i->op == OP_XOR) return true;
  OpClass of = op_class((Op)ir_get(g->fn, i->a[0])->op);
  return (i->op == OP_MOD || i->op == OP_AND) &&
         (of == CLASS_SUM || of == CLASS_PRODUCT) && !is_coordinate(g->fn, r);
}

static void add(Made *g, Ref r, uint8_t of) {
  g->changed |= (g->of[r] | of) != g->of[r];
  g->of[r] |= of;
}

static void pass_on(Made *g, Ref r) {
  const Ins *i = ir_get(g->fn, r);
  if (op_pure((Op)i->op) || op_effect((Op)i->op) & EF_FIXED) {
    uint8_t in = g->of[i->a[0]] | g->of[i->a[1]] | g->of[i->a[2]];
    if (i->op == OP_SREG) in = INDEX;
    if (!(in & DATA) && wraps(g, r)) in |= CYCLIC;
    bool data = in & DATA && op_pure((Op)i->op);
    add(g, r, data ? of_arithmetic(g, i) : in);
    return;
  }
  uint8_t of = of_result(g, i);
  if (!ir_is_mem(g->fn, r)) add(g, r, of);
  Operand o;
  for (Operands w = operands_of(g->fn, i); operands_next(&w, &o);) {
    bool target = o.kind == OPERAND_VAR || o.kind == OPERAND_RUN ||
                  ((o.kind == OPERAND_MEM || o.kind == OPERAND_MAP) &&
                   !o.barrier);
    if (!target || !o.ref || !o.written) continue;
    if (ir_is_global(g->fn, o.ref)) {
      g->out |= of;
      if (!g->s->store) g->s->store = r;
    } else {
      add(g, o.ref, of);
      if (ir_get(g->fn, o.ref)->op == OP_DSMEM)
        add(g, ir_get(g->fn, o.ref)->a[0], of);
    }
  }
}

// Reports whether instruction i suggests that sums omit terms on purpose.
static bool selects(const Made *g, const Ins *i) {
  Operand o;
  OpClass c = op_class((Op)i->op);
  if (c == CLASS_COMPARE)
    return (g->of[i->a[0]] | g->of[i->a[1]]) & DATA ||
           (g->of[i->a[0]] & INDEX && g->of[i->a[1]] & INDEX);
  if (i->op == OP_FOR && (g->of[i->a[1]] | g->of[i->a[2]]) & (INDEX | DATA))
    return true;
  if (op_pure((Op)i->op)) return false;
  if (i->op == OP_ATOMIC || op_effect((Op)i->op) & EF_VISIBLE) return true;
  for (Operands w = operands_of(g->fn, i); operands_next(&w, &o);) {
    bool place = o.kind == OPERAND_PRED || o.role == ROLE_AT;
    if (place && o.ref && g->of[o.ref] & (DATA | CYCLIC)) return true;
    if (o.kind != OPERAND_MEM || !o.off) continue;
    uint8_t meant = ir_is_global(g->fn, o.ref) ? DATA | CYCLIC : DATA;
    if (g->of[o.off] & meant) return true;
  }
  return false;
}

bool plain_sums_arguments(const Fn *fn, PlainSums *s) {
  int outs = 0;
  *s = (PlainSums){0};
  for (size_t k = 0; k < fn->arg.n; k++) {
    const Arg *a = &fn->arg.p[k];
    if (!a->pointer || (!a->read && !a->written)) continue;
    if (a->written && (a->read || outs++)) return false;
    if (a->written) s->out = (int32_t)k;
    else if (s->n == 2) return false;
    else s->in[s->n++] = (int32_t)k;
  }
  return outs == 1 && s->n > 0;
}

static void narrow(DType *least, DType t) {
  if (dtype_is_float(t) && dtype_bits(t) < dtype_bits(*least)) *least = t;
}

static void find_narrowest(const Made *g) {
  PlainSums *s = g->s;
  s->narrowest = s->rounded = DT_F64;
  for (Ref r = 1; r < g->fn->ins.n; r++) {
    const Ins *i = ir_get(g->fn, r);
    OpClass c = op_class((Op)i->op);
    if (!(g->of[r] & DATA) && c != CLASS_MMA) continue;
    if (c == CLASS_CONVERT) narrow(&s->rounded, (DType)i->type);
    if (c == CLASS_SUM || c == CLASS_FUSED)
      narrow(&s->narrowest, (DType)i->type);
    if (c != CLASS_MMA) continue;
    Operand acc = operand_of(g->fn, i, ROLE_ACC);
    if (acc.ref && ir_is_mem(g->fn, acc.ref))
      narrow(&s->narrowest, ir_memof(g->fn, acc.ref)->type);
  }
}

bool plain_sums(Ctx *cx, const Fn *fn, PlainSums *s) {
  if (ir_has_addresses(fn) || !plain_sums_arguments(fn, s)) return false;
  Made g = {.fn = fn, .s = s};
  g.of = arena_zero(cx, &cx->scratch, fn->ins.n);
  do {
    g.changed = false;
    for (Ref r = 1; r < fn->ins.n; r++)
      if (ir_get(fn, r)->op != OP_NOP) pass_on(&g, r);
  } while (g.changed);
  for (Ref r = 1; r < fn->ins.n; r++)
    if (ir_get(fn, r)->op != OP_NOP && selects(&g, ir_get(fn, r))) return false;
  find_narrowest(&g);
  s->scaled = g.out & SCALED;
  uint8_t of = g.out & DATA & ~SCALED;
  s->copies = of == FIRST && s->n == 1;
  return s->copies || of == (SUM | (s->n == 2 ? PRODUCT : FIRST));
}
// SPDX-License-Identifier: MIT
