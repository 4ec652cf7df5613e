// Element-wise copies with the widest accesses that both sides allow
// (autovec_copy). Loads and stores of all elements of a tensor use such copies.
#include <inttypes.h>
#include <string.h>

#include "ir/fold.h"
#include "layout/composed.h"
#include "ir/operands.h"
#include "tensor/place.h"

enum { MAX_WALK = 256 };
enum { SRC, DST, PRED, SIDES };

// A loop over the elements of the three sides of a copy: source, destination
// and predicate. Each iteration advances by d[s] elements in the memory of side
// s, and by `step` in the linear index of the elements.
typedef struct Loop {
  int64_t n, step;  // n: iterations
  Dim d[SIDES];
} Loop;

// Nested loops that visit the elements of 2 or 3 layouts of equal size, fastest
// loop first. `ok` is false if the layouts have no such common loops, as with
// extents 2x3 and 3x2.
typedef struct Walk {
  Loop loop[MAX_WALK];
  Loop run[MAX_WALK];  // the loops that were merged into loop[0], fastest first
  int n, runs, sides;
  bool ok;
  // whether the user guarantees that traced offsets and strides are aligned
  bool promised;
} Walk;

typedef struct Cursor {  // iterates over the leaves of a layout
  Layout flat;
  size_t leaf, leaves;
  Tup shape;
  int64_t left;  // remaining extent of the current leaf
  Dim stride;    // distance between adjacent elements of the current leaf
} Cursor;

static void cursor_next(Cursor *c) {
  while (c->left == 1 && c->leaf < c->leaves) {
    c->left = dim_value(*c->shape);
    c->stride = c->flat.stride[c->leaf++];
    c->shape = tup_next(c->shape);
  }
}

static Cursor cursor(Ctx *cx, Layout l) {
  Cursor c = {.flat = layout_flatten(cx, layout_inner(l)), .left = 1};
  c.leaves = tup_leaves(c.flat.shape);
  c.shape = tup_first(c.flat.shape);
  cursor_next(&c);
  return c;
}

static Walk walk(Ctx *cx, const Tensor *const *t, int sides, int64_t size) {
  Walk w = {.sides = sides, .ok = true};
  Cursor c[SIDES];
  for (int s = 0; s < sides; s++) c[s] = cursor(cx, t[s]->l);
  for (int64_t done = 1; done < size; ) {
    int64_t n = c[0].left;
    for (int s = 1; s < sides; s++)
      if (c[s].left < n) n = c[s].left;
    Loop *l = &w.loop[w.n];
    if (n <= 1 || w.n == MAX_WALK) return w.ok = false, w;
    l->n = n;
    l->step = done;
    for (int s = 0; s < sides; s++) {
      if (c[s].left % n) return w.ok = false, w;
      l->d[s] = c[s].stride;
      c[s].left /= n;
      c[s].stride = dim_mul(cx, c[s].stride, dim_int(cx, n));
      cursor_next(&c[s]);
    }
    w.n++;
    done *= n;
  }
  return w;
}

// ---- vector width ----

// Returns the largest power of two that divides n.
static int64_t pow2_of(int64_t n) { return n & -n; }

// Reports whether loop l extends a contiguous run of `run` elements, in both
// the source and the destination. All iterations of l must have one predicate.
static bool continues(const Walk *w, const Loop *l, int64_t run) {
  if (!dim_is(l->d[SRC], run) || !dim_is(l->d[DST], run)) return false;
  return w->sides <= PRED || dim_is(l->d[PRED], 0);
}

// Merges the loops that form one contiguous run into loop[0]. Returns the run's
// length in elements. Sets *rest to the index of the first loop that is not
// merged.
static int64_t gather_run(Walk *w, int *rest) {
  int64_t run = 1;
  *rest = 0;
  for (int at = 0; at < w->n; at++) {
    Loop l = w->loop[at];
    if (!continues(w, &l, run)) continue;
    w->run[w->runs++] = l;
    if (run == 1) {
      memmove(&w->loop[1], &w->loop[0], (size_t)at * sizeof l);
      w->loop[0] = l;
      *rest = 1;
    } else {
      w->loop[0].n *= l.n;
      w->n--;
      memmove(&w->loop[at], &w->loop[at + 1], (size_t)(w->n - at) * sizeof l);
    }
    run *= l.n;
    // Loop 0 covers the run found so far. Search again for a loop that extends
    // it.
    at = 0;
  }
  return run;
}

static int64_t limit(int64_t v, int64_t by) {
  if (by == 0) return v;
  by = pow2_of(by);
  return by < v ? by : v;
}

// Returns the known divisor of d. If d is traced and the user guarantees
// alignment, returns 0, which means that every number divides d.
static int64_t divisor(Ctx *cx, const Walk *w, Dim d) {
  return w->promised && !dim_static(d) ? 0 : dim_div(cx, d);
}

// Returns the largest vector length that the alignment of side s allows: a
// power of two, at most v. Considers the base, offset and swizzle of the side,
// and its strides in the loops from number `from` on.
static int64_t side_limit(Ctx *cx, const Walk *w, const Tensor *t, int s,
                          int from, int64_t v) {
  int bits = dtype_bits(t->type);
  if (!w->promised)
    v = limit(v, t->align * 8 >= bits ? t->align * 8 / bits : 1);
  if (t->mem) v = limit(v, divisor(cx, w, t->off));
  if (t->l.outer) v = limit(v, layout_grain(cx, t->l));
  for (int k = from; k < w->n; k++)
    v = limit(v, divisor(cx, w, w->loop[k].d[s]));
  return v;
}

// Returns the number of elements for each access of the copy. Changes loop 0 so
// that each iteration moves that many elements.
static int64_t vector_of(Ctx *cx, Walk *w, const Tensor *const *t,
                         int64_t max_bits) {
  int rest;
  int64_t v = gather_run(w, &rest), bits = dtype_bits(t[SRC]->type);
  v = pow2_of(v);
  while (v > 1 && v * bits > max_bits) v /= 2;
  for (int s = 0; s < PRED; s++) v = side_limit(cx, w, t[s], s, rest, v);
  if (v > 1) {
    Loop *l = &w->loop[0];
    l->n /= v;
    for (int s = 0; s < w->sides; s++)
      l->d[s] = dim_mul(cx, l->d[s], dim_int(cx, v));
  }
  return v;
}

// ---- moving ----

static Dim side_offset(Ctx *cx, const Tensor *t, Dim inner) {
  return dim_add(cx, t->off, layout_through_dim(cx, t->l, inner));
}

static Ref load_at(Ctx *cx, const Tensor *t, Dim o) {
  Tensor e = tensor_with_layout(*t, layout_unit(cx));
  e.off = o;
  Dim zero = {0};
  return tensor_load(cx, e, &zero);
}

static void store_at(Ctx *cx, const Tensor *t, Dim o, Ref v) {
  Tensor e = tensor_with_layout(*t, layout_unit(cx));
  e.off = o;
  Dim zero = {0};
  tensor_store(cx, e, &zero, v);
}

// Moves v contiguous elements. `o` has the element offsets of the source, the
// destination and the predicate. `end` has the linear indices of the first and
// the last moved element.
static void move(Ctx *cx, const Tensor *const *t, const Dim *o,
                 const int64_t end[2], int64_t v, unsigned hints) {
  const Tensor *src = t[SRC], *dst = t[DST];
  Fn *fn = ir_fn(cx);
  int64_t bits = v * dtype_bits(src->type);
  bool regs = src->space == SP_RMEM && dst->space == SP_RMEM;
  bool traced = (src->space == SP_RMEM && !dim_static(o[SRC])) ||
                (dst->space == SP_RMEM && !dim_static(o[DST]));
  if (traced || (regs && dtype_bits(src->type) <= 64) || bits < 8 ||
      (bits & (bits - 1))) {
    for (int64_t i = 0; i < v; i++) {
      Dim k = dim_int(cx, i);
      Ref x = load_at(cx, src, dim_add(cx, o[SRC], k));
      Dim at = dim_add(cx, o[DST], k);
      if (t[PRED]) x = ir_op3(cx, fn, OP_SEL, load_at(cx, t[PRED], o[PRED]), x,
                           load_at(cx, dst, at));
      store_at(cx, dst, at, x);
    }
    return;
  }
  Ref x[5] = {dst->mem, dim_asref(cx, o[DST]), src->mem,
              dim_asref(cx, o[SRC]), 0};
  if (t[PRED]) x[4] = load_at(cx, t[PRED], o[PRED]);
  for (int s = 0; t[PRED] && s < PRED; s++)
    place_claim_ends(cx, t[s], end[0], end[1], s == DST, x[4]);
  Ins i = {.op = OP_COPY, .imm = bits, .flags = (uint16_t)hints};
  operands_emit(cx, fn, i, x, 5, NULL, 0);
}

// Returns the linear (colexicographic) index of element j of a vector of v
// elements. c[k] is the index of loop k at which the vector is moved.
static int64_t number_of(const Walk *w, const int64_t *c, int64_t v,
                         int64_t j) {
  int64_t at = w->runs ? 0 : c[0] * w->loop[0].step, left = c[0] * v + j;
  for (int k = 1; k < w->n; k++) at += c[k] * w->loop[k].step;
  for (int k = 0; k < w->runs; left /= w->run[k++].n)
    at += left % w->run[k].n * w->run[k].step;
  return at;
}

// Moves all elements in vectors of v elements. c[k] is the index of nested loop
// k.
static void move_blocks(Ctx *cx, const Walk *w, const Tensor *const *t,
                        int64_t v, unsigned hints) {
  int64_t c[MAX_WALK] = {0};
  for (;;) {
    Dim o[SIDES] = {{0}, {0}, {0}};
    for (int s = 0; s < w->sides; s++) {
      for (int k = 0; k < w->n; k++)
        if (c[k])
          o[s] = dim_add(cx, o[s], dim_mul(cx, w->loop[k].d[s],
                                           dim_int(cx, c[k])));
      o[s] = side_offset(cx, t[s], o[s]);
    }
    int64_t end[2] = {number_of(w, c, v, 0), number_of(w, c, v, v - 1)};
    move(cx, t, o, end, v, hints);
    int k = 0;
    while (k < w->n && ++c[k] == w->loop[k].n) c[k++] = 0;
    if (k == w->n) return;
  }
}

static void move_singly(Ctx *cx, const Tensor *const *t, int64_t n,
                        unsigned hints) {
  for (int64_t i = 0; i < n; i++) {
    Dim o[SIDES] = {{0}, {0}, {0}};
    for (int s = 0; s < (t[PRED] ? SIDES : PRED); s++)
      o[s] = tensor_at(cx, *t[s], dim_int(cx, i));
    move(cx, t, o, (int64_t[]){i, i}, 1, hints);
  }
}

// ---- copy ----

static void check_pair(Ctx *cx, const Tensor *a, const Tensor *b) {
  const Tensor *t[PRED] = {a, b};
  for (int s = 0; s < 2; s++) {
    tensor_use(cx, t[s], UINT32_MAX);
    if (!tensor_in_kernel(t[s]))
      ctx_fail(cx, ERR_ARG, "copy: the %s is not in the kernel's memory\n  %s",
               s ? "destination" : "source", tensor_show(cx, t[s]));
  }
  if (a->type != b->type)
    ctx_fail(cx, ERR_TYPE, "copy of %s elements to %s elements\n  source %s\n"
             "  destination %s\n  convert with dst:store(src:load():to(cute.%s"
             "))", dtype_name(a->type), dtype_name(b->type),
             tensor_show(cx, a), tensor_show(cx, b), dtype_name(b->type));
}

void tensor_copy(Ctx *cx, Tensor src, Tensor dst, const Tensor *pred,
                 CopyHow how) {
  check_pair(cx, &src, &dst);
  int64_t n = tensor_count(cx, &src, "copy");
  int64_t m = tensor_count(cx, &dst, "copy");
  int64_t p = pred ? tensor_count(cx, pred, "copy") : n;
  if (n != m || n != p)
    ctx_fail(cx, ERR_SHAPE, "copy: the source has %" PRId64 " elements, the "
             "destination %" PRId64 "\n  source %s\n  destination %s%s%s", n, m,
             tensor_show(cx, &src), tensor_show(cx, &dst),
             pred ? "\n  predicate " : "", pred ? tensor_show(cx, pred) : "");
  if (n == 0) return;
  if (!pred) {
    place_claim_all(cx, &src, false);
    place_claim_all(cx, &dst, true);
  }
  src.l = layout_indexed(cx, src.l);
  dst.l = layout_indexed(cx, dst.l);
  const Tensor *t[SIDES] = {&src, &dst, pred};
  Walk w = walk(cx, t, pred ? SIDES : PRED, n);
  w.promised = how.promised;
  if (w.ok)
    move_blocks(cx, &w, t, vector_of(cx, &w, t, how.max_bits), how.hints);
  else
    move_singly(cx, t, n, how.hints);
}

// ---- all elements ----

static const CopyHow WIDE = {.max_bits = 128};

void tensor_load_all(Ctx *cx, Tensor t, Ref *out) {
  int64_t n = tensor_count(cx, &t, "load");
  if (t.space != SP_RMEM) {
    Tensor r = tensor_make_rmem(cx, t.type, layout_compact(cx, t.l.shape));
    tensor_copy(cx, t, r, NULL, WIDE);
    t = r;
  }
  Dim i = {0};
  for (; i.w < n; i.w++) out[i.w] = tensor_load(cx, t, &i);
}

void tensor_store_all(Ctx *cx, Tensor t, const Ref *in) {
  int64_t n = tensor_count(cx, &t, "store");
  Tensor to = t;
  if (t.space != SP_RMEM)
    to = tensor_make_rmem(cx, t.type, layout_compact(cx, t.l.shape));
  Dim i = {0};
  for (; i.w < n; i.w++) tensor_store(cx, to, &i, in[i.w]);
  if (t.space != SP_RMEM) tensor_copy(cx, to, t, NULL, WIDE);
}
// SPDX-License-Identifier: MIT
