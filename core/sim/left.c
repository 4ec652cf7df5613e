// Outputs that a kernel leaves unwritten in part. An output is a tensor that
// nobody wrote before the launch, and of which the kernel writes some and reads
// nothing: who makes cute.empty says that all of it is to be written. Parts of
// a tensor are arguments of their own; cute.undefined_ok says that it is meant.
#include "layout/algebra.h"
#include "layout/notation.h"
#include "sim/bulk.h"
#include "sim/left.h"

#include <string.h>

enum { MODES = 16 };
struct SimLeft {
  SimLeft *next;
  int32_t mem;             // index into Fn.mem
  const LaunchArg *arg;
  int bits;                // of an element
  int n;                   // modes: extents, strides in elements
  int64_t extent[MODES], stride[MODES];
  bool moves;              // known at the launch only
};

// The text of argument k's layout, with its dynamic numbers, which are the
// arguments behind it.
static const char *layout_of(Ctx *cx, const Launch *l, const char *text,
                             size_t k) {
  const char *s = "";
  for (const char *q; (q = strchr(text, '?')); text = q + 1) {
    if (++k >= l->fn->arg.n || l->fn->arg.p[k].pointer) return "";
    bool wide = dtype_bits(l->fn->arg.p[k].type) > 32;
    int64_t n = wide ? (int64_t)l->arg[k].bits : (int32_t)l->arg[k].bits;
    s = arena_printf(cx, &cx->scratch, "%s%.*s%lld", s, (int)(q - text), text,
                     (long long)n);
    if (q[1] == '{') q = strchr(q, '}');  // what divides it
  }
  return arena_printf(cx, &cx->scratch, "%s%s", s, text);
}

static bool put_mode(SimLeft *t, int64_t extent, int64_t stride) {
  if (t->n == MODES || stride < 0 || extent < 1) return false;
  t->extent[t->n] = stride ? extent : 1;  // 0: one element all along
  t->stride[t->n++] = stride;
  return true;
}

static bool put_layout(Ctx *cx, SimLeft *t, const char *text) {
  if (!*text || strchr(text, '_')) return false;
  Layout l = layout_parse(cx, text, strlen(text));
  if (l.outer || !layout_static(l)) return false;
  l = layout_flatten(cx, l);
  size_t n = tup_leaves(l.shape);
  Dim *shape = NEW(cx, Dim, n);
  tup_collect(l.shape, shape);
  for (size_t k = 0; k < n; k++)
    if (!put_mode(t, dim_value(shape[k]), dim_value(l.stride[k])))
      return false;
  return true;
}

static bool put_map(SimLeft *t, const TensorMap *m) {
  bool good = !m->im2col && put_mode(t, m->extent[0], 1);
  for (int64_t k = 1; k < m->rank; k++)
    good = good && put_mode(t, m->extent[k], m->stride[k - 1] * 8 / t->bits);
  return good;
}

// Is argument k's memory read, or allowed to be undefined, through any one?
static bool is_free(const SimProg *p, int32_t k) {
  const SimArea *a = simblocks_area(p, k);
  for (size_t j = 0; j < p->fn->mem.n; j++) {
    const Mem *m = &p->fn->mem.p[j];
    if (m->space != SP_GMEM && m->space != SP_TMAP) continue;
    if ((m->undefined_ok || p->fn->arg.p[m->arg].read) &&
        simblocks_area(p, m->arg) == a)
      return true;
  }
  return !a;
}

// Is it told through another argument?
static bool is_there(const SimLeft *t, const LaunchArg *a) {
  while (t && t->arg->p != a->p) t = t->next;
  return t;
}

static SimLeft *one_of(Ctx *cx, const SimProg *p, int32_t mem) {
  const Mem *m = &p->fn->mem.p[mem];
  if (m->space != SP_GMEM && m->space != SP_TMAP) return NULL;
  const LaunchArg *a = &p->launch->arg[m->arg];
  const Arg *arg = &p->fn->arg.p[m->arg];
  if (!a->defined || !arg->written || is_free(p, m->arg)) return NULL;
  SimLeft *t = arena_zero(cx, &cx->scratch, sizeof *t);
  const char *text = ir_str(p->fn, m->layout);
  *t = (SimLeft){.mem = mem, .arg = a, .bits = dtype_bits(m->type),
                 .moves = a->map || strchr(text, '?')};
  text = layout_of(cx, p->launch, text, (size_t)m->arg);
  return (a->map ? put_map(t, a->map) : put_layout(cx, t, text)) ? t : NULL;
}

SimLeft *simleft_make(Ctx *cx, const SimProg *p) {
  SimLeft *all = NULL;
  for (size_t k = 0; k < p->fn->mem.n; k++) {
    SimLeft *t = one_of(cx, p, (int32_t)k);
    if (!t || is_there(all, t->arg)) continue;
    t->next = all;
    all = t;
  }
  return all;
}

static bool is_written(const SimLeft *t, int64_t element) {
  int64_t at = element * t->bits / 8;
  return t->arg->defined[at / 8] >> (at & 7) & 1;
}

// Where the kernel writes an object first.
static uint32_t line_of(const SimProg *p, int32_t mem) {
  for (uint32_t k = 0; k < p->nins; k++) {
    const SimIns *i = &p->ins[k];
    const SimMem *m = NULL;
    if (i->op == OP_ST) m = ((const SimSide *)i->x)->mem;
    if (i->op == OP_COPY) m = ((const SimCopy *)i->x)->dst.mem;
    if (i->op == OP_TMASTORE || i->op == OP_BULKSTORE)
      m = ((const SimBulk *)i->x)->global;
    if (m && m->index == mem) return i->src;
  }
  return 0;
}

static void look(const SimProg *p, const SimLeft *t, Found found, void *ud) {
  int64_t at[MODES] = {0}, element = 0, none = 0, all = 0;
  SimFault f = {.r = {.kind = SIM_UNWRITTEN, .mem = t->mem, .other = -1,
                      .src = line_of(p, t->mem), .count = 1}};
  for (;;) {
    bool there = (element + 1) * t->bits <= (int64_t)t->arg->bytes * 8;
    all += there;
    if (there && !is_written(t, element) && !none++) {
      f.r.offset = element;
      f.r.modes = t->moves && t->n <= SIM_MODES ? t->n : 0;
      memcpy(f.r.coord, at, (size_t)f.r.modes * sizeof *at);
    }
    int k = 0;
    while (k < t->n && ++at[k] == t->extent[k]) {
      element -= (t->extent[k] - 1) * t->stride[k];
      at[k++] = 0;
    }
    if (k == t->n) break;
    element += t->stride[k];
  }
  if (!none || none == all) return;
  f.left.none = none;
  f.left.all = all;
  found(ud, &f);
}

void simleft_find(const SimProg *p, const SimLeft *t, Found found, void *ud) {
  for (; t; t = t->next) look(p, t, found, ud);
}
