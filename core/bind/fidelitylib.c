// Converts the fidelity of a launch (how exactly it was simulated,
// ir/fidelity.h) to a Lua table.
#include "bind/fidelitylib.h"

#include <stdlib.h>
#include <string.h>

#include "atoms/atom.h"
#include "base/soft.h"
#include "ir/fidelity.h"
#include "ir/intrin.h"

// A counter of executions: of one kind of operation on one source line.
typedef struct Entry {
  const Fn *fn;
  uint32_t src;
  // name of the operation; "" stands for all exact operations
  const char *op;
  Fidelity how;
  Agreement agree;
  Reach reach;
  Ref from;
  uint64_t count;
} Entry;

static const char *intrin_text(const Ins *i) {
  IntrinId id = intrin_id(i->imm);
  if (id != IN_SOFT && id != IN_SOFT64) return intrin_row(id)->name;
  static const char *const functions[] = {
    "ex2.approx", "lg2.approx", "rcp.approx", "sqrt.approx", "rsqrt.approx",
    "sin.approx", "cos.approx", "tanh.approx"};
  Soft s = soft_unpack(intrin_imm(i->imm));
  return s.op == SOFT_APPROX ? functions[s.mode] : soft_name((SoftOp)s.op);
}

static const char *op_text(const Ins *i) {
  if (i->op == OP_MATH) return math_name((MathFn)i->imm);
  if (i->op == OP_INTRIN || i->op == OP_ASK) return intrin_text(i);
  if (op_rows[i->op].imm == IMM_MMA) return atom_mma((int)i->imm)->name;
  return op_name((Op)i->op);
}

static int compare(const void *x, const void *y) {
  const Entry *a = x, *b = y;
  const Src *s = &a->fn->src.p[a->src], *t = &b->fn->src.p[b->src];
  if (s->file != t->file) return s->file < t->file ? -1 : 1;
  if (s->line != t->line) return s->line < t->line ? -1 : 1;
  if (a->how != b->how) return a->how < b->how ? -1 : 1;
  if (a->reach != b->reach) return a->reach < b->reach ? -1 : 1;
  return strcmp(a->op, b->op);
}

// Sorts n entries and merges entries of equal operations on one line. Returns
// the number of remaining entries.
static size_t add_up(Entry *e, size_t n) {
  size_t k = 0;
  if (n) qsort(e, n, sizeof *e, compare);
  for (size_t q = 1; q < n; q++) {
    if (compare(&e[k], &e[q]) == 0) e[k].count += e[q].count;
    else e[++k] = e[q];
  }
  return n ? k + 1 : 0;
}

static void push_line(lua_State *L, const Fn *fn, const Entry *e) {
  lua_createtable(L, 0, 7);
  face_set_place(L, fn, "file", "line", e->src);
  face_set_str(L, "agreement", agreement_name(e->agree));
  face_set_int(L, "count", (int64_t)e->count);
  if (!*e->op) return;
  face_set_str(L, "op", e->op);
  face_set_str(L, "class", fidelity_name(e->how));
  face_set_str(L, "why", fidelity_text(e->how));
}

static void push_use(lua_State *L, const Fn *fn, const Faith *of,
                     const Entry *e) {
  const Ins *from = ir_get(fn, e->from);
  lua_createtable(L, 0, 9);
  face_set_place(L, fn, "file", "line", e->src);
  face_set_str(L, "kind", reach_name(e->reach));
  face_set_str(L, "op", e->op);
  face_set_int(L, "count", (int64_t)e->count);
  face_set_place(L, fn, "from_file", "from_line", from->src);
  face_set_str(L, "from_op", op_text(from));
  face_set_str(L, "from_class", fidelity_name(of[e->from].how));
}

void fidelitylib_push(lua_State *L, Ctx *cx, const Fn *fn, int sm,
                      const uint64_t *executed) {
  const Faith *of = fidelity_find(cx, fn, sm, executed);
  Entry *line = NEW(cx, Entry, fn->ins.n), *use = NEW(cx, Entry, fn->ins.n);
  size_t n = 0, m = 0;
  uint64_t sum[AGREE_COUNT] = {0};
  for (Ref r = 1; r < fn->ins.n; r++) {
    const Ins *i = ir_get(fn, r);
    const Faith *f = &of[r];
    if (!f->count || ir_is_aside(i)) continue;
    sum[f->agree] += f->count;
    Entry e = {.fn = fn, .src = i->src, .op = op_text(i), .how = f->how,
               .agree = f->agree, .count = f->count};
    Entry u = e;
    if (e.agree == AGREE_EXACT) e.op = "", e.how = FI_EXACT;
    line[n++] = e;
    u.how = FI_EXACT, u.reach = f->reach, u.from = f->from;
    if (f->reach) use[m++] = u;
  }
  lua_createtable(L, 0, AGREE_COUNT + 3);
  for (int k = 0; k < AGREE_COUNT; k++)
    face_set_int(L, agreement_name((Agreement)k), (int64_t)sum[k]);
  face_set_int(L, "sm", sm);
  n = add_up(line, n);
  m = add_up(use, m);
  lua_createtable(L, (int)n, 0);
  for (size_t k = 0; k < n; k++) {
    push_line(L, fn, &line[k]);
    lua_rawseti(L, -2, (lua_Integer)k + 1);
  }
  lua_setfield(L, -2, "lines");
  lua_createtable(L, (int)m, 0);
  for (size_t k = 0; k < m; k++) {
    push_use(L, fn, of, &use[k]);
    lua_rawseti(L, -2, (lua_Integer)k + 1);
  }
  lua_setfield(L, -2, "reached");
}
// SPDX-License-Identifier: MIT
