// atomic.c: the instructions atom and red, translated element by element.
#include "ptx/inside.h"

static AtomicKind atomic_kind(PtxOp *o) {
  for (int a = 0; a < AT_COUNT; a++) {
    if (op_has(o, atomic_row((AtomicKind)a)->name)) return (AtomicKind)a;
  }
  op_reject(o, "an operation such as .add is missing");
}

// Rejects element types for which PTX has no atomic operation `kind`.
static void atomic_type(PtxOp *o, AtomicKind kind, int n) {
  DType e = o->elem[0];
  bool number = dtype_is_float(e), small = number && dtype_bits(e) == 16;
  bool least = kind == AT_MIN || kind == AT_MAX;
  if (op_type(o, 0).bits == 128) op_reject(o, "128-bit elements");
  if (small && !op_has(o, "noftz")) op_reject(o, "16-bit floats need .noftz");
  if (number && kind != AT_ADD && !(least && small && n > 1)) {
    op_reject(o, "floats have only .add, vectors of 16-bit floats also .min "
              "and .max");
  }
  if (n > 1 && !number) op_reject(o, "vectors must hold floats");
}

// Emits the atomic operation on one element, which is `at` bytes after address
// p.
static Ref atomic_one(PtxOp *o, AtomicKind kind, Place p, int64_t at, Ref v,
                      Ref cmp, uint16_t flags) {
  const PtxBuild *b = o->b;
  Ref off = op2(o, OP_ADD, p.off, number(o, ir_type(b->fn, p.off), at));
  Ref x[4] = {p.mem, off, v, cmp};
  return operands_emit(b->cx, b->fn, (Ins){.op = OP_ATOMIC,
    .type = (uint8_t)ir_type(b->fn, v), .imm = kind, .flags = flags}, x,
    cmp ? 4 : 3, NULL, 0);
}

// Emits an atomic operation for each element of one register. In memory, the
// first element is `at` bytes after address p. Returns the previous values of
// these elements.
static Ref atomic_word(PtxOp *o, AtomicKind kind, Place p, int64_t at,
                       const PtxArg *a, uint16_t flags) {
  DType e = o->elem[0];
  if (!o->pair[0]) {
    Ref v = as(o, e, op_value(o, a, op_dtype(op_type(o, 0))));
    return atomic_one(o, kind, p, at, v, 0, flags);
  }
  Ref v = op_value(o, a, DT_U32), all = number(o, DT_U32, 0);
  for (int h = 0; h < 2; h++) {
    Ref n = number(o, DT_U32, 16 * h);
    Ref half = as(o, e, to(o, DT_U16, op2(o, OP_SHR, v, n)));
    Ref was = atomic_one(o, kind, p, at + 2 * h, half, 0, flags);
    was = to(o, DT_U32, as(o, DT_U16, was));
    all = op2(o, OP_OR, all, op2(o, OP_SHL, was, n));
  }
  return all;
}

// The parts of an atom or red instruction.
typedef struct Atomic {
  AtomicKind kind;
  int n;              // number of data registers
  // index of the address operand: 1 for atom, 0 for red, which has no result
  uint32_t first;
  uint16_t flags;
  bool read;          // whether the previous values are needed
} Atomic;

// Emits the atomic operation at p, which is in a known state space. Stores the
// previous values in `was`.
static void atomic_at(PtxOp *o, const Atomic *x, Place p, Ref was[8]) {
  const PtxArg *v = op_arg(o, x->first + 1);
  int bytes = op_type(o, 0).bits / 8;
  if (x->kind == AT_CAS) {
    DType own = op_dtype(op_type(o, 0));
    Ref cmp = op_value(o, v, own), new = op_operand(o, x->first + 2, own);
    was[0] = atomic_one(o, AT_CAS, p, 0, new, cmp, x->flags);
    return;
  }
  for (int q = 0; q < x->n; q++) {
    const PtxArg *a = x->n > 1 ? op_part(o, v, (uint32_t)q) : v;
    was[q] = atomic_word(o, x->kind, p, (int64_t)q * bytes, a, x->flags);
  }
}

static void set_all(PtxOp *o, const Atomic *x, const Ref *var, const Ref *v) {
  for (int q = 0; q < x->n; q++) {
    DType t = ir_type(o->b->fn, var[q]);
    ir_emit(o->b->cx, o->b->fn, (Ins){.op = OP_VSET,
                                      .a = {var[q], as(o, t, v[q])}});
  }
}

// Emits the atomic operation on a generic address, and sets the variables var[]
// to the previous values. Emits a branch for each state space that the address
// may be in. Considers only space[k] and the spaces after it.
static void atomic_each(PtxOp *o, const Atomic *x, const Spaces *s,
                        const Ref *var, int k) {
  static const Where space[] = {IN_CLUSTER, IN_SHARED, IN_GLOBAL};
  PtxBuild *b = o->b;
  Ref was[8], test = k == 0 ? s->cluster : s->shared;
  int64_t known = 1;
  bool certain = k == 2 || ir_const(b->fn, test, &known);
  if (certain && !known) {
    atomic_each(o, x, s, var, k + 1);
    return;
  }
  if (!certain) ir_open(b->cx, b->fn, (Ins){.op = OP_IF, .a = {test}});
  atomic_at(o, x, op_in_space(o, s, space[k]), was);
  if (x->read) set_all(o, x, var, was);
  if (certain) return;
  ir_else(b->cx, b->fn);
  atomic_each(o, x, s, var, k + 1);
  ir_close(b->cx, b->fn);
}

// Emits the atomic operation at a generic address, which is in shared or global
// memory.
static void atomic_anywhere(PtxOp *o, const Atomic *x, const Spaces *s,
                            Ref was[8]) {
  PtxBuild *b = o->b;
  DType t = unsigned_of(op_type(o, 0).bits);
  Ref var[8];
  for (int q = 0; q < x->n && x->read; q++) {
    var[q] = ir_emit(b->cx, b->fn, (Ins){.op = OP_VAR, .type = (uint8_t)t,
                                         .a = {number(o, t, 0)}});
  }
  atomic_each(o, x, s, var, 0);
  for (int q = 0; q < x->n && x->read; q++) {
    was[q] = ir_emit(b->cx, b->fn, (Ins){.op = OP_VGET, .type = (uint8_t)t,
                                         .a = {var[q]}});
  }
}

void row_atomic(PtxOp *o, int k) {
  Atomic x = {.kind = atomic_kind(o), .n = op_vector(o), .first = k ? 0 : 1};
  atomic_type(o, x.kind, x.n);
  Where w = op_where(o);
  const PtxArg *a = op_arg(o, x.first), *d = op_arg(o, 0);
  op_registers(o, op_arg(o, x.first + 1), x.n);
  if (!k && d->kind != PTX_A_SINK) op_registers(o, d, x.n);
  x.flags = op_hints(o);
  x.read = !k && d->kind != PTX_A_SINK &&
           (d->kind != PTX_A_REG || o->b->slot[d->value].read);
  Spaces s;
  Ref was[8];
  if (w == IN_LOCAL) op_reject(o, "local memory");
  if (w == ANYWHERE && op_spaces(o, a, &s)) atomic_anywhere(o, &x, &s, was);
  else atomic_at(o, &x, op_place(o, a, w), was);
  for (int q = 0; q < x.n && x.read; q++) {
    op_set(o, x.n > 1 ? op_part(o, d, (uint32_t)q) : d, was[q]);
  }
}
// SPDX-License-Identifier: MIT
