// Finds results in registers that no instruction reads: sums of an MMA,
// elements of a fragment that another load overwrites before an MMA reads them,
// and variables that a loop updates. A fragment is an array of registers that
// an MMA multiplies.
//
// A backward pass finds at each instruction the registers and variables whose
// values a later effect needs, such as a store. An instruction without an
// effect needs its operands only if its result is needed. Therefore an MMA that
// adds to an accumulator does not by itself make the accumulator needed. The
// pass is repeated until the registers at the beginning of each loop stay the
// same.
#include "lint/unread_results.h"

#include <string.h>

#include "ir/operands.h"
#include "ir/rows.h"
#include "lint/updates.h"

enum { MOST = 1 << 16, DEPTH = 64, NEAR = 10 };

// A region that the pass has entered. after: registers that are needed after
// the region. other: registers that are needed at the beginning of its ELSE.
typedef struct Frame {
  Ref head;
  uint64_t *after, *other;
  bool has_else;
} Frame;

typedef struct Live {
  const Fn *fn;
  // For each object of Fn.mem, and for each VAR (by its instruction): 1 + the
  // index of its first bit in the sets below, which have one bit for each
  // register or variable; 0: no bits.
  uint32_t *mem, *var;
  bool *multiplied;    // for each object of Fn.mem: whether it is a fragment
  size_t words;        // number of words of a set
  uint64_t *now;       // registers that are needed after this instruction
  uint64_t *ever;      // registers that some instruction reads
  uint64_t **head;     // for each loop: registers needed at its start
  bool *need;          // whether an effect needs the instruction's result
  bool *idle;          // whether nothing needs what the instruction writes
  Frame frame[DEPTH];
  int depth;
  bool changed;
} Live;

static size_t bytes_of(const Live *g) { return g->words * sizeof *g->now; }

static bool has(const uint64_t *set, uint32_t k) {
  return set[k / 64] >> (k & 63) & 1;
}

static void put(uint64_t *set, uint32_t k, bool on) {
  uint64_t bit = (uint64_t)1 << (k & 63);
  if (on) set[k / 64] |= bit;
  else set[k / 64] &= ~bit;
}

static void unite(const Live *g, uint64_t *to, const uint64_t *from) {
  for (size_t k = 0; k < g->words; k++) to[k] |= from[k];
}

// ---- registers of operands ----

// The bits of a set from `first` up to, but not including, `end`.
typedef struct Bits { uint32_t first, end; } Bits;

// Returns 1 + the index of the first bit of operand o's object, or 0 if the
// object has no bits.
static uint32_t base_of(const Live *g, const Operand *o) {
  if (!o->ref) return 0;
  if (o->kind == OPERAND_VAR) return g->var[o->ref];
  return ir_is_mem(g->fn, o->ref) ? g->mem[ir_get(g->fn, o->ref)->imm] : 0;
}

// Returns the bits of run number `run` of operand o, whose object must have
// bits. Sets *known to false if it is unknown which of these bits the operand
// accesses.
static Bits bits_of(const Live *g, const Operand *o, int run, bool *known) {
  uint32_t base = base_of(g, o) - 1;
  int64_t from, end;
  *known = true;
  if (o->kind == OPERAND_VAR) return (Bits){base, base + 1};
  const Mem *m = ir_memof(g->fn, o->ref);
  *known = o->kind != OPERAND_OBJECT &&
           operand_range(g->fn, o, run, &from, &end);
  if (!*known) return (Bits){base, base + (uint32_t)m->count};
  return (Bits){base + (uint32_t)from, base + (uint32_t)end};
}

static int runs_of(const Operand *o) {
  return o->kind == OPERAND_RUN ? o->n : 1;
}

// Reports whether `set` contains any bit of an operand.
static bool any(const Live *g, const Operand *o, const uint64_t *set) {
  for (int k = 0; k < runs_of(o); k++) {
    bool known;
    Bits b = bits_of(g, o, k, &known);
    for (uint32_t j = b.first; j < b.end; j++)
      if (has(set, j)) return true;
  }
  return false;
}

static void mark(Live *g, const Operand *o, bool on) {
  for (int k = 0; k < runs_of(o); k++) {
    bool known;
    Bits b = bits_of(g, o, k, &known);
    for (uint32_t j = b.first; j < b.end && (on || known); j++) {
      put(g->now, j, on);
      if (on) put(g->ever, j, true);
    }
  }
}

// ---- the pass ----

static bool is_mma(const Ins *i) { return op_class((Op)i->op) == CLASS_MMA; }

// Reports whether the MMA of a warpgroup may add to its accumulators.
static bool may_add(const Fn *fn, const Ins *i) {
  int64_t add = 1;
  Ref p = i->op == OP_WGMMA ? operand_ref(fn, i, ROLE_ADD) : 0;
  return p && (!ir_const(fn, p, &add) || add);
}

// Reports whether instruction i overwrites all of its targets each time.
static bool always_writes(const Fn *fn, const Ins *i) {
  return !operand_ref(fn, i, ROLE_PRED) && !may_add(fn, i) && i->op != OP_PUT;
}

// Reports whether instruction r is needed: an effect needs its result or its
// targets, or it changes something other than registers and variables.
static bool is_needed(const Live *g, Ref r) {
  const Ins *i = ir_get(g->fn, r);
  bool writes = false;
  Operand o;
  if (g->need[r] || op_effect((Op)i->op) & (EF_VISIBLE | EF_LEAVES))
    return true;
  for (Operands w = operands_of(g->fn, i); operands_next(&w, &o);) {
    if (!o.ref || !o.written) continue;
    writes = true;
    if (!base_of(g, &o) || any(g, &o, g->now)) return true;
  }
  return op_rows[i->op].rule == RULE_NONE && !writes;
}

static void need(Live *g, Ref r) { g->need[r] = true; }

static void pass_ins(Live *g, Ref r) {
  const Fn *fn = g->fn;
  const Ins *i = ir_get(fn, r);
  bool needed = is_needed(g, r), adds = may_add(fn, i);
  Operand o;
  g->idle[r] = !needed;
  if (always_writes(fn, i))
    for (Operands w = operands_of(fn, i); operands_next(&w, &o);)
      if (o.written && base_of(g, &o)) mark(g, &o, false);
  for (Operands w = operands_of(fn, i); needed && operands_next(&w, &o);) {
    if (!o.ref) continue;
    if (o.kind == OPERAND_MEM) need(g, o.off);
    bool reads = o.read || (adds && o.role == ROLE_ACC) ||
                 o.kind == OPERAND_OBJECT;
    if (!base_of(g, &o)) need(g, o.ref);
    else if (reads) mark(g, &o, true);
  }
}

static void open_frame(Live *g, Ref head) {
  Frame *f = &g->frame[g->depth++];
  f->head = head;
  f->has_else = false;
  memcpy(f->after, g->now, bytes_of(g));
  if (g->head[head]) unite(g, g->now, g->head[head]);
}

// Ends a region at its first instruction, because the pass walks backward.
static void close_frame(Live *g) {
  Frame *f = &g->frame[--g->depth];
  uint64_t *head = g->head[f->head];
  for (size_t k = 0; head && k < g->words; k++) {
    g->changed |= (g->now[k] & ~head[k]) != 0;
    head[k] |= g->now[k];
  }
  unite(g, g->now, f->has_else ? f->other : f->after);
}

static void pass(Live *g) {
  const Fn *fn = g->fn;
  g->changed = false;
  memset(g->now, 0, bytes_of(g));
  for (Ref r = (Ref)fn->ins.n - 1; r > 0; r--) {
    const Ins *i = ir_get(fn, r);
    if (i->op == OP_NOP || ir_is_mem(fn, r)) continue;
    if (i->op == OP_END) {
      open_frame(g, ir_region_around(g->fn, r));
    } else if (i->op == OP_ELSE) {
      Frame *f = &g->frame[g->depth - 1];
      memcpy(f->other, g->now, bytes_of(g));
      memcpy(g->now, f->after, bytes_of(g));
      f->has_else = true;
    } else if (op_opens((Op)i->op)) {
      close_frame(g);
      for (int k = 0; k < 3; k++) need(g, i->a[k]);
    } else {
      if (i->op == OP_BREAKIF)
        unite(g, g->now, g->frame[g->depth - i->imm].after);
      pass_ins(g, r);
    }
  }
}

// ---- reports ----

// Reports whether an instruction loads elements of memory into registers.
static bool is_load(const Fn *fn, const Ins *i) {
  Operand from = operand_of(fn, i, ROLE_SRC);
  if (i->op == OP_ST) {
    const Ins *v = ir_get(fn, operand_ref(fn, i, ROLE_VALUE));
    while (v->op == OP_CVT || v->op == OP_BITCAST) v = ir_get(fn, v->a[0]);
    from = operand_of(fn, v, ROLE_SRC);
    if (v->op != OP_LD) return false;
  }
  return from.ref && ir_is_mem(fn, from.ref) &&
         ir_get(fn, from.ref)->op != OP_RMEM;
}

// Reports whether an instruction after r, or r itself in a later iteration,
// overwrites an element that r writes.
static bool is_overwritten(const Live *g, Ref r, const Operand *o) {
  const Fn *fn = g->fn;
  uint64_t *own = g->now;  // The pass has finished, so this set can be reused.
  memset(own, 0, bytes_of(g));
  for (int k = 0; k < runs_of(o); k++) {
    bool known;
    Bits b = bits_of(g, o, k, &known);
    for (uint32_t j = b.first; j < b.end; j++) put(own, j, true);
  }
  int depth = 0;
  for (Ref j = r + 1; j < fn->ins.n; j++) {
    const Ins *i = ir_get(fn, j);
    Operand w;
    if (op_opens((Op)i->op)) depth++;
    if (i->op == OP_END && depth-- == 0) {
      if (op_loops((Op)ir_get(fn, ir_region_around(fn, j))->op)) return true;
      depth = 0;
    }
    if (!always_writes(fn, i)) continue;
    for (Operands s = operands_of(fn, i); operands_next(&s, &w);)
      if (w.written && base_of(g, &w) && any(g, &w, own)) return true;
  }
  return false;
}

// Reports whether instructions read all elements of operand o. If `whole` is
// set, reports whether they read any element of o's object.
static bool is_read(const Live *g, const Operand *o, bool whole) {
  if (whole) {
    Operand all = *o;
    all.kind = OPERAND_OBJECT;
    return any(g, &all, g->ever);
  }
  for (int k = 0; k < runs_of(o); k++) {
    bool known;
    Bits b = bits_of(g, o, k, &known);
    for (uint32_t j = b.first; j < b.end; j++)
      if (!has(g->ever, j)) return false;
  }
  return true;
}

// Reports whether an MMA before r writes the same accumulators as r (operand
// o), and an instruction reads the sums of that MMA.
static bool has_earlier(const Live *g, Ref r, const Operand *o) {
  for (Ref j = 1; j < r; j++) {
    const Ins *i = ir_get(g->fn, j);
    if (!is_mma(i) || g->idle[j]) continue;
    Operand acc = operand_of(g->fn, i, ROLE_ACC);
    if (acc.ref == o->ref && operands_same(&acc, o)) return true;
  }
  return false;
}

// Reports whether value r is computed from the old value of the variable that
// instruction `set` sets.
static bool updates(const Fn *fn, Ref r, const Ins *set, int depth) {
  const Ins *i = ir_get(fn, r);
  if (!r || depth == 0) return false;
  if (updates_reads_back(fn, r, set)) return true;
  if (!op_pure((Op)i->op)) return false;
  for (int k = 0; k < 3; k++)
    if (updates(fn, i->a[k], set, depth - 1)) return true;
  return false;
}

// Reports whether r updates, in a loop, a float variable that nothing reads.
// Describes the update in *u.
static bool look_at_variable(const Live *g, Ref r, UnreadResult *u) {
  const Fn *fn = g->fn;
  const Ins *i = ir_get(fn, r);
  Ref root = i->op == OP_VSET ? updates_root(fn, i->a[0]) : 0;
  if (!root || !i->src || !ir_get(fn, root)->name || !ir_loop_around(fn, r) ||
      !dtype_is_float((DType)ir_get(fn, root)->type) ||
      ir_get(fn, i->a[1])->op == OP_VGET || !updates(fn, i->a[1], i, NEAR))
    return false;
  for (Ref v = root; v < fn->ins.n; v++)
    if (ir_get(fn, v)->op == OP_VAR && updates_root(fn, v) == root &&
        has(g->ever, g->var[v] - 1))
      return false;
  *u = (UnreadResult){.at = updates_place(fn, r), .var = root};
  return true;
}

static bool look_at(const Live *g, Ref r, UnreadResult *u) {
  const Fn *fn = g->fn;
  const Ins *i = ir_get(fn, r);
  Operand o = {0};
  if (!ir_is_idle(fn) && look_at_variable(g, r, u)) return true;
  for (Operands w = operands_of(fn, i); operands_next(&w, &o);)
    if (o.written) break;
  if (!o.written || o.kind == OPERAND_VAR || !base_of(g, &o)) return false;
  *u = (UnreadResult){.at = r, .mem = ir_memof(fn, o.ref),
                      .load = !is_mma(i)};
  if (!i->src) return false;
  u->some = !u->load && has_earlier(g, r, &o);
  if (!u->load) return u->some || !is_read(g, &o, true);
  if (!g->multiplied[ir_get(fn, o.ref)->imm]) return false;
  return is_load(fn, i) && is_read(g, &o, false) && is_overwritten(g, r, &o);
}

// ---- preparation of the pass ----

// Assigns a bit of the sets to each register and variable. Returns the number
// of bits.
static uint32_t number(Ctx *cx, Live *g) {
  const Fn *fn = g->fn;
  uint32_t n = 0;
  g->mem = arena_zero(cx, &cx->scratch, (fn->mem.n + 1) * sizeof *g->mem);
  g->var = arena_zero(cx, &cx->scratch, fn->ins.n * sizeof *g->var);
  for (size_t k = 0; k < fn->mem.n && n < MOST; k++) {
    const Mem *m = &fn->mem.p[k];
    if (m->space != SP_RMEM || m->count < 1 || m->count > MOST || m->ptx ||
        m->partial_ok)
      continue;
    g->mem[k] = n + 1;
    n += (uint32_t)m->count;
  }
  for (Ref r = 1; r < fn->ins.n; r++)
    if (ir_get(fn, r)->op == OP_VAR) g->var[r] = ++n;
  return n;
}

// Finds the fragments. Returns false if there is neither an MMA nor a loop.
static bool find_fragments(Ctx *cx, Live *g) {
  const Fn *fn = g->fn;
  bool found = false;
  g->multiplied = arena_zero(cx, &cx->scratch,
                             (fn->mem.n + 1) * sizeof *g->multiplied);
  for (Ref r = 1; r < fn->ins.n; r++) {
    Operand o;
    const Ins *i = ir_get(fn, r);
    found |= op_loops((Op)i->op) || is_mma(i);
    if (!is_mma(i)) continue;
    for (Operands w = operands_of(fn, i); operands_next(&w, &o);)
      if (o.kind == OPERAND_RUN && (o.role == ROLE_A || o.role == ROLE_B))
        g->multiplied[ir_get(fn, o.ref)->imm] = true;
  }
  return found;
}

// Allocates the set g->head of each loop. Returns false if regions are nested
// too deeply.
static bool prepare_loops(Ctx *cx, Live *g) {
  const Fn *fn = g->fn;
  int depth = 0;
  g->head = arena_zero(cx, &cx->scratch, fn->ins.n * sizeof *g->head);
  for (Ref r = 1; r < fn->ins.n; r++) {
    Op op = (Op)ir_get(fn, r)->op;
    if (op_loops(op)) g->head[r] = arena_zero(cx, &cx->scratch, bytes_of(g));
    if (op_opens(op) && ++depth > DEPTH) return false;
    if (op == OP_END) depth--;
  }
  return depth == 0;
}

void unread_results(Ctx *cx, const Fn *fn,
                    void (*found)(void *ud, const UnreadResult *u), void *ud) {
  Live g = {.fn = fn};
  if (!find_fragments(cx, &g)) return;
  g.words = number(cx, &g) / 64 + 1;
  if (!prepare_loops(cx, &g)) return;
  g.now = arena_zero(cx, &cx->scratch, bytes_of(&g));
  g.ever = arena_zero(cx, &cx->scratch, bytes_of(&g));
  g.need = arena_zero(cx, &cx->scratch, fn->ins.n * sizeof *g.need);
  g.idle = arena_zero(cx, &cx->scratch, fn->ins.n * sizeof *g.idle);
  for (int k = 0; k < DEPTH; k++) {
    g.frame[k].after = arena_zero(cx, &cx->scratch, bytes_of(&g));
    g.frame[k].other = arena_zero(cx, &cx->scratch, bytes_of(&g));
  }
  do pass(&g); while (g.changed);
  uint32_t last = 0;
  for (Ref r = 1; r < fn->ins.n; r++) {
    UnreadResult u;
    uint32_t src = ir_get(fn, r)->src;
    if (!g.idle[r] || src == last || !look_at(&g, r, &u)) continue;
    last = src;
    found(ud, &u);
  }
}
// SPDX-License-Identifier: MIT
