// Finds loops whose iterations several blocks repeat. Such a loop begins at an
// index that grows with the index of the block, but its step does not contain
// the number of blocks as a factor.
//
// A loop is reported only if nothing but its counter depends on the block. Two
// blocks then compute the same results in iterations with the same counter. A
// loop over a triangle, in which block b reads row b from the diagonal on, is
// therefore not reported. The loop must store to global memory, or its results
// must be stored later to elements that all blocks share. If each block stores
// the results to its own elements, the loop is reported only if it begins at
// the index of the thread in the grid.
#include "lint/block_steps.h"

#include "ir/operands.h"
#include "ir/rows.h"
#include "lint/index_values.h"

enum { DEPTH = 64, BUDGET = 1 << 16 };

// ---- dependence on the block ----

// Reports whether an operand of instruction r depends on the index of the
// block.
static bool any_depends(const Fn *fn, Ref r, const bool *on) {
  Operand o;
  for (Operands w = operands_of(fn, ir_get(fn, r)); operands_next(&w, &o);) {
    if (!o.ref) continue;
    if (o.kind == OPERAND_MEM && on[o.off]) return true;
    if (operand_is_global(fn, &o)) {
      int32_t arg = ir_memof(fn, o.ref)->arg;
      if (o.read && (arg == NO_ARG || fn->arg.p[arg].written)) return true;
    } else if ((o.kind == OPERAND_VALUE || o.read) && on[o.ref]) {
      return true;
    } else if ((o.kind == OPERAND_PRED || o.kind == OPERAND_LANES ||
                o.kind == OPERAND_OBJECT) && on[o.ref]) {
      return true;
    }
  }
  return false;
}

// For an instruction r that depends on the block: marks its result, and the
// variables and memory objects that it writes. Returns true if a mark was
// added.
static bool mark(const Fn *fn, Ref r, bool *on) {
  Operand o;
  bool changed = !on[r];
  on[r] = true;
  for (Operands w = operands_of(fn, ir_get(fn, r)); operands_next(&w, &o);) {
    if (!o.ref || !o.written || operand_is_global(fn, &o)) continue;
    changed |= !on[o.ref];
    on[o.ref] = true;
  }
  return changed;
}

// Marks the values, variables and memory objects that depend on the block,
// unless they depend on it only through the counter of `loop`.
static void find_dependent(const Fn *fn, Ref loop, bool *on) {
  bool changed = true;
  while (changed) {
    bool control[DEPTH] = {false};
    int depth = 0;
    changed = false;
    for (Ref r = 1; r < fn->ins.n; r++) {
      const Ins *i = ir_get(fn, r);
      if (i->op == OP_NOP || ir_is_mem(fn, r)) continue;
      bool is = i->op == OP_SREG ? sreg_is_block((SReg)i->imm)
                                 : r != loop && any_depends(fn, r, on);
      if (i->op == OP_END) depth--;
      if (!op_pure((Op)i->op) && i->op != OP_VAR) is |= control[depth];
      if (op_opens((Op)i->op)) control[++depth] = is;
      if (is && r != loop) changed |= mark(fn, r, on);
    }
  }
}

// Returns the maximum nesting depth of the regions.
static int depth_of(const Fn *fn) {
  int depth = 0, most = 0;
  for (Ref r = 1; r < fn->ins.n; r++) {
    Op op = (Op)ir_get(fn, r)->op;
    if (op_opens(op) && ++depth > most) most = depth;
    if (op == OP_END) depth--;
  }
  return most;
}

// ---- effects ----

// Reports whether instruction r writes global memory. Sets *own if the indices
// of the written elements depend on the block.
static bool stores(const Fn *fn, Ref r, const bool *on, bool *own) {
  bool found = false;
  Operand o;
  for (Operands w = operands_of(fn, ir_get(fn, r)); operands_next(&w, &o);) {
    if (!operand_is_global(fn, &o) || !o.written) continue;
    found = true;
    *own = o.kind == OPERAND_MAP || on[o.off];
  }
  return found;
}

// Reports whether the loop's results are stored to elements of global memory
// that several blocks share. With `each`, any elements of global memory count.
static bool matters(const Fn *fn, Ref loop, Ref end, const bool *on,
                    bool each) {
  bool own, found = false;
  for (Ref r = loop + 1; r < end; r++) {
    if (ir_get(fn, r)->op == OP_NOP) continue;
    if (any_depends(fn, r, on)) return false;
    found |= stores(fn, r, on, &own);
  }
  for (Ref r = end; r < fn->ins.n && !found; r++) {
    if (ir_get(fn, r)->op == OP_NOP || !stores(fn, r, on, &own)) continue;
    found = ir_get(fn, r)->op == OP_ATOMIC ? !own : each;
  }
  return found;
}

// ---- loops ----

// Returns the difference between the counter's first values in two adjacent
// blocks. The difference must be the same in all threads and below the loop's
// limit; otherwise returns 0. Sets *flat if the first value is the index of the
// thread in the grid.
static int64_t lead_of(IndexValues *v, Ref loop, int64_t step, bool *flat) {
  const Ins *i = ir_get(v->fn, loop);
  int64_t lead = 0, limit;
  int64_t *was = NEW(v->cx, int64_t, (size_t)v->n);
  for (int d = 0; d < 3 && !lead; d++) {
    for (int b = 0; b < 2; b++) {
      index_values_forget(v);
      for (int k = 0; k < 3; k++) v->block[k] = b && k == d;
      const int64_t *first = index_values(v, i->a[0]);
      if (!first) return 0;
      for (int32_t t = 0; !b && t < v->n; t++) was[t] = first[t];
      for (int32_t t = 0; b && t < v->n; t++) {
        if (first[t] - was[t] != first[0] - was[0]) return 0;
        lead = first[0] - was[0];
      }
    }
  }
  *flat = lead == v->n;
  for (int32_t t = 0; t < v->n; t++) *flat &= was[t] == t;
  bool reached = !ir_const(v->fn, i->a[1], &limit) ||
                 (step > 0 ? was[0] + lead < limit : was[0] + lead > limit);
  return reached ? lead : 0;
}

void block_steps(Ctx *cx, const Fn *fn,
                 void (*found)(void *ud, const BlockStep *s), void *ud) {
  if (!ir_threads(fn) || ir_has_addresses(fn) || depth_of(fn) >= DEPTH) return;
  IndexValues v = index_values_at(cx, fn, BUDGET);
  for (Ref r = 1; r < fn->ins.n; r++) {
    const Ins *i = ir_get(fn, r);
    int64_t step = 0;
    bool flat = false;
    if (i->op != OP_FOR || !ir_const(fn, i->a[2], &step) || !step) continue;
    if (ir_get(fn, i->a[0])->op == OP_CONST) continue;
    int64_t lead = lead_of(&v, r, step, &flat);
    if (!lead || lead % step || lead / step < 1) continue;
    bool *on = arena_zero(cx, &cx->scratch, fn->ins.n * sizeof *on);
    find_dependent(fn, r, on);
    if (!on[i->a[1]] && matters(fn, r, ir_region_end(fn, r), on, flat))
      found(ud, &(BlockStep){.loop = r, .step = step, .first = lead});
  }
}
// SPDX-License-Identifier: MIT
