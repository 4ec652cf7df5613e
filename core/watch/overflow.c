// Detects integer overflow: 32-bit results that do not fit in 32 bits. Products
// on which an address depends are checked, because a wrong address may be valid
// by accident. Products and sums that are compared, divided or shifted are
// checked, because compilers assume that signed numbers do not overflow (n + 1
// > n is always true). A result is checked when it is computed, and reported
// when a lane uses it. Results that must fit because of the known bounds of
// their operands are not checked.
#include "watch/overflow.h"

#include "decode/raw_pointer.h"
#include "ir/operands.h"
#include "sim/regs.h"

// ---- results to check ----

// Reports whether op is linear in its operands, so that an overflow of an
// operand carries over to the result. Remainders and bitwise operations do not
// count, because scripts let their operands overflow on purpose.
static bool is_linear(Op op) {
  OpClass c = op_class(op);
  return c == CLASS_SUM || c == CLASS_PRODUCT || c == CLASS_CONVERT ||
         op == OP_NEG || op == OP_SHL;
}

static int64_t bounded(int64_t v) {
  return v < INT32_MIN ? INT32_MIN : v > INT32_MAX ? INT32_MAX : v;
}

// Returns the exact result of op. For a shift, b is the power of two that the
// shift multiplies by.
static int64_t exact(Op op, int64_t a, int64_t b) {
  if (op == OP_ADD) return a + b;
  if (op == OP_SUB) return a - b;
  return op == OP_NEG ? -a : a * b;
}

bool overflow_possible(const Fn *fn, Ref r, bool sums) {
  const Ins *i = ir_get(fn, r);
  Op op = (Op)i->op;
  bool product = op == OP_MUL || op == OP_SHL;
  bool sum = op_class(op) == CLASS_SUM || op == OP_NEG;
  if (i->type != DT_I32 || !(product || (sums && sum))) return false;
  Fact a = ir_fact(fn, i->a[0]), b = {0};
  if (op != OP_NEG) b = ir_fact(fn, i->a[1]);
  int64_t x[2] = {bounded(a.lo), bounded(a.hi)};
  int64_t y[2] = {bounded(b.lo), bounded(b.hi)};
  for (int k = 0; k < 4; k++) {
    int64_t f = y[k >> 1];
    if (op == OP_SHL) f = f < 0 || f > 31 ? INT32_MAX : (int64_t)1 << f;
    int64_t v = exact(op, x[k & 1], f);
    if (v < INT32_MIN || v > INT32_MAX) return true;
  }
  return false;
}

enum { NO_MEMORY = -2 };  // value of SimWraps.mem for results that are compared

// A search through the values from which an address is computed.
typedef struct Find {
  const SimProg *p;
  // seen: for each value, number of the last search that visited it. stamp:
  // number of the current search.
  uint32_t *seen, stamp;
  Ref *pending;           // values that the search must still visit
} Find;

static void add(SimWraps *w, Ref r, int32_t mem) {
  for (int k = 0; k < w->n; k++)
    if (w->of[k] == r && w->mem[k] == mem) return;
  if (w->n == SIM_WRAPS) return;
  w->mem[w->n] = mem;
  w->of[w->n++] = r;
}

static void collect(Find *f, Ref r, int32_t mem, SimWraps *w) {
  const Fn *fn = f->p->fn;
  size_t n = 0;
  f->stamp++;
  f->pending[n++] = r;
  while (n) {
    r = f->pending[--n];
    const Ins *i = ir_get(fn, r);
    if (!r || !is_linear((Op)i->op)) continue;
    if (overflow_possible(fn, r, mem == NO_MEMORY)) add(w, r, mem);
    Operand o[OPERANDS];
    for (int k = operands_all(fn, i, o); k-- > 0;) {
      if (o[k].kind != OPERAND_VALUE || f->seen[o[k].ref] == f->stamp) continue;
      f->seen[o[k].ref] = f->stamp;
      f->pending[n++] = o[k].ref;
    }
  }
}

// Reports whether the result of op depends on the order or magnitude of its
// operands. A compiler may simplify such an op, because it may assume that
// signed numbers do not overflow.
static bool compares(Op op) {
  OpClass c = op_class(op);
  return c == CLASS_COMPARE || c == CLASS_QUOTIENT || c == CLASS_EXTREME ||
         op == OP_SHR || op == OP_ABS;
}

// Collects the results that must be checked for overflow because i depends on
// them: results that i compares, and results from which the addresses of i are
// computed. Addresses are offsets in memory, raw addresses, addresses of tensor
// maps, and coordinates of a box.
static void collect_all(Find *f, const Ins *i, SimWraps *w) {
  const SimProg *p = f->p;
  int32_t map = -1;
  Operand o;
  if (compares((Op)i->op) && ir_type(p->fn, i->a[0]) == DT_I32) {
    collect(f, i->a[0], NO_MEMORY, w);
    if (i->op != OP_SHR && i->a[1]) collect(f, i->a[1], NO_MEMORY, w);
    return;
  }
  for (Operands at = operands_of(p->fn, i); operands_next(&at, &o);) {
    if (o.kind == OPERAND_MEM && !sim_in_registers(p->mem[o.ref])) {
      const Ins *m = ir_get(p->fn, o.ref);
      collect(f, o.off, p->mem[o.ref]->index, w);
      if (m->op == OP_PTR)
        collect(f, m->a[0], p->mem[o.ref]->index, w);
    }
    if (o.kind == OPERAND_MAP && o.ref) {
      map = p->mem[o.ref]->index;
      collect_all(f, ir_get(p->fn, o.ref), w);
    }
    if (o.role == ROLE_AT && o.ref) collect(f, o.ref, map, w);
  }
}

// Attaches to instruction d the results that must be checked. If d accesses
// memory through raw pointers, d has a copy for each memory object, and the
// results are also attached to these copies.
static void attach(SimIns *d, const SimWraps *w) {
  d->wraps = w;
  if (d->op != OP_PTR) return;
  const SimAddressed *m = d->x;
  for (int k = 0; k <= m->n; k++) attach(&m->ins[k], w);
}

void overflow_find(Ctx *cx, SimProg *p) {
  const Fn *fn = p->fn;
  size_t n = fn->ins.n;
  uint32_t *number = arena_zero(cx, &cx->scratch, n * sizeof *number);
  Find f = {.p = p, .seen = arena_zero(cx, &cx->scratch, n * sizeof *f.seen),
            .pending = NEW(cx, Ref, n + 1)};
  p->wraps.src = NEW(cx, uint32_t, n);
  for (uint32_t k = 0; k < p->nins; k++) {
    const Ins *i = ir_get(fn, p->ins[k].ref);
    bool own = p->ins[k].op == i->op || p->ins[k].op == OP_PTR;
    bool uses = op_effect((Op)i->op) & EF_MEMORY || compares((Op)i->op);
    if (!own || !uses) continue;
    SimWraps w = {0};
    collect_all(&f, i, &w);
    for (int j = 0; j < w.n; j++) {
      uint32_t *m = &number[w.of[j]];
      if (!*m) p->wraps.src[(*m = ++p->wraps.n) - 1] = ir_get(fn, w.of[j])->src;
      w.of[j] = *m - 1;
    }
    if (!w.n) continue;
    SimWraps *out = NEW(cx, SimWraps, 1);
    *out = w;
    attach(&p->ins[k], out);
  }
  for (uint32_t k = 0; k < p->nins; k++)
    if (is_linear((Op)p->ins[k].op)) p->ins[k].jump = number[p->ins[k].ref];
}

// ---- at run time ----

void overflow_note(SimWarp *w, const SimIns *i) {
  uint32_t wrong = 0;
  Op op = (Op)i->op;
  for (int l = 0; l < (i->uniform ? 1 : LANES); l++) {
    int64_t a = index_at(w, i->a, false, l), b = index_at(w, i->b, false, l);
    if (op == OP_SHL) b = b < 0 || b > 31 ? 0 : (int64_t)1 << b;
    int64_t v = exact(op, a, b);
    wrong |= (uint32_t)(v != (int32_t)(uint32_t)v) << l;
  }
  if (i->uniform && wrong) wrong = FULL;
  w->wraps.lanes[i->jump - 1] = wrong;
  w->wraps.some |= wrong != 0;
}

uint32_t overflow_check(const Access *x, uint32_t mask) {
  SimWarp *w = x->w;
  const SimWraps *s = x->i->wraps;
  uint32_t all = 0;
  for (int k = 0; k < s->n; k++) {
    uint32_t hit = w->wraps.lanes[s->of[k]] & mask;
    if (!hit || s->mem[k] != x->m->named) continue;
    int l = __builtin_ctz(hit);
    const SimProg *p = w->cluster->prog;
    simreport_fault(w, SIM_OVERFLOW, l, x->i->src, p->wraps.src[s->of[k]],
                    x->m->index, simprog_bit(x->m, x->off[l]) / x->m->own);
    all |= hit;
  }
  return all;
}

void overflow_compare(SimWarp *w, const SimIns *i) {
  const SimWraps *s = i->wraps;
  for (int k = 0; k < s->n; k++) {
    uint32_t hit = w->wraps.lanes[s->of[k]] & w->active;
    if (!hit) continue;
    const SimProg *p = w->cluster->prog;
    simreport_fault(w, SIM_SIGNED, __builtin_ctz(hit), i->src,
                    p->wraps.src[s->of[k]], -1, 0);
  }
}
// SPDX-License-Identifier: MIT
