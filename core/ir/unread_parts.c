// Parts of shared tensors that a kernel fills and never reads: a loop over a
// tile that ends one column early, or fragments of the wrong part. The offsets
// of all accesses to the tensor must depend only on constants and on the
// thread's index. They are evaluated for every thread of the block. Conditions
// that depend on anything else are taken as true and as false.
//
// A vector counts as read if one of its elements is read, because vectors may
// fetch more than a kernel needs. Unread elements that are contiguous are no
// part: a scan over warps does not read the last sum, and a buffer may be
// larger than its use. Threads whose fills nothing reads may
// keep their values in registers. Therefore a tensor is not looked at if they
// are a whole warp or threads of consecutive numbers.
#include "ir/unread_parts.h"

#include "ir/eval.h"
#include "ir/operands.h"
#include "ir/thread_value.h"

enum { DEPTH = 64, WARP = 32, LEAST = 16, FILLED = 1, READ = 2,
       MOST = 1 << 22 };

typedef struct Tile {
  Ref object;
  uint8_t *how;    // for each element: FILLED, READ
  Ref *by;         // for each element: the first instruction that fills it
  uint32_t *who;   // for each element: the warps that fill it
  int32_t *last;   // for each element: the last thread that fills it
  bool open;       // an access has an unknown place
} Tile;

typedef struct Parts {
  Ctx *cx;
  const Fn *fn;
  Tile *tile;      // for each object of Fn.mem; object 0: not looked at
  // for each instruction: the value in the current thread, if it is known
  uint64_t *value;
  bool *known;
} Parts;

// Computes the value of instruction r in thread t from those of its operands.
static void evaluate(Parts *g, Ref r, int32_t t) {
  const Ins *i = ir_get(g->fn, r);
  uint64_t v[3] = {0};
  bool known = thread_value_has(g->fn, i);
  for (int k = 0; k < 3 && known; k++) {
    if (!i->a[k]) continue;
    known = g->known[i->a[k]];
    v[k] = g->value[i->a[k]];
  }
  g->known[r] = known && thread_value(g->fn, i, t, v, &g->value[r]);
}

static Tile *tile_of(Parts *g, Ref object) {
  const Ins *i = ir_get(g->fn, object);
  if (i->op != OP_SMEM && i->op != OP_DSMEM) return NULL;
  Tile *t = &g->tile[i->imm];
  if (i->op == OP_DSMEM) t->open = true;
  return t->object ? t : NULL;
}

// Notes the accesses of instruction r in the current thread.
static void access(Parts *g, Ref r, int32_t thread) {
  const Ins *i = ir_get(g->fn, r);
  Operand o;
  bool plain = i->op == OP_LD || i->op == OP_ST || i->op == OP_COPY ||
               i->op == OP_CPASYNC || i->op == OP_MATRIX;
  for (Operands w = operands_of(g->fn, i); operands_next(&w, &o);) {
    bool object = o.kind == OPERAND_MEM || o.kind == OPERAND_OBJECT ||
                  o.kind == OPERAND_RUN;
    Tile *t = object && o.ref ? tile_of(g, o.ref) : NULL;
    if (!t || t->open) continue;
    const Mem *m = ir_memof(g->fn, o.ref);
    int64_t n = o.bits / dtype_bits(m->type);
    if (!plain || o.kind != OPERAND_MEM || !g->known[o.off] || n < 1) {
      t->open = true;
      continue;
    }
    int64_t at = eval_widen(ir_type(g->fn, o.off), g->value[o.off]);
    if (at < 0 || at + n > m->count) continue;
    for (int64_t k = at; k < at + n; k++) {
      if (o.read) t->how[k] |= READ;
      if (o.written) t->how[k] |= FILLED;
      if (o.written) t->who[k] |= 1u << thread / WARP;
      if (o.written) t->last[k] = thread;
      if (o.written && !t->by[k]) t->by[k] = r;
    }
  }
}

// Executes the function in thread t, without loops.
static void run_thread(Parts *g, int32_t t) {
  bool active[DEPTH + 1] = {true};
  Ref head[DEPTH + 1] = {0};
  int depth = 0;
  for (Ref r = 1; r < g->fn->ins.n && depth < DEPTH; r++) {
    const Ins *i = ir_get(g->fn, r);
    if (i->op == OP_NOP) continue;
    evaluate(g, r, t);
    if (active[depth]) access(g, r, t);
    if (op_opens((Op)i->op)) {
      Ref p = i->op == OP_IF ? i->a[0] : 0;
      active[depth + 1] = active[depth] &&
                          !(p && g->known[p] && !(g->value[p] & 1));
      head[++depth] = r;
    } else if (i->op == OP_ELSE && depth) {
      Ref p = ir_get(g->fn, head[depth])->a[0];
      active[depth] = active[depth - 1] &&
                      !(g->known[p] && g->value[p] & 1);
    } else if (i->op == OP_END && depth) {
      depth--;
    }
  }
}

// Marks the elements of a vector as read if one of them is read.
static void widen(Parts *g, Tile *t) {
  const Mem *m = ir_memof(g->fn, t->object);
  for (int64_t k = 0; k < m->count;) {
    int64_t from = k;
    bool read = false;
    int64_t bits = 0;
    Operand o;
    const Ins *i = t->by[k] ? ir_get(g->fn, t->by[k]) : NULL;
    for (Operands w = operands_of(g->fn, i ? i : ir_get(g->fn, 0));
         i && operands_next(&w, &o);)
      if (o.kind == OPERAND_MEM && o.ref == t->object) bits = o.bits;
    int64_t n = bits ? bits / dtype_bits(m->type) : 1;
    for (; k < from + n && k < m->count; k++) read |= t->how[k] & READ;
    for (int64_t j = from; read && j < k; j++) t->how[j] |= READ;
  }
}

// Reports whether the threads whose fills nothing reads are neither a whole
// warp nor threads of consecutive numbers.
static bool is_scattered(const Parts *g, const Tile *t) {
  enum { THREADS = 1024 };
  uint8_t how[THREADS] = {0};
  uint32_t fills = 0, read = 0;
  int32_t first = -1, last = -1, n = 0;
  for (int64_t k = 0; k < ir_memof(g->fn, t->object)->count; k++) {
    fills |= t->who[k];
    if (t->how[k] & READ) read |= t->who[k];
    if (t->who[k]) how[t->last[k] % THREADS] |= t->how[k];
  }
  for (int32_t k = 0; k < THREADS; k++) {
    if (how[k] != FILLED) continue;
    if (first < 0) first = k;
    last = k;
    n++;
  }
  return fills == read && (n == 0 || last - first + 1 != n);
}

static bool make_tiles(Parts *g) {
  bool any = false;
  for (size_t k = 0; k < g->fn->mem.n; k++) {
    const Mem *m = &g->fn->mem.p[k];
    if (m->space != SP_SMEM || m->count < LEAST || m->count > MOST || m->ptx ||
        !m->name || m->partial_ok || dtype_bits(m->type) < 8)
      continue;
    Arena *a = &g->cx->scratch;
    g->tile[k] = (Tile){
      .object = m->ref, .how = arena_zero(g->cx, a, (size_t)m->count),
      .by = arena_zero(g->cx, a, (size_t)m->count * sizeof(Ref)),
      .who = arena_zero(g->cx, a, (size_t)m->count * sizeof(uint32_t)),
      .last = arena_zero(g->cx, a, (size_t)m->count * sizeof(int32_t))};
    any = true;
  }
  return any;
}

void unread_parts(Ctx *cx, const Fn *fn,
                  void (*found)(void *ud, const UnreadPart *u), void *ud) {
  int64_t threads = (int64_t)fn->block[0] * fn->block[1] * fn->block[2];
  size_t n = fn->ins.n;
  if (threads < 1 || threads * (int64_t)n > MOST) return;
  Parts g = {.cx = cx, .fn = fn};
  g.tile = arena_zero(cx, &cx->scratch, (fn->mem.n + 1) * sizeof *g.tile);
  if (!make_tiles(&g)) return;
  g.value = arena_zero(cx, &cx->scratch, n * sizeof *g.value);
  g.known = arena_zero(cx, &cx->scratch, n);
  for (int32_t t = 0; t < threads; t++) run_thread(&g, t);
  for (size_t k = 0; k < fn->mem.n; k++) {
    Tile *t = &g.tile[k];
    const Mem *m = &fn->mem.p[k];
    UnreadPart u = {.mem = m};
    int64_t read = 0, last = 0;
    if (!t->object || t->open || !is_scattered(&g, t)) continue;
    widen(&g, t);
    for (int64_t j = 0; j < m->count; j++) {
      read += (t->how[j] & READ) != 0;
      if (t->how[j] != FILLED) continue;
      if (!u.n++) u.first = j, u.at = t->by[j];
      last = j;
    }
    if (read && u.n > 1 && last - u.first + 1 != u.n) found(ud, &u);
  }
}
// SPDX-License-Identifier: MIT
