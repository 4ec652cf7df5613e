// Composed layouts: functions that apply to the values of a layout.
#include "layout/composed.h"
#include "layout/inside.h"

#include <string.h>

// ---- construction ----

Layout layout_with_offset(Layout l, Tup offset) {
  bool leaf = tup_is_leaf(offset);
  l.offset = leaf ? *offset : (Dim){0};
  l.at = leaf ? NULL : offset;
  return l;
}

// Returns f o offset o l: inserts f and the offset after l's own outer
// functions. If l's values are coordinates, the offset also becomes
// coordinates, even if it is 0. Thus a slice that a loop carries has the same
// structure before and after the loop.
static Layout lead(Ctx *cx, Layout l, Tup offset, const Outer *f) {
  if (!l.outer) {
    if (layout_has_basis(l) && dim_is(*offset, 0))
      offset = layout_coprofile(cx, l);
    else if (!tup_is_leaf(offset) && !layout_has_basis(l) &&
             !dim_is(layout_size(cx, l), 1))
      ctx_fail(cx, ERR_INADMISSIBLE, "the offset %s is made of coordinates, "
               "but %s gives integers",
               tup_text(cx, offset), layout_text(cx, l));
    l.outer = f;
    return layout_with_offset(l, offset);
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

static const Dim unit[2] = {{1}, {0}};

// Maximum length of a chain of outer functions. It limits the recursion of
// functions that walk a chain.
enum { OUTER_MAX = 64 };

Layout layout_led(Ctx *cx, Outer f, Tup offset, Layout l) {
  Outer *own = NEW(cx, Outer, 1);
  *own = f;
  if (f.kind != OUTER_LAYOUT)
    own->l = (Layout){.shape = unit, .stride = unit + 1};
  l = lead(cx, l, offset, own);
  int n = 0;
  for (const Outer *o = l.outer; o; o = o->l.outer)
    if (++n > OUTER_MAX)
      ctx_fail(cx, ERR_LIMIT, "a composed layout has at most %d functions to "
               "the left of its innermost layout", OUTER_MAX);
  return l;
}

Layout layout_after_swizzle(Ctx *cx, Swizzle sw, Dim offset, Layout l) {
  return layout_led(cx, (Outer){.kind = OUTER_SWIZZLE, .sw = sw}, &offset, l);
}

Layout layout_composed(Ctx *cx, Layout a, Dim offset, Layout l) {
  return layout_led(cx, (Outer){.kind = OUTER_LAYOUT, .l = a}, &offset, l);
}

Layout layout_seen_through(Ctx *cx, Layout l, Layout like) {
  if (!like.outer) return l;
  return lead(cx, l, like.at ? like.at : &like.offset, like.outer);
}

bool layout_has_fn(Layout l) {
  for (const Outer *f = l.outer; f; f = f->l.outer)
    if (f->kind == OUTER_FN) return true;
  return false;
}

Layout layout_indexed(Ctx *cx, Layout l) {
  if (!l.outer || !layout_has_basis(l)) return l;
  return layout_composed(cx, l, (Dim){0}, layout_compact(cx, l.shape));
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

Tup layout_shifted(Ctx *cx, Layout l, Tup x) {
  if (l.at) return tup_add(cx, l.at, x);
  if (dim_is(l.offset, 0)) return x;
  if (!tup_is_leaf(x))
    ctx_fail(cx, ERR_INADMISSIBLE, "the offset %s cannot be added to "
             "coordinates: %s", tup_text(cx, &l.offset), layout_text(cx, l));
  return tup_leaf(cx, dim_add(cx, l.offset, *x));
}

// Converts x to a coordinate of `shape`, with zeros for modes that x lacks.
static Tup as_coord(Ctx *cx, Tup x, Tup shape) {
  int n = tup_rank(shape);
  if (tup_is_leaf(x) || tup_rank(x) >= n) return x;
  return tup_append_to(cx, x, n, tup_int(cx, 0));
}

Tup layout_through(Ctx *cx, Layout l, Tup x) {
  for (; l.outer; l = l.outer->l) {
    const Outer *f = l.outer;
    x = layout_shifted(cx, l, x);
    if (f->kind == OUTER_LAYOUT)
      x = tup_crd2idx(cx, as_coord(cx, x, f->l.shape), f->l.shape,
                      f->l.stride);
    else if (f->kind == OUTER_FN)
      x = f->fn->call(cx, f->fn, x);
    else if (tup_is_leaf(x))
      x = tup_leaf(cx, swizzle_apply(cx, f->sw, *x));
    else
      ctx_fail(cx, ERR_INADMISSIBLE, "a swizzle needs offsets, but the "
               "values of %s are coordinates", layout_text(cx, l));
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
    ctx_fail(cx, ERR_STATIC, "the values of a composed layout are known during "
             "the trace only if all its parts are static: %s",
             layout_text(cx, l));
  int64_t n = dim_value(layout_size(cx, l));
  if (n == 0) *lo = 0, *hi = -1;
  if (n > LOOK_MAX)
    ctx_fail(cx, ERR_LIMIT, "a composed layout may have at most 2^20 elements "
             "here: %s", layout_text(cx, l));
  for (int64_t i = 0; i < n; i++) {
    Dim x = layout_eval_at(cx, l, dim_int(cx, i));
    if (!dim_static(x))
      ctx_fail(cx, ERR_STATIC, "%s gives traced offsets: their range is not "
               "known while tracing", layout_text(cx, l));
    if (i == 0 || x.w < *lo) *lo = x.w;
    if (i == 0 || x.w > *hi) *hi = x.w;
  }
}

static int bits_of(int64_t v) {
  return v ? 64 - __builtin_clzll((uint64_t)v) : 0;
}

// Returns a bound on the magnitude of the values of plain layout l at indices
// from -m to m.
static int64_t bound_of(Ctx *cx, Layout l, int64_t m) {
  Flat f = flat_coalesce(cx, flat_of(cx, l), true);
  int64_t sum = 0, x;
  for (int i = 0; i < f.n; i++) {
    int64_t top = i + 1 < f.n ? f.s[i].w - (f.s[i].w > 0) : m;
    m = f.s[i].w ? m / f.s[i].w : m;
    if (dim_kind(f.d[i]) == DIM_XOR) {
      int bits = bits_of(top) + bits_of(dim_xor_value(f.d[i])) - 1;
      if (bits > 61) return INT64_MAX / 2;
      if (top) sum |= ((int64_t)1 << bits) - 1;
      continue;
    }
    if (__builtin_mul_overflow(top, dim_abs(cx, f.d[i]).w, &x) ||
        __builtin_add_overflow(sum, x, &sum) || sum > INT64_MAX / 2)
      // Return half of the range, so that the caller can add an offset without
      // overflow.
      return INT64_MAX / 2;
  }
  return sum;
}

// Returns the last index of l, or 0 if l is empty.
static int64_t last_of(Ctx *cx, Layout l) {
  int64_t n = dim_value(layout_size(cx, l));
  return n > 0 ? n - 1 : 0;
}

int64_t layout_bound(Ctx *cx, Layout l) {
  int64_t m = bound_of(cx, layout_inner(l), last_of(cx, l));
  for (; l.outer; l = l.outer->l) {
    const Outer *f = l.outer;
    m += dim_abs(cx, l.offset).w;
    // The values so far are coordinates of f->l. As indices of f->l, they are
    // at most its last index.
    if (l.at && f->kind == OUTER_LAYOUT)
      m = last_of(cx, f->l);
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

// Returns the length of the runs of consecutive indices that a plain layout
// maps to consecutive values. Runs start at multiples of their length.
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

// Returns the length of the runs of coordinates along one mode that f maps to
// consecutive values. `path` contains the n indices that name the mode. Runs
// start at multiples of their length, for all coordinates in the other modes.
static int64_t grain_along(Ctx *cx, const Outer *f, const int *path, int n) {
  if (f->kind == OUTER_FN)
    return n == 1 && path[0] == f->fn->mode ? low_bit(f->fn->run) : 1;
  if (f->kind != OUTER_LAYOUT) return 1;
  Layout l = layout_inner(f->l), whole = l;
  for (int i = 0; i < n; i++) {
    if (path[i] >= layout_rank(l)) return 1;
    l = layout_mode(cx, l, path[i]);
  }
  int64_t g = plain_grain(cx, l);
  size_t own = tup_leaves(l.shape), all = tup_leaves(whole.shape);
  size_t first = (size_t)(l.stride - whole.stride);
  for (size_t i = 0; i < all; i++)
    if (i < first || i >= first + own)
      g = least(g, low_bit(dim_div(cx, whole.stride[i])));
  return g;
}

// Splits the indices of l into runs: in a run, l's outer function maps
// consecutive indices to consecutive values. Returns the length of the runs.
// The values of l's innermost layout must be coordinates.
static int64_t coord_grain(Ctx *cx, Layout l) {
  if (!l.outer) return 1;
  Flat f = flat_coalesce(cx, flat_of(cx, layout_inner(l)), false);
  int path[DIM_LEVELS], other[DIM_LEVELS], n = dim_basis_path(f.d[0], path);
  if (dim_kind(f.d[0]) != DIM_BASIS || !dim_is(dim_basis_value(f.d[0]), 1))
    return 1;
  int64_t g = grain_along(cx, l.outer, path, n);
  Tup at = l.at;
  for (int i = 0; i < n && at && !tup_is_leaf(at); i++)
    at = path[i] < tup_rank(at) ? tup_get(cx, at, path[i]) : NULL;
  if (at) g = least(g, tup_is_leaf(at) ? low_bit(dim_div(cx, *at)) : 1);
  if (f.n > 1) g = least(g, low_bit(dim_div(cx, f.s[0])));
  for (int i = 1; i < f.n; i++) {
    int m = dim_basis_path(f.d[i], other), k = 0;
    while (k < n && k < m && path[k] == other[k]) k++;
    // One path is a prefix of the other: the strides change the same mode of
    // the coordinates, or one changes a mode inside the other's.
    if (k == n || k == m)
      g = least(g, m == n ? low_bit(dim_div(cx, dim_basis_value(f.d[i]))) : 1);
  }
  return g;
}

int64_t layout_grain(Ctx *cx, Layout l) {
  int64_t g = GRAIN_MAX;
  for (; l.outer; l = l.outer->l) {
    const Outer *f = l.outer;
    g = least(g, low_bit(dim_div(cx, l.offset)));
    if (l.at) return 1;
    if (f->kind == OUTER_LAYOUT && layout_has_basis(f->l)) {
      g = least(g, coord_grain(cx, f->l));
      l = f->l;  // Continue with the outer functions of f->l.
      if (!l.outer) return 1;
    } else if (f->kind == OUTER_LAYOUT) {
      g = least(g, plain_grain(cx, layout_inner(f->l)));
    } else if (f->kind == OUTER_FN) {
      g = least(g, f->fn->mode < 0 ? low_bit(f->fn->run) : 1);
    } else if (f->sw.b) {
      g = least(g, (int64_t)1 << f->sw.m);
    }
  }
  return g;
}

int64_t layout_run_along(Ctx *cx, Layout l, int mode) {
  Layout own = layout_mode(cx, l, mode);
  int64_t end = low_bit(dim_div(cx, layout_size(cx, own)));
  if (l.outer) return least(end, layout_grain(cx, layout_indexed(cx, own)));
  Outer f = {.kind = OUTER_LAYOUT, .l = l};
  return least(end, grain_along(cx, &f, &mode, 1));
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
  if (layout_swizzle(l) && tup_is_leaf(x))
    return layout_slice_swizzled(cx, l, rest, *x, offset);
  return layout_with_offset(rest, layout_shifted(cx, l, x));
}
// SPDX-License-Identifier: MIT
