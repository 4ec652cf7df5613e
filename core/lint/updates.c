// Instructions that update variables, registers and shared memory: sums in
// loops, running maxima.
#include "lint/updates.h"

#include "ir/operands.h"
#include "ir/rows.h"

enum { NEAR = 16 };

Writers updates_writers(Ctx *cx, const Fn *fn) {
  Writers by;
  by.last = arena_zero(cx, &cx->scratch, fn->ins.n * sizeof *by.last);
  by.before = arena_zero(cx, &cx->scratch, fn->ins.n * sizeof *by.before);
  for (Ref r = 1; r < fn->ins.n; r++) {
    Operand o;
    const Ins *i = ir_get(fn, r);
    if (i->op == OP_NOP) continue;
    for (Operands w = operands_of(fn, i); operands_next(&w, &o);) {
      if (!o.ref || !o.written || o.barrier) continue;
      by.before[r] = by.last[o.ref];
      by.last[o.ref] = r;
      break;
    }
  }
  return by;
}

bool updates_constant(const Fn *fn, Ref r, double *v) {
  const Ins *i = ir_get(fn, r);
  DType t = (DType)i->type;
  bool number = i->op == OP_CONST && (dtype_is_float(t) || dtype_is_int(t));
  if (number) *v = dtype_to_double(t, (uint64_t)i->imm);
  return number;
}

bool updates_is_zero(const Fn *fn, Ref r) {
  double v;
  return updates_constant(fn, r, &v) && v == 0;
}

Ref updates_root(const Fn *fn, Ref var) {
  for (;;) {
    const Ins *first = ir_get(fn, ir_get(fn, var)->a[0]);
    if (first->op != OP_VGET) return var;
    var = first->a[0];
  }
}

Ref updates_place(const Fn *fn, Ref r) {
  const Ins *i = ir_get(fn, r);
  return i->op == OP_VSET ? i->a[1] : r;
}

bool updates_reads_back(const Fn *fn, Ref r, const Ins *set) {
  const Ins *i = ir_get(fn, r);
  if (set->op == OP_VSET)
    return i->op == OP_VGET &&
           updates_root(fn, i->a[0]) == updates_root(fn, set->a[0]);
  return i->op == OP_LD && i->a[0] == set->a[0] && i->a[1] == set->a[1];
}

// Reports whether value r is the value that the target of instruction `set` had
// before, or a sum of that value and other terms.
static bool adds_to(const Fn *fn, Ref r, const Ins *set, int depth) {
  const Ins *i = ir_get(fn, r);
  if (depth == 0) return false;
  if (updates_reads_back(fn, r, set)) return true;
  if (i->op == OP_SEL)
    return adds_to(fn, i->a[1], set, depth - 1) &&
           adds_to(fn, i->a[2], set, depth - 1);
  if (i->op == OP_FMA) return adds_to(fn, i->a[2], set, depth - 1);
  if (i->op == OP_CVT) return adds_to(fn, i->a[0], set, depth - 1);
  return i->op == OP_ADD && (adds_to(fn, i->a[0], set, depth - 1) ||
                             adds_to(fn, i->a[1], set, depth - 1));
}

bool updates_adds(const Fn *fn, const Ins *i) {
  Ref value = operand_ref(fn, i, ROLE_VALUE);
  if (op_class((Op)i->op) == CLASS_MMA) return operands_accumulate(fn, i);
  return value && adds_to(fn, value, i, NEAR);
}
// SPDX-License-Identifier: MIT
