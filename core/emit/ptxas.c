// Selects the compiler options for a kernel's text.
//
// At -O3 for sm_90, ptxas of CUDA 13.0 has a bug in loops of f64 MMAs. The
// first MMA of an iteration may read accumulators before the last MMA of the
// previous iteration has written them: it waits for the loads of its fragments,
// but not for the accumulators. On a GPU, a matrix product of 8 x 8 x 40 lost 8
// of its 40 products (spec/gpu/compiler_spec.lua). In a test with 400 random
// loops, 47 had the bug. In all 47, the first and the last MMA use the same
// accumulators. At -O2 no loop had the bug. ptxas also drops accumulators that
// are never read, so a loop with many accumulators may become a loop with one
// accumulator. -O2 costs up to a fifth of the speed, so it is used only for
// kernels with such a loop.
#include <string.h>

#include "atoms/atom.h"
#include "emit/inside.h"

#define PLAIN "--fmad=false"
#define CAREFUL PLAIN " --ptxas-options=-O2"

static bool is_f64_mma(const Ins *i) {
  return i->op == OP_MMA && atom_mma((int)i->imm)->d_type == DT_F64;
}

// Returns a pointer to a flag in `of`: the flag of the declared element of a
// register array at which element `at` of view `ref` begins.
static bool *element(const Emit *e, bool *const *of, Ref ref, int64_t at) {
  const Ins *m = ir_get(e->fn, ref);
  return of[m->imm] + at * dtype_bits((DType)m->type) /
                        dtype_bits(e->fn->mem.p[m->imm].type);
}

// Marks the register elements that operand o reads.
static void mark(const Emit *e, const Operand *o, bool *const *read) {
  if (!o->ref || !o->read || ir_get(e->fn, o->ref)->op != OP_RMEM) return;
  const Mem *mem = ir_memof(e->fn, o->ref);
  bool *from = element(e, read, o->ref, 0), *to = from + mem->count;
  int64_t at;
  if (o->kind == OPERAND_RUN) {
    for (int k = 0; k < o->n; k++) *element(e, read, o->ref, o->reg[k]) = true;
    return;
  }
  if (o->kind == OPERAND_MEM && ir_const(e->fn, o->off, &at)) {
    int64_t own = dtype_bits(ir_type(e->fn, o->ref));
    from = element(e, read, o->ref, at);
    bool *end = element(e, read, o->ref, at + (o->bits - 1) / own) + 1;
    if (end < to) to = end;
  }
  while (from < to) *from++ = true;
}

// Reports whether ptxas may drop accumulators, because nothing reads them, or
// because a condition that is always false guards their store.
static bool may_drop(const Emit *e) {
  const Fn *fn = e->fn;
  bool **read = NEW(e->cx, bool *, fn->mem.n);
  Operand o;
  for (size_t m = 0; m < fn->mem.n; m++) {
    bool own = fn->mem.p[m].space == SP_RMEM;
    size_t n = own ? (size_t)fn->mem.p[m].count : 0;
    read[m] = NEW(e->cx, bool, n + 1);
    memset(read[m], 0, n + 1);
  }
  for (Ref r = 1; r < fn->ins.n; r++) {
    const Ins *i = ir_get(fn, r);
    int64_t v;
    if (i->op == OP_ST && ir_get(fn, i->a[0])->op == OP_RMEM &&
        ir_type(fn, i->a[2]) == DT_BOOL && ir_const(fn, i->a[2], &v) && !v)
      return true;
    if (is_f64_mma(i)) continue;
    for (Operands w = operands_of(fn, i); operands_next(&w, &o);)
      mark(e, &o, read);
  }
  for (Ref r = 1; r < fn->ins.n; r++) {
    Operands w = operands_of(fn, ir_get(fn, r));
    if (!is_f64_mma(ir_get(fn, r)) || !operands_next(&w, &o)) continue;
    bool any = false;
    for (int k = 0; k < o.n; k++)
      any |= *element(e, read, o.ref, o.reg[k]);
    if (!any) return true;
  }
  return false;
}

// Reports whether, in some loop, the first and the last f64 MMA use the same
// accumulators.
static bool meets_itself(const Emit *e) {
  const Fn *fn = e->fn;
  Ref *first = NEW(e->cx, Ref, fn->ins.n), *last = NEW(e->cx, Ref, fn->ins.n);
  bool *loop = NEW(e->cx, bool, fn->ins.n);
  size_t depth = 0;
  for (Ref r = 1; r < fn->ins.n; r++) {
    const Ins *i = ir_get(fn, r);
    if (op_opens((Op)i->op)) {
      loop[depth] = op_loops((Op)i->op);
      first[depth] = last[depth] = 0;
      depth++;
    } else if (is_f64_mma(i)) {
      for (size_t k = 0; k < depth; k++) {
        if (!first[k]) first[k] = r;
        last[k] = r;
      }
    } else if (i->op == OP_END && depth--) {
      if (!loop[depth] || !first[depth]) continue;
      Operand a = operand_of(fn, ir_get(fn, first[depth]), ROLE_ACC);
      Operand b = operand_of(fn, ir_get(fn, last[depth]), ROLE_ACC);
      if (operands_same(&a, &b)) return true;
    }
  }
  return false;
}

const char *ptxas_options(const Emit *e) {
  bool f64 = false;
  for (size_t k = 0; k < e->natom; k++)
    f64 |= e->atom[k].mma && atom_mma(e->atom[k].id)->d_type == DT_F64;
  return e->sm == 90 && f64 && (meets_itself(e) || may_drop(e)) ? CAREFUL
                                                                 : PLAIN;
}
// SPDX-License-Identifier: MIT
