// Computes the positions of a view's elements in the kernel argument to which
// the view refers. An offset does not suffice, because offsets past the end of
// a row are elements of the next row. Therefore every view operation is also
// applied to an identity tensor, which holds the argument's coordinates.
// Assertions state that accesses are inside the argument's shape, and the
// simulator checks these assertions. The instructions that compute the
// coordinates serve only these checks (Fn.aside), so they are not emitted.
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include "tensor/place.h"

// ---- views of places ----

typedef struct Try {
  void (*fail)(Ctx *cx, ErrKind kind, const char *msg);
  void *ud;
  jmp_buf env;
} Try;

static void end(Ctx *cx, const Try *t) {
  cx->fail = t->fail;
  cx->ud = t->ud;
  ir_fn(cx)->aside = false;
}

// Called if a view operation fails when it is applied to coordinates. The
// script did not cause this failure, so attempt() returns false, and the
// failure is not reported. Only exhausted memory is reported.
_Noreturn static void missed(Ctx *cx, ErrKind kind, const char *msg) {
  Try *t = cx->ud;
  if (kind != ERR_MEMORY) longjmp(t->env, 1);
  end(cx, t);
  cx->fail(cx, kind, msg);
  abort();
}

static bool attempt(Ctx *cx, TensorView *f, Tensor *t, const void *x) {
  Try try = {.fail = cx->fail, .ud = cx->ud};
  if (setjmp(try.env)) {
    end(cx, &try);
    return false;
  }
  cx->ud = &try;
  cx->fail = missed;
  ir_fn(cx)->aside = true;
  *t = f(cx, *t, x);
  end(cx, &try);
  return true;
}

const TensorPlace *place_along(Ctx *cx, const TensorPlace *was, Tup shape,
                               TensorView *f, const void *x) {
  if (!was || !ir_fn(cx)) return NULL;
  TensorPlace *p = NEW(cx, TensorPlace, 1);
  *p = *was;
  p->whole = false;
  Buf *steps = cx->work->steps;
  cx->work->steps = NULL;
  bool good = attempt(cx, f, &p->at, x);
  cx->work->steps = steps;
  return good && tup_eq(p->at.l.shape, shape) ? p : NULL;
}

Tensor place_view(Ctx *cx, Tensor t, TensorView *f, const void *x) {
  const TensorPlace *was = t.place;
  t.place = NULL;
  Tensor made = f(cx, t, x);
  made.place = place_along(cx, was, made.l.shape, f, x);
  return made;
}

const TensorPlace *place_whole(Ctx *cx, Layout l) {
  if (l.outer) return NULL;
  if (tup_leaves(l.shape) > PLACE_MODES || tup_depth(l.shape) > DIM_LEVELS)
    return NULL;
  TensorPlace *p = NEW(cx, TensorPlace, 1);
  *p = (TensorPlace){l.shape, tensor_identity(cx, l.shape), true};
  return p;
}

static size_t words_of(Tup t) { return tup_words(t) * sizeof *t; }

size_t place_bytes(const TensorPlace *p) {
  if (!p) return 0;
  return sizeof *p + words_of(p->shape) + words_of(p->at.base) +
         layout_bytes(p->at.l);
}

const TensorPlace *place_copy(void *mem, const TensorPlace *p) {
  TensorPlace *to = mem;
  Dim *shape = (Dim *)(to + 1), *base = shape + tup_words(p->shape);
  *to = *p;
  to->shape = memcpy(shape, p->shape, words_of(p->shape));
  to->at.base = memcpy(base, p->at.base, words_of(p->at.base));
  to->at.l = layout_copy(base + tup_words(p->at.base), p->at.l);
  return to;
}

// ---- assertions ----

// Reports whether known facts about c imply that both c and c - more are in the
// range [0, n).
static bool within(Ctx *cx, Dim c, int64_t more, Dim n) {
  if (!dim_static(n)) return false;
  Fact f = {0};
  if (dim_static(c)) f.lo = f.hi = dim_value(c);
  else f = ir_fact(ir_fn(cx), dim_getref(c));
  return f.lo >= more && f.hi < dim_value(n);
}

// Asserts, for every mode k, that the coordinates c and c - more[k] are inside
// the argument's shape.
static void claim(Ctx *cx, const Tensor *t, Tup c, const int64_t *more,
                  bool write, Ref when) {
  Dim n[PLACE_MODES], at[PLACE_MODES];
  size_t modes = tup_leaves(t->place->shape);
  if (tup_leaves(c) != modes) return;
  tup_collect(t->place->shape, n);
  tup_collect(c, at);
  bool known = true;
  for (size_t k = 0; k < modes; k++)
    known &= within(cx, at[k], more ? more[k] : 0, n[k]);
  for (size_t k = 0; k < modes && !known; k++) {
    Claim x = {.mem = t->mem, .hi = INT64_MAX, .div = 1, .when = when,
               .write = write, .more = k + 1 < modes};
    if (dim_static(at[k])) x.lo = dim_value(at[k]);
    else x.v = dim_getref(at[k]), x.lo = more ? more[k] : 0;
    if (dim_static(n[k])) x.hi = dim_value(n[k]) - 1;
    else x.limit = dim_getref(n[k]);
    ir_claim(cx, ir_fn(cx), x);
  }
}

// Reports whether the argument has a single mode of stride 1. The offset of an
// element is then its coordinate, so the check of memory bounds suffices.
static bool is_offset(const Tensor *t) {
  const Tensor *at = &t->place->at;
  Dim c;
  if (tup_leaves(at->base) != 1 || t->l.outer) return false;
  tup_collect(at->base, &c);
  bool same = dim_eq(c, t->off);
  for (size_t k = 0; k < tup_leaves(t->l.shape); k++)
    same &= dim_eq(dim_basis_value(at->l.stride[k]), t->l.stride[k]);
  return same;
}

// Returns t's place (coordinates) in its kernel argument. Returns NULL if the
// place is unknown or no longer visible, or if the check of memory bounds
// suffices (is_offset).
static const TensorPlace *place_of(Ctx *cx, const Tensor *t) {
  const TensorPlace *p = t->place;
  if (!p || t->space != SP_GMEM || !tup_eq(p->at.l.shape, t->l.shape))
    return NULL;
  if (is_offset(t)) return NULL;
  return tensor_usable(cx, &p->at, UINT32_MAX) ? p : NULL;
}

static Tensor element(Ctx *cx, Tensor t, const void *coord) {
  t.base = tensor_coord(cx, t, *(const Tup *)coord);
  t.l = layout_unit(cx);
  return t;
}

// Reports whether `coord` is one traced number that indexes several modes. No
// assertion is made for such a number: splitting it into coordinates would need
// divisions, and an index beyond the end of one mode validly continues in the
// next mode.
static bool is_folded(Tup shape, Tup coord) {
  int modes = 0;
  for (size_t i = 0; i < tup_words(shape); i++)
    modes += tup_is_leaf(shape + i) && !dim_is(shape[i], 1);
  return tup_is_leaf(coord) && !dim_static(*coord) && modes > 1;
}

void place_claim(Ctx *cx, const Tensor *t, Tup coord, bool write) {
  const TensorPlace *p = place_of(cx, t);
  if (!p || p->whole || is_folded(t->l.shape, coord)) return;
  p = place_along(cx, p, layout_unit(cx).shape, element, &coord);
  if (p) claim(cx, t, p->at.base, NULL, write, 0);
}

// Writes to more[k], for each mode k of the argument, the distance from the
// view's first element to the view's element at coord. Returns false if a
// distance is not static.
static bool spread(Ctx *cx, const TensorPlace *p, Tup coord, int64_t *more) {
  Layout l = p->at.l;
  Dim d[PLACE_MODES];
  if (!layout_static(l)) return false;
  Tup zero = tup_repeat_like(cx, p->shape, (Dim){0});
  Tup o = tup_add(cx, zero, layout_eval_tup(cx, l, coord));
  if (tup_leaves(o) != tup_leaves(zero)) return false;
  tup_collect(o, d);
  for (size_t k = 0; k < tup_leaves(o); k++) more[k] = dim_value(d[k]);
  return true;
}

void place_claim_all(Ctx *cx, const Tensor *t, bool write) {
  const TensorPlace *p = place_of(cx, t);
  if (!p) return;
  int64_t more[PLACE_MODES];
  int64_t n = tensor_count(cx, t, "copy");
  Tup last = tup_int(cx, n - 1);
  if (!n || !spread(cx, p, last, more)) return;
  p = place_along(cx, p, layout_unit(cx).shape, element, &last);
  if (p) claim(cx, t, p->at.base, more, write, 0);
}

void place_claim_ends(Ctx *cx, const Tensor *t, int64_t first, int64_t last,
                      bool write, Ref when) {
  const TensorPlace *p = place_of(cx, t);
  if (!p || !layout_static(p->at.l)) return;
  for (int k = 0; k < (first == last ? 1 : 2); k++) {
    Tup at = tup_int(cx, k ? last : first);
    const TensorPlace *e =
      place_along(cx, p, layout_unit(cx).shape, element, &at);
    if (e) claim(cx, t, e->at.base, NULL, write, when);
  }
}
// SPDX-License-Identifier: MIT
