// Composed layouts: the functions that a layout's values go through.
#include "layout/composed.h"
#include "layout/inside.h"

#include <string.h>

// ---- making ----

// l with its values led on: f(offset + l).
static Layout lead(Ctx *cx, Layout l, Dim offset, const Outer *f) {
  if (!l.outer) {
    l.offset = offset;
    l.outer = f;
    return l;
  }
  Outer *own = NEW(cx, Outer, 1);
  *own = *l.outer;
  own->l = lead(cx, own->l, offset, f);
  l.outer = own;
  return l;
}

Layout layout_swizzled(Ctx *cx, Swizzle sw, Dim offset, Layout l) {
  if (sw.b == 0 && dim_is(offset, 0)) return l;
  return layout_after_swizzle(cx, sw, offset, l);
}

Layout layout_after_swizzle(Ctx *cx, Swizzle sw, Dim offset, Layout l) {
  static const Dim unit[2] = {{1}, {0}};
  Outer *f = NEW(cx, Outer, 1);
  *f = (Outer){.kind = OUTER_SWIZZLE, .sw = sw,
               .l = {.shape = unit, .stride = unit + 1}};
  return lead(cx, l, offset, f);
}

Layout layout_composed(Ctx *cx, Layout a, Dim offset, Layout l) {
  Outer *f = NEW(cx, Outer, 1);
  *f = (Outer){.kind = OUTER_LAYOUT, .l = a};
  return lead(cx, l, offset, f);
}

Layout layout_seen_through(Ctx *cx, Layout l, Layout like) {
  return like.outer ? lead(cx, l, like.offset, like.outer) : l;
}

const Outer *layout_last(Ctx *cx, Layout l, Layout *rest) {
  *rest = l;
  if (!l.outer) return NULL;
  if (!l.outer->l.outer) {
    *rest = layout_inner(l);
    return l.outer;
  }
  Outer *own = NEW(cx, Outer, 1);
  *own = *l.outer;
  const Outer *f = layout_last(cx, l.outer->l, &own->l);
  rest->outer = own;
  return f;
}

// ---- values ----

static Tup shifted(Ctx *cx, Layout l, Tup x) {
  if (dim_is(l.offset, 0)) return x;
  if (!tup_is_leaf(x))
    ctx_fail(cx, ERR_INADMISSIBLE, "the offset %s cannot be added to "
             "coordinates: %s", tup_text(cx, &l.offset), layout_text(cx, l));
  return tup_leaf(cx, dim_add(cx, l.offset, *x));
}

// Modes that no basis named are at 0.
static Tup as_coord(Ctx *cx, Tup x, Tup shape) {
  int n = tup_rank(shape);
  if (tup_is_leaf(x) || tup_rank(x) >= n) return x;
  return tup_append_to(cx, x, n, tup_int(cx, 0));
}

Tup layout_through(Ctx *cx, Layout l, Tup x) {
  for (; l.outer; l = l.outer->l) {
    const Outer *f = l.outer;
    x = shifted(cx, l, x);
    if (f->kind == OUTER_LAYOUT)
      x = tup_crd2idx(cx, as_coord(cx, x, f->l.shape), f->l.shape,
                      f->l.stride);
    else if (tup_is_leaf(x))
      x = tup_leaf(cx, swizzle_apply(cx, f->sw, *x));
    else
      ctx_fail(cx, ERR_INADMISSIBLE, "a swizzle of coordinates: %s",
               layout_text(cx, l));
  }
  return x;
}

Dim layout_through_dim(Ctx *cx, Layout l, Dim x) {
  if (!l.outer) return x;
  Tup t = layout_through(cx, l, &x);
  if (!tup_is_leaf(t))
    ctx_fail(cx, ERR_ARG, "an offset was expected, but %s gives coordinates",
             layout_text(cx, l));
  return *t;
}

void layout_range(Ctx *cx, Layout l, int64_t *lo, int64_t *hi) {
  if (!layout_static(l))
    ctx_fail(cx, ERR_STATIC, "the values of a composed layout are known only "
             "where all of it is static: %s", layout_text(cx, l));
  int64_t n = dim_value(layout_size(cx, l));
  if (n > LOOK_MAX)
    ctx_fail(cx, ERR_LIMIT, "a composed layout of over 2^20 elements: %s",
             layout_text(cx, l));
  for (int64_t i = 0; i < n; i++) {
    int64_t x = dim_value(layout_eval_at(cx, l, dim_int(cx, i)));
    if (i == 0 || x < *lo) *lo = x;
    if (i == 0 || x > *hi) *hi = x;
  }
}

static int bits_of(int64_t v) {
  return v ? 64 - __builtin_clzll((uint64_t)v) : 0;
}

// What a plain layout makes of values up to m, in magnitude: no more than this.
static int64_t bound_of(Ctx *cx, Layout l, int64_t m) {
  Flat f = flat_coalesce(cx, flat_of(cx, l), true);
  int64_t sum = 0, x;
  for (int i = 0; i < f.n; i++) {
    int64_t top = i + 1 < f.n ? f.s[i].w - 1 : m;
    m = f.s[i].w ? m / f.s[i].w : m;
    if (dim_kind(f.d[i]) == DIM_XOR) {
      int bits = bits_of(top) + bits_of(dim_xor_value(f.d[i])) - 1;
      if (bits > 61) return INT64_MAX / 2;
      if (top) sum |= ((int64_t)1 << bits) - 1;
      continue;
    }
    if (__builtin_mul_overflow(top, dim_abs(cx, f.d[i]).w, &x) ||
        __builtin_add_overflow(sum, x, &sum))
      return INT64_MAX / 2;
  }
  return sum;
}

int64_t layout_bound(Ctx *cx, Layout l) {
  int64_t m = dim_value(layout_size(cx, l)) - 1;
  m = bound_of(cx, layout_inner(l), m);
  for (; l.outer; l = l.outer->l) {
    const Outer *f = l.outer;
    m += dim_abs(cx, l.offset).w;
    m = f->kind == OUTER_LAYOUT
          ? bound_of(cx, layout_inner(f->l), m)
          : m | (2 * swizzle_zzz(f->sw) - 1);
  }
  return m;
}

// ---- runs ----

enum { GRAIN_MAX = 1 << 24 };

static int64_t low_bit(int64_t v) { return v ? v & -v : GRAIN_MAX; }

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

// Runs that a plain layout, at 1-D coordinates, keeps.
static int64_t plain_grain(Ctx *cx, Layout l) {
  Flat f = flat_coalesce(cx, flat_of(cx, l), true);
  if (!dim_is(f.d[0], 1) && !dim_eq(f.d[0], dim_xor(cx, 1))) return 1;
  int64_t g = GRAIN_MAX;
  for (int i = 0; i < f.n; i++) {
    if (dim_kind(f.d[i]) == DIM_BASIS) return 1;
    if (i) g = least(g, low_bit(dim_div(cx, f.d[i])));
    else if (f.n > 1) g = least(g, low_bit(dim_div(cx, f.s[i])));
  }
  return g;
}

int64_t layout_grain(Ctx *cx, Layout l) {
  int64_t g = GRAIN_MAX;
  for (; l.outer; l = l.outer->l) {
    const Outer *f = l.outer;
    g = least(g, low_bit(dim_div(cx, l.offset)));
    if (f->kind == OUTER_LAYOUT) g = least(g, plain_grain(cx, layout_inner(
                                                            f->l)));
    else if (f->sw.b) g = least(g, (int64_t)1 << f->sw.m);
  }
  return g;
}

// ---- slices ----

static bool all_any(Tup c) {
  size_t n = tup_words(c);
  for (size_t i = 0; i < n; i++)
    if (tup_is_leaf(c + i) && dim_kind(c[i]) != DIM_ANY) return false;
  return true;
}

Layout layout_slice_composed(Ctx *cx, Layout l, Tup coord, Tup *offset) {
  Tup x;
  l = layout_linear(cx, l);
  Layout part = layout_slice_tup(cx, layout_inner(l), coord, &x);
  *offset = tup_int(cx, 0);
  Layout rest = layout_outer(part, l);
  if (all_any(coord)) return rest;
  if (!tup_is_leaf(x))
    ctx_fail(cx, ERR_INADMISSIBLE, "a slice at %s of coordinates that go "
             "through another function: %s", tup_text(cx, coord),
             layout_text(cx, l));
  if (layout_swizzle(l))
    return layout_slice_swizzled(cx, l, rest, *x, offset);
  rest.offset = dim_add(cx, l.offset, *x);
  return rest;
}
