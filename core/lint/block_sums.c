// Finds two kinds of sums of loaded elements: sums for which the block's index
// only selects the elements, and sums that atomics add to arguments. A forward
// pass computes which inputs each value depends on. The pass is repeated until
// nothing changes, because variables and registers are mutable.
//
// A loaded value has the input DATA, even if its address depends on the block.
// If a branch contains loads, its condition is ignored even if it depends on
// the block, because it only determines which elements are loaded.
#include "lint/block_sums.h"

#include "ir/intrin.h"
#include "ir/operands.h"
#include "ir/rows.h"

// Inputs of a value.
// - BLOCK: the index of the block, or unknown values.
// - DATA: elements of global memory.
// - SUM: a sum of several products, elements or lanes.
enum { BLOCK = 1, DATA = 2, SUM = 4, DEPTH = 256, TERMS = 64 };

typedef struct Made {
  const Fn *fn;
  uint8_t *of;  // the inputs of each value and of the elements of each object
  // for the first instruction of each region: whether the region loads data
  bool *loads;
  bool changed;
} Made;

static bool reads_global(const Fn *fn, const Ins *i) {
  Operand o;
  for (Operands w = operands_of(fn, i); operands_next(&w, &o);)
    if (o.ref && o.read && (o.kind == OPERAND_MEM || o.kind == OPERAND_MAP) &&
        ir_is_global(fn, o.ref))
      return true;
  return false;
}

// Reports whether the analysis must treat the result of i as unknown.
static bool is_unknown(const Ins *i) {
  Op op = (Op)i->op;
  bool place = operand_has(op, ROLE_TMAP) || operand_has(op, ROLE_ADDRESS) ||
               (operand_has(op, ROLE_OBJECT) && op != OP_DESC);
  bool clock = op == OP_ASK && intrin_is_clock(intrin_id(i->imm));
  return place || clock || op_effect(op) & EF_VISIBLE || op == OP_ATOMIC ||
         op == OP_MAPWORD;
}

static uint8_t of_operand(const Made *g, const Operand *o) {
  OperandKind k = (OperandKind)o->kind;
  if (k == OPERAND_MEM && o->barrier) return 0;
  if (k == OPERAND_MEM || k == OPERAND_MAP) {
    if (!o->read) return 0;
    uint8_t at = k == OPERAND_MEM ? g->of[o->off] : 0;
    if (!ir_is_global(g->fn, o->ref)) return g->of[o->ref] | (at & BLOCK);
    return at & DATA ? DATA | BLOCK : DATA;
  }
  if ((k == OPERAND_VAR || k == OPERAND_RUN) && !o->read) return 0;
  return g->of[o->ref];
}

// Reports whether value r is a sum with a term that is variable `to`, or an
// element of object `to`. *n is the number of values that may still be visited.
static bool adds_to(const Fn *fn, Ref r, Ref to, int *n) {
  const Ins *i = ir_get(fn, r);
  if ((*n)-- <= 0) return false;
  if (i->op == OP_VGET || i->op == OP_LD) return i->a[0] == to;
  if (i->op == OP_FMA) return adds_to(fn, i->a[2], to, n);
  if (i->op == OP_CVT) return adds_to(fn, i->a[0], to, n);
  return i->op == OP_ADD &&
         (adds_to(fn, i->a[0], to, n) || adds_to(fn, i->a[1], to, n));
}

// Reports whether i computes a sum: i is an MMA, a shuffle or a redux.add, or i
// adds to a variable or to an element of an object outside global memory.
static bool is_sum(const Fn *fn, const Ins *i) {
  int n = TERMS;
  if (op_class((Op)i->op) == CLASS_MMA || intrin_shuffles(i)) return true;
  if (i->op == OP_ASK && intrin_id(i->imm) == IN_REDADD) return true;
  if (i->op == OP_VSET) return adds_to(fn, i->a[1], i->a[0], &n);
  return i->op == OP_ST && !ir_is_global(fn, i->a[0]) &&
         adds_to(fn, i->a[2], i->a[0], &n);
}

static uint8_t of_result(const Made *g, const Ins *i) {
  Operand o;
  uint8_t of = is_sum(g->fn, i) ? SUM : 0;
  if (i->op == OP_SREG) return sreg_is_block((SReg)i->imm) ? BLOCK : 0;
  if (is_unknown(i)) return BLOCK;
  // the coordinates and the predicate of a load are not inputs of the loaded
  // value
  bool loads = reads_global(g->fn, i);
  for (Operands w = operands_of(g->fn, i); operands_next(&w, &o);) {
    bool memory = o.kind == OPERAND_MEM || o.kind == OPERAND_MAP;
    if (o.ref && (memory || !loads)) of |= of_operand(g, &o);
  }
  return of;
}

static void add(Made *g, Ref r, uint8_t of) {
  g->changed |= (g->of[r] | of) != g->of[r];
  g->of[r] |= of;
}

static void pass_on(Made *g, Ref r, uint8_t control) {
  const Ins *i = ir_get(g->fn, r);
  uint8_t of = of_result(g, i);
  if (!ir_is_mem(g->fn, r)) add(g, r, of);
  Operand o;
  for (Operands w = operands_of(g->fn, i); operands_next(&w, &o);) {
    bool target = o.kind == OPERAND_VAR || o.kind == OPERAND_RUN ||
                  (o.kind == OPERAND_MEM && !o.barrier);
    if (!target || !o.ref || !o.written || ir_is_global(g->fn, o.ref)) continue;
    add(g, o.ref, of | control);
    if (ir_get(g->fn, o.ref)->op == OP_DSMEM)
      add(g, ir_get(g->fn, o.ref)->a[0], of | control);
  }
}

// Calls each(ud, r, control) for each instruction. control is BLOCK if a branch
// around the instruction depends on the index of the block, else 0.
static void walk(Made *g, void (*each)(void *ud, Ref r, uint8_t control),
                 void *ud) {
  uint8_t control[DEPTH + 1] = {0};
  int depth = 0, deep = 0;
  for (Ref r = 1; r < g->fn->ins.n; r++) {
    const Ins *i = ir_get(g->fn, r);
    if (i->op == OP_NOP) continue;
    each(ud, r, control[depth]);
    if (op_opens((Op)i->op)) {
      if (depth == DEPTH || deep) { deep++; continue; }
      uint8_t on = g->loads[r] ? 0 : g->of[r] & BLOCK;
      control[depth + 1] = control[depth] | on;
      depth++;
    } else if (i->op == OP_END) {
      if (deep) deep--;
      else if (depth) depth--;
    }
  }
}

static void pass_each(void *ud, Ref r, uint8_t control) {
  pass_on(ud, r, control);
}

static void find_loads(Made *g) {
  Ref open[DEPTH];
  int depth = 0, deep = 0;
  for (Ref r = 1; r < g->fn->ins.n; r++) {
    const Ins *i = ir_get(g->fn, r);
    if (op_opens((Op)i->op)) {
      if (depth == DEPTH || deep) deep++;
      else open[depth++] = r;
    } else if (i->op == OP_END) {
      if (deep) deep--;
      else if (depth) depth--;
    } else if (reads_global(g->fn, i)) {
      for (int k = 0; k < depth; k++) g->loads[open[k]] = true;
    }
  }
}

// Reports whether i stores a sum to an address that depends on the block.
static bool stores_sum(const Made *g, const Ins *i) {
  uint8_t value = 0, at = 0;
  bool out = false;
  Operand o;
  for (Operands w = operands_of(g->fn, i); operands_next(&w, &o);) {
    bool memory = o.kind == OPERAND_MEM || o.kind == OPERAND_MAP;
    if (!o.ref || o.barrier) continue;
    if (memory && o.written && ir_is_global(g->fn, o.ref)) {
      out = true;
      if (o.kind == OPERAND_MEM) at |= g->of[o.off];
    } else if (o.kind == OPERAND_VALUE && o.role == ROLE_AT) {
      at |= g->of[o.ref];
    } else if (o.kind != OPERAND_PRED) {
      value |= of_operand(g, &o);
    }
  }
  return out && at & BLOCK && value == (SUM | DATA);
}

static Made analyse(Ctx *cx, const Fn *fn) {
  Made g = {.fn = fn};
  g.of = arena_zero(cx, &cx->scratch, fn->ins.n);
  g.loads = arena_zero(cx, &cx->scratch, fn->ins.n * sizeof *g.loads);
  find_loads(&g);
  do {
    g.changed = false;
    walk(&g, pass_each, &g);
  } while (g.changed);
  return g;
}

Ref block_sums(Ctx *cx, const Fn *fn) {
  if (ir_has_addresses(fn)) return 0;
  Made g = analyse(cx, fn);
  for (Ref r = 1; r < fn->ins.n; r++)
    if (ir_get(fn, r)->op != OP_NOP && stores_sum(&g, ir_get(fn, r))) return r;
  return 0;
}

// Reports whether i is an atomic addition of loaded elements to an argument.
static bool adds_data(const Made *g, const Ins *i) {
  if (i->op != OP_ATOMIC || i->imm != AT_ADD) return false;
  Operand o = operand_of(g->fn, i, ROLE_DST);
  return ir_memof(g->fn, o.ref)->arg != NO_ARG && ir_is_global(g->fn, o.ref) &&
         g->of[operand_ref(g->fn, i, ROLE_VALUE)] & DATA;
}

void block_sums_added(Ctx *cx, const Fn *fn,
                      void (*found)(void *ud, int32_t arg), void *ud) {
  bool any = false;
  for (Ref r = 1; r < fn->ins.n && !any; r++)
    any = ir_get(fn, r)->op == OP_ATOMIC;
  if (!any || ir_has_addresses(fn)) return;
  Made g = analyse(cx, fn);
  bool *used = arena_zero(cx, &cx->scratch, fn->ins.n * sizeof *used);
  bool *added = arena_zero(cx, &cx->scratch, fn->arg.n + 1);
  for (Ref r = 1; r < fn->ins.n; r++) {
    Operand o;
    const Ins *i = ir_get(fn, r);
    if (i->op == OP_NOP) continue;
    for (Operands w = operands_of(fn, i); operands_next(&w, &o);)
      used[o.ref] = used[o.kind == OPERAND_MEM ? o.off : 0] = true;
  }
  for (Ref r = 1; r < fn->ins.n; r++) {
    const Ins *i = ir_get(fn, r);
    if (!adds_data(&g, i) || used[r]) continue;
    int32_t arg = ir_memof(fn, operand_of(fn, i, ROLE_DST).ref)->arg;
    if (!added[arg]) found(ud, arg);
    added[arg] = true;
  }
}
// SPDX-License-Identifier: MIT
