// Finds parts of register fragments that a kernel loads and never reads. For
// example, every step of K multiplies the same part of a fragment. Or the
// script passes one fragment to the MMA twice, and never passes another one. A
// fragment here is an array of registers that an MMA reads, or that was made
// for operand A or B. All accesses must have constant offsets.
#include "lint/unread_parts.h"

#include "ir/operands.h"

enum { FILLED = 1, READ = 2, MOST = 1 << 16 };

typedef struct Fragment {
  uint8_t *how;  // for each element of the fragment: the flags FILLED and READ
  Ref *by;         // for each element: the first instruction that fills it
  bool open;       // whether an access has an unknown index
  // whether an MMA reads the fragment, or the fragment was made for operand A
  // or B of an MMA
  bool multiplied;
} Fragment;

// Records an access to element `at` of operand o. The type of the operand may
// differ from the object's type.
static void note(const Fn *fn, Fragment *f, const Mem *m, int64_t at, Ref r,
                 const Operand *o) {
  int bits = dtype_bits(m->type);
  int64_t first = at * dtype_bits(ir_type(fn, o->ref));
  int64_t end = (first + o->bits + bits - 1) / bits;
  for (int64_t k = first / bits; k < end && k < m->count && k >= 0; k++) {
    if (o->read) f->how[k] |= READ;
    if (o->written) f->how[k] |= FILLED;
    if (o->written && !f->by[k]) f->by[k] = r;
  }
}

// Records the accesses of instruction r to fragments.
static void access(const Fn *fn, Ref r, Fragment *all) {
  const Ins *i = ir_get(fn, r);
  bool mma = i->op == OP_MMA || i->op == OP_WGMMA;
  Operand o;
  for (Operands w = operands_of(fn, i); operands_next(&w, &o);) {
    if (!o.ref || ir_get(fn, o.ref)->op != OP_RMEM) continue;
    const Mem *m = ir_memof(fn, o.ref);
    Fragment *f = &all[ir_get(fn, o.ref)->imm];
    int64_t at;
    if (!f->how) continue;
    if (o.kind == OPERAND_RUN) {
      for (int k = 0; k < o.n; k++) note(fn, f, m, o.reg[k], r, &o);
      f->multiplied |= mma && o.read && !o.written;
    } else if (o.kind == OPERAND_MEM && ir_const(fn, o.off, &at)) {
      note(fn, f, m, at, r, &o);
    } else if (i->op != OP_FILL) {
      f->open = true;
    }
  }
}

void unread_parts(Ctx *cx, const Fn *fn,
                  void (*found)(void *ud, const UnreadPart *u), void *ud) {
  Fragment *all = arena_zero(cx, &cx->scratch, (fn->mem.n + 1) * sizeof *all);
  for (size_t k = 0; k < fn->mem.n; k++) {
    const Mem *m = &fn->mem.p[k];
    if (m->space != SP_RMEM || m->count < 1 || m->count > MOST || m->ptx ||
        m->partial_ok || !m->name)
      continue;
    all[k].how = arena_zero(cx, &cx->scratch, (size_t)m->count);
    all[k].multiplied = m->operand == 'A' || m->operand == 'B';
    all[k].by = arena_zero(cx, &cx->scratch, (size_t)m->count * sizeof(Ref));
  }
  for (Ref r = 1; r < fn->ins.n; r++)
    if (ir_get(fn, r)->op != OP_NOP) access(fn, r, all);
  for (size_t k = 0; k < fn->mem.n; k++) {
    const Mem *m = &fn->mem.p[k];
    UnreadPart u = {.mem = m};
    if (!all[k].how || all[k].open || !all[k].multiplied) continue;
    for (int64_t j = 0; j < m->count; j++)
      if (all[k].how[j] == FILLED && !u.n++) u.first = j, u.at = all[k].by[j];
    if (u.n) found(ud, &u);
  }
}
// SPDX-License-Identifier: MIT
