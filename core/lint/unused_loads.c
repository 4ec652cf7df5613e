// Finds script lines that load many elements from global memory and use only
// the last of them, such as an unrolled loop that computes `sum = x[i]` instead
// of `sum = sum + x[i]`. Skips lines without any used load, because the script
// may be unfinished. The addresses of the loads must differ by constants, as in
// an unrolled loop.
#include "lint/unused_loads.h"

#include "ir/operands.h"
#include "ir/rows.h"

// Returns the value to which offset r adds a constant, or r if it adds none.
// Returns 0 if r is constant.
static Ref base_of(const Fn *fn, Ref r) {
  const Ins *i = ir_get(fn, r);
  if (i->op == OP_ADD && ir_get(fn, i->a[1])->op == OP_CONST) return i->a[0];
  if (i->op == OP_ADD && ir_get(fn, i->a[0])->op == OP_CONST) return i->a[1];
  return i->op == OP_CONST ? 0 : r;
}

void unused_loads(Ctx *cx, const Fn *fn,
                  void (*found)(void *ud, const UnusedLoads *u), void *ud) {
  bool *used = arena_zero(cx, &cx->scratch, fn->ins.n * sizeof *used);
  UnusedLoads *line = arena_zero(cx, &cx->scratch,
                                 (fn->src.n + 1) * sizeof *line);
  Operand o;
  for (Ref r = (Ref)fn->ins.n - 1; r > 0; r--) {
    const Ins *i = ir_get(fn, r);
    // an instruction whose value is unused does not use its operands
    if (i->op == OP_NOP || (op_pure((Op)i->op) && !used[r])) continue;
    for (Operands w = operands_of(fn, i); operands_next(&w, &o);) {
      used[o.ref] = true;
      if (o.kind == OPERAND_MEM) used[o.off] = true;
    }
  }
  for (Ref r = 1; r < fn->ins.n; r++) {
    const Ins *i = ir_get(fn, r);
    if (i->op != OP_LD || ir_memof(fn, i->a[0])->space != SP_GMEM) continue;
    UnusedLoads *u = &line[i->src];
    Ref base = base_of(fn, i->a[1]);
    if (!u->count++) u->base = base;
    if (u->base != base || (!used[r] && u->n + 1 < u->count)) u->mixed = true;
    if (!used[r] && !u->n++) u->at = r;
  }
  // Each unrolled step has equally many loads, and only those of the last step
  // are used. The number of unused loads is therefore a multiple of the number
  // of used ones.
  for (size_t k = 1; k < fn->src.n; k++)
    if (!line[k].mixed && line[k].n > 1 && line[k].n < line[k].count &&
        line[k].n % (line[k].count - line[k].n) == 0)
      found(ud, &line[k]);
}
// SPDX-License-Identifier: MIT
