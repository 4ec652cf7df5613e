// Finds loops in which only the last iteration affects the result, although
// each iteration loads other elements: `sum = x[i]` instead of `sum = sum +
// x[i]`, a sum that the loop resets, or repeated stores to the same element.
//
// An iteration affects the result if it passes data to the next iteration, or
// has an effect that the next iteration does not overwrite. A variable, a
// register or a shared tensor passes data if the loop body reads it before it
// writes it. It also passes data if the body writes it only under a condition
// that differs between iterations. Effects are stores to addresses that differ
// between iterations, atomics and printed text. Operations on mbarriers and
// named barriers also count, because other warps may then read what the
// iteration stored.
#include "lint/lost_iterations.h"

#include "ir/operands.h"
#include "ir/rows.h"

enum { DATA = 1, VARIES = 2, MOST = 1 << 16, DEPTH = 64 };

// The analysis of a loop, whose instructions are `first` to `end`.
typedef struct Loop {
  const Fn *fn;
  Ref first, end;
  // for each value, variable and object: DATA if it is computed from loads in
  // the loop; VARIES if it differs between iterations
  uint8_t *of;
  // for each instruction: whether it is an operand of an instruction in the
  // loop
  bool *used;
  // for each variable and object: whether an instruction after the loop reads
  // it
  bool *later;
  // Targets that every iteration writes. set: for each instruction, whether it
  // declares a variable or shared tensor that is written. element: for each
  // register object and element, whether the register is written.
  bool *set;
  uint8_t **element;
  bool changed;
} Loop;

static bool is_space(const Fn *fn, Ref r, Space s) {
  return ir_is_mem(fn, r) && ir_memof(fn, r)->space == s;
}

// Returns r if r is a variable. Otherwise returns the instruction that declares
// object r, of which r may be a view.
static Ref name_of(const Fn *fn, Ref r) {
  return ir_is_mem(fn, r) ? ir_memof(fn, r)->ref : r;
}

// Reports whether an operand is a variable, or is in registers or shared
// memory.
static bool is_own(const Fn *fn, const Operand *o) {
  if (o->kind == OPERAND_VAR) return true;
  return o->ref && ir_is_mem(fn, o->ref) && !o->barrier &&
         (is_space(fn, o->ref, SP_RMEM) || is_space(fn, o->ref, SP_SMEM));
}

// ---- origins of values ----

static void add(Loop *g, Ref r, uint8_t of) {
  g->changed |= (g->of[r] | of) != g->of[r];
  g->of[r] |= of;
}

static void pass_on(Loop *g, Ref r) {
  const Fn *fn = g->fn;
  const Ins *i = ir_get(fn, r);
  uint8_t of = 0;
  Operand o;
  for (Operands w = operands_of(fn, i); operands_next(&w, &o);) {
    if (!o.ref) continue;
    g->used[o.ref] = true;
    if (o.kind == OPERAND_MEM) {
      g->used[o.off] = true;
      of |= g->of[o.off] & VARIES;
    }
    if (operand_is_global(fn, &o)) of |= o.read ? DATA : 0;
    else if (!is_own(fn, &o) || o.read) of |= g->of[name_of(fn, o.ref)];
  }
  if (r == g->first) of |= VARIES;
  if (!ir_is_mem(fn, r) && i->op != OP_VAR) add(g, r, of);
  for (Operands w = operands_of(fn, i); operands_next(&w, &o);)
    if (o.written && is_own(fn, &o)) add(g, name_of(fn, o.ref), of | VARIES);
}

// ---- data for the next iteration ----

// For a write: records that operand o is written, if each iteration executes
// the write (`always`); returns false. For a read: reports whether the value of
// o comes from the preceding iteration.
static bool carries(Loop *g, const Operand *o, bool write, bool always) {
  const Fn *fn = g->fn;
  Ref name = name_of(fn, o->ref);
  if (name > g->first && name < g->end) return false;
  if (!is_space(fn, o->ref, SP_RMEM)) {
    if (!write) return !g->set[name] && g->of[name] & DATA;
    g->set[name] |= always;
    return false;
  }
  uint8_t *element = g->element[ir_get(fn, o->ref)->imm];
  int runs = o->kind == OPERAND_RUN ? o->n : 1;
  for (int k = 0; k < runs; k++) {
    int64_t from, to;
    if (!element || !operand_range(fn, o, k, &from, &to))
      return g->of[name] & DATA;
    for (; from < to; from++) {
      if (!write && !element[from] && g->of[name] & DATA) return true;
      if (write && always) element[from] = 1;
    }
  }
  return false;
}

// Reports whether another shared tensor overlaps shared tensor r.
static bool overlaps(const Fn *fn, Ref r) {
  const Mem *m = ir_memof(fn, r);
  for (size_t k = 0; k < fn->mem.n; k++) {
    const Mem *o = &fn->mem.p[k];
    if (o != m && o->space == SP_SMEM && ir_overlaps(o, m)) return true;
  }
  return false;
}

// Reports whether, because of instruction r, every iteration affects the
// result. `always` states whether each iteration executes r.
static bool counts(Loop *g, Ref r, bool always) {
  const Fn *fn = g->fn;
  const Ins *i = ir_get(fn, r);
  bool loads = i->op == OP_LD || i->op == OP_VGET;
  Operand o;
  if (i->op == OP_BARARRIVE || (i->op == OP_BAR && i->imm)) return true;
  for (Operands w = operands_of(fn, i); operands_next(&w, &o);) {
    if (!o.ref) continue;
    if (is_space(fn, o.ref, SP_DSMEM)) return true;
    if (operand_is_global(fn, &o)) {
      const Mem *m = ir_memof(fn, o.ref);
      if (m->arg == NO_ARG || (o.read && fn->arg.p[m->arg].written))
        return true;
      if (o.written && (!always || g->of[o.off] & VARIES)) return true;
    }
    if (!is_own(fn, &o)) continue;
    bool shared = is_space(fn, o.ref, SP_SMEM);
    if (o.read && (!loads || g->used[r]) && carries(g, &o, false, always))
      return true;
    if (!o.written) continue;
    if (shared && (overlaps(fn, o.ref) || (g->of[o.off] & VARIES)))
      return true;
  }
  for (Operands w = operands_of(fn, i); operands_next(&w, &o);)
    if (o.written && is_own(fn, &o) && carries(g, &o, true, always))
      return true;
  return false;
}

// ---- loops ----

// Reports whether the loop may have several iterations.
static bool repeats(const Fn *fn, Ref r) {
  const Ins *i = ir_get(fn, r);
  int64_t v[3];
  for (int k = 0; k < 3; k++)
    if (!ir_const(fn, i->a[k], &v[k])) return true;
  return v[2] > 0 ? v[1] - v[0] > v[2] : v[0] - v[1] > -v[2];
}

// Marks the variables and objects that instructions after the loop read.
static void find_later(Loop *g) {
  const Fn *fn = g->fn;
  Operand o;
  for (Ref r = g->end; r < fn->ins.n; r++) {
    const Ins *i = ir_get(fn, r);
    if (i->op == OP_NOP) continue;
    for (Operands w = operands_of(fn, i); operands_next(&w, &o);)
      if (o.read && is_own(fn, &o)) g->later[name_of(fn, o.ref)] = true;
  }
}

// Reports whether instruction r of the loop writes to global memory, or writes
// something that an instruction after the loop reads.
static bool matters(const Loop *g, Ref r) {
  Operand o;
  for (Operands w = operands_of(g->fn, ir_get(g->fn, r));
       operands_next(&w, &o);) {
    if (!o.written) continue;
    if (operand_is_global(g->fn, &o)) return true;
    if (is_own(g->fn, &o) && g->later[name_of(g->fn, o.ref)]) return true;
  }
  return false;
}

// Returns the instruction that overwrites data of the preceding iteration, or 0
// if every iteration affects the result.
static Ref overwrites(Loop *g) {
  const Fn *fn = g->fn;
  bool varies[DEPTH] = {false}, loads = false;
  int depth = 0;
  Ref found = 0;
  for (Ref r = g->first + 1; r < g->end; r++) {
    const Ins *i = ir_get(fn, r);
    if (i->op == OP_NOP) continue;
    if (counts(g, r, !varies[depth])) return 0;
    if (i->op == OP_END) depth--;
    if (op_opens((Op)i->op)) {
      if (depth + 1 == DEPTH) return 0;
      bool open = i->op == OP_IF && g->of[i->a[0]] & (VARIES | DATA);
      varies[depth + 1] = varies[depth] || open;
      depth++;
    }
    Operand o;
    bool data = false;
    for (Operands w = operands_of(fn, i); operands_next(&w, &o);) {
      if (!o.ref) continue;
      if (operand_is_global(fn, &o) && o.read)
        loads |= (g->of[o.off] & VARIES) != 0, data = true;
      else if (!is_own(fn, &o) || o.read)
        data |= (g->of[name_of(fn, o.ref)] & DATA) != 0;
    }
    if (data && matters(g, r)) found = r;
  }
  return loads ? found : 0;
}

// Reports whether the loop loads from global memory and contains no
// instruction, such as an atomic, by which every iteration affects the result.
static bool is_open(const Fn *fn, Ref first, Ref end) {
  bool loads = false;
  Operand o;
  for (Ref r = first + 1; r < end; r++) {
    const Ins *i = ir_get(fn, r);
    if (i->op == OP_NOP) continue;
    if (op_effect((Op)i->op) & (EF_VISIBLE | EF_LEAVES) || i->op == OP_ATOMIC)
      return false;
    // At a named barrier, warps outside of the loop may read data that the loop
    // writes.
    if (op_rows[i->op].imm == IMM_BARRIER && i->imm) return false;
    for (Operands w = operands_of(fn, i); operands_next(&w, &o);) {
      if (o.ref && (o.barrier || o.kind == OPERAND_MAP)) return false;
      loads |= operand_is_global(fn, &o) && o.read;
    }
  }
  return loads;
}

static Ref lost_in(Ctx *cx, const Fn *fn, Ref first) {
  Loop g = {.fn = fn, .first = first, .end = ir_region_end(fn, first)};
  Arena *a = &cx->scratch;
  size_t n = fn->ins.n;
  if (!is_open(fn, first, g.end)) return 0;
  g.of = arena_zero(cx, a, n);
  g.used = arena_zero(cx, a, n * sizeof *g.used);
  g.later = arena_zero(cx, a, n * sizeof *g.later);
  g.set = arena_zero(cx, a, n * sizeof *g.set);
  g.element = arena_zero(cx, a, (fn->mem.n + 1) * sizeof *g.element);
  for (size_t k = 0; k < fn->mem.n; k++) {
    const Mem *m = &fn->mem.p[k];
    if (m->space == SP_RMEM && m->count > 0 && m->count <= MOST)
      g.element[k] = arena_zero(cx, a, (size_t)m->count);
  }
  do {
    g.changed = false;
    for (Ref r = first; r < g.end; r++)
      if (ir_get(fn, r)->op != OP_NOP) pass_on(&g, r);
  } while (g.changed);
  find_later(&g);
  return overwrites(&g);
}

Ref lost_iterations(Ctx *cx, const Fn *fn, Ref after) {
  for (Ref r = 1; r < fn->ins.n; r++) {
    if (ir_get(fn, r)->op != OP_FOR || !repeats(fn, r)) continue;
    Ref found = lost_in(cx, fn, r);
    if (found > after) return found;
    if (found) r = ir_region_end(fn, r);
  }
  return 0;
}
// SPDX-License-Identifier: MIT
