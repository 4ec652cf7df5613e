// Finds the largest coordinates of an access. The coordinates are computed for
// all threads of the first and of the last block, in the first and in the last
// iteration of all loops.
#include "lint/reach.h"

#include <string.h>

#include "ir/operands.h"
#include "lint/index_values.h"

enum { BUDGET = 1 << 20, CORNERS = 4 };

typedef struct Search {
  Ctx *cx;
  const Fn *fn;
  Reach *reach;
  uint8_t *met;      // for each instruction: whether its operands were visited
  // Four points of the execution. In the index of a point, bit 0 selects the
  // last iterations, and bit 1 the last block.
  IndexValues corner[CORNERS];
} Search;

// Records for mode `mode` the thread and block indices on which value v
// depends.
static void add_sources(Search *s, int mode, Ref v) {
  if (s->met[v]) return;
  s->met[v] = true;
  Reach *to = s->reach;
  const Ins *i = ir_get(s->fn, v);
  int64_t axis = i->imm;
  if (i->op == OP_SREG && axis >= SR_CTAID_X && axis <= SR_CTAID_Z)
    to->block[mode] |= 1u << (axis - SR_CTAID_X);
  if (i->op == OP_SREG && axis >= SR_TID_X && axis <= SR_TID_Z)
    to->thread[mode] |= 1u << (axis - SR_TID_X);
  if (i->op == OP_ATOMIC) to->atomic = v;
  // the first value of the loop counter
  if (i->op == OP_FOR) add_sources(s, mode, i->a[0]);
  if (!op_pure((Op)i->op)) return;
  Operand o;
  for (Operands w = operands_of(s->fn, i); operands_next(&w, &o);)
    if (o.ref && (o.kind == OPERAND_VALUE || o.kind == OPERAND_PRED))
      add_sources(s, mode, o.ref);
}

// Returns the largest value of v, or -1 if it is unknown.
static int64_t largest(Search *s, Ref v) {
  int64_t most = -1;
  for (int k = 0; k < CORNERS; k++) {
    const int64_t *at = index_values(&s->corner[k], v);
    if (!at) return -1;
    for (int32_t t = 0; t < s->corner[k].n; t++)
      if (at[t] > most) most = at[t];
  }
  return most;
}

// Records a coordinate of mode `mode`: value v, or the constant `plain` if v is
// 0.
static void add_coordinate(Search *s, int mode, Ref v, int64_t plain) {
  Reach *r = s->reach;
  bool unknown = mode < r->modes && r->most[mode] < 0;
  if (mode >= r->modes) r->modes = mode + 1;
  if (v) {
    memset(s->met, 0, s->fn->ins.n);
    add_sources(s, mode, v);
    plain = largest(s, v);
  }
  if (unknown || plain < 0) r->most[mode] = -1;
  else if (plain > r->most[mode]) r->most[mode] = plain;
}

// Adds the coordinates that assertions for this access check. Returns false if
// there are none.
static bool add_claims(Search *s, Ref mem, uint32_t src) {
  int mode = 0;
  bool found = false;
  for (uint32_t k = 0; k < s->fn->claim.n; k++) {
    const Claim *c = &s->fn->claim.p[k];
    if (c->mem != mem || c->src != src || c->rule) continue;
    if (mode < REACH_MODES) add_coordinate(s, mode, c->v, c->lo);
    found = true;
    mode = c->more ? mode + 1 : 0;
  }
  return found;
}

// Adds the offsets at which line `src` accesses object `mem`. Returns false if
// it does not access the object.
static bool add_offsets(Search *s, Ref mem, uint32_t src) {
  bool found = false;
  for (Ref r = 1; r < s->fn->ins.n; r++) {
    const Ins *i = ir_get(s->fn, r);
    if (i->src != src || i->op == OP_NOP || ir_is_mem(s->fn, r)) continue;
    Operand o;
    for (Operands w = operands_of(s->fn, i); operands_next(&w, &o);) {
      if (o.kind != OPERAND_MEM || o.ref != mem) continue;
      add_coordinate(s, 0, o.off, 0);
      found = true;
    }
  }
  return found;
}

// Reports whether condition r has a comparison other than = and /=.
static bool is_range(const Fn *fn, Ref r, int depth) {
  const Ins *i = ir_get(fn, r);
  if (op_class((Op)i->op) == CLASS_COMPARE)
    return i->op != OP_EQ && i->op != OP_NE;
  if (depth == 0 || !op_pure((Op)i->op)) return false;
  Operand o;
  for (Operands w = operands_of(fn, i); operands_next(&w, &o);)
    if (o.ref && (o.kind == OPERAND_VALUE || o.kind == OPERAND_PRED) &&
        is_range(fn, o.ref, depth - 1))
      return true;
  return false;
}

// Reports whether line `src` accesses object `mem`, and only where conditions
// with ranges hold.
static bool is_guarded(const Fn *fn, Ref mem, uint32_t src) {
  enum { DEPTH = 64, OPERATORS = 8 };
  bool inside[DEPTH] = {0}, found = false;
  int depth = 0;
  for (Ref r = 1; r < fn->ins.n; r++) {
    const Ins *i = ir_get(fn, r);
    if (i->op == OP_END && depth) depth--;
    if (op_opens((Op)i->op)) {
      if (depth == DEPTH - 1) return false;
      inside[depth + 1] = inside[depth] ||
        (i->op == OP_IF && is_range(fn, i->a[0], OPERATORS));
      depth++;
    }
    if (i->src != src || i->op == OP_NOP || ir_is_mem(fn, r)) continue;
    bool here = false, guarded = inside[depth];
    Operand o;
    for (Operands w = operands_of(fn, i); operands_next(&w, &o);) {
      here |= o.kind == OPERAND_MEM && o.ref == mem;
      guarded |= o.kind == OPERAND_PRED && o.ref &&
                 is_range(fn, o.ref, OPERATORS);
    }
    if (here && !guarded) return false;
    found |= here;
  }
  return found;
}

bool reach_of(Ctx *cx, const Fn *fn, const int32_t grid[3], int32_t mem,
              uint32_t src, Reach *r) {
  *r = (Reach){0};
  if (mem < 0 || !ir_threads(fn)) return false;
  Ref object = fn->mem.p[mem].ref;
  Search s = {cx, fn, r, NEW(cx, uint8_t, fn->ins.n), {{0}}};
  for (int k = 0; k < CORNERS; k++) {
    s.corner[k] = index_values_at(cx, fn, BUDGET);
    s.corner[k].last = k & 1;
    for (int axis = 0; axis < 3; axis++)
      s.corner[k].block[axis] = k & 2 ? grid[axis] - 1 : 0;
  }
  r->guarded = is_guarded(fn, object, src);
  return add_claims(&s, object, src) || add_offsets(&s, object, src);
}
// SPDX-License-Identifier: MIT
