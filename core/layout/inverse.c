// Right and left inverses of layouts whose values are integers or coordinates,
// and of composed layouts.
#include "layout/composed.h"
#include "layout/inside.h"

#include <string.h>

// Returns the indices of the modes with static strides, sorted by stride. Sets
// *n to their number. The insertion sort is stable, and fast enough because the
// lists are short.
static int *by_stride(Ctx *cx, Flat f, int *n) {
  int *at = NEW(cx, int, (size_t)f.n + 1);
  *n = 0;
  for (int i = 0; i < f.n; i++) {
    if (!dim_static(f.d[i])) continue;
    int k = (*n)++;
    for (; k > 0 && f.d[at[k - 1]].w > f.d[i].w; k--) at[k] = at[k - 1];
    at[k] = i;
  }
  return at;
}

Dim *flat_prefix(Ctx *cx, Flat f) {
  Dim *p = NEW(cx, Dim, (size_t)f.n + 1);
  p[0] = (Dim){1};
  for (int i = 0; i + 1 < f.n; i++) p[i + 1] = dim_mul(cx, p[i], f.s[i]);
  return p;
}

// Returns the right inverse of the modes f, whose index strides are `pre`.
// Repeatedly takes the mode whose stride equals the size of the modes that were
// taken before, so that the taken modes have contiguous values.
static Flat right_modes(Ctx *cx, Note *nt, Flat f, const Dim *pre,
                        bool *sure) {
  size_t n = (size_t)f.n + 1;
  Dim *w = NEW(cx, Dim, 2 * n), next = {1};
  Flat out = {w, w + n, 0};
  uint64_t *done = NEW(cx, uint64_t, n / 64 + 1);
  (void)nt;
  (void)sure;
  for (size_t i = 0; i <= n / 64; i++) done[i] = 0;
  for (int i = 0; i < f.n; i++) {
    if (!dim_eq(f.d[i], next) || (done[i / 64] >> (i % 64) & 1)) continue;
    done[i / 64] |= (uint64_t)1 << (i % 64);
    if (explain_on(cx))
      explain_say(cx, "  offsets continue at %s: mode %s, coordinate stride %s",
                  tup_text(cx, &next),
                  layout_text(cx, layout_leaf(cx, f.s[i], f.d[i])),
                  tup_text(cx, &pre[i]));
    out.s[out.n] = f.s[i];
    out.d[out.n++] = pre[i];
    next = dim_mul(cx, f.s[i], f.d[i]);
    if (!dim_static(next)) break;
    i = -1;
  }
  return flat_coalesce(cx, out, false);
}

Layout inverse_offsets(Ctx *cx, Layout l) {
  if (layout_has_xor(l)) return layout_leaf(cx, (Dim){1}, (Dim){0});
  Flat f = flat_coalesce(cx, flat_of(cx, l), false);
  if (explain_on(cx))
    explain_say(cx, "right_inverse of %s", layout_text(cx, l));
  return flat_layout(cx, right_modes(cx, NULL, f, flat_prefix(cx, f), NULL));
}

// A function that inverts the modes f. `pre` contains the stride of each mode
// in the linear index. If the values of a layout are coordinates, by_path
// inverts the modes of each basis path separately, and concatenates the results
// in the profile of the coordinates.
typedef Flat Inverse(Ctx *cx, Note *nt, Flat f, const Dim *pre, bool *sure);

typedef struct Paths {
  Note *nt;
  Layout l;
  Flat f;          // the layout's modes with nonzero strides, coalesced
  const Dim *pre;  // for each mode of f: its stride in the linear index
  Inverse *inverse;
  bool *sure;
  TupB shape;
  Dim *stride;
  size_t n, cap;
} Paths;

static void put_inverse(Ctx *cx, Paths *w, Flat r) {
  if (w->n + (size_t)r.n > w->cap) {
    size_t cap = 2 * w->cap + (size_t)r.n;
    Dim *d = NEW(cx, Dim, cap);
    if (w->n) memcpy(d, w->stride, w->n * sizeof *d);
    w->stride = d;
    w->cap = cap;
  }
  memcpy(w->stride + w->n, r.d, (size_t)r.n * sizeof *r.d);
  w->n += (size_t)r.n;
  tupb_put(cx, &w->shape, flat_layout(cx, r).shape);
}

// Writes the path of basis d to p. Returns the number of levels of d's path if
// it starts with path[0..depth), otherwise -1.
static int under(Dim d, const int *path, int depth, int p[DIM_LEVELS]) {
  int n = dim_basis_path(d, p);
  for (int k = 0; k < depth; k++)
    if (k >= n || p[k] != path[k]) return -1;
  return n;
}

// Appends the inverses of the modes whose strides have a path that starts with
// path[0..depth).
static void by_path(Ctx *cx, Paths *w, int *path, int depth) {
  size_t cap = (size_t)w->f.n + 1;
  Flat here = {NEW(cx, Dim, cap), NEW(cx, Dim, cap), 0};
  Dim *pre = NEW(cx, Dim, cap);
  int last = -1, p[DIM_LEVELS];
  // Find the largest mode number that follows path[0..depth) in the path of a
  // stride.
  for (size_t i = 0; i < tup_leaves(w->l.shape); i++)
    if (under(w->l.stride[i], path, depth, p) > depth && p[depth] > last)
      last = p[depth];
  for (int i = 0; i < w->f.n; i++) {
    if (under(w->f.d[i], path, depth, p) != depth) continue;
    here.s[here.n] = w->f.s[i];
    here.d[here.n] = dim_basis_value(w->f.d[i]);
    pre[here.n++] = w->pre[i];
  }
  if (here.n && last >= 0)
    note_fail(cx, w->nt, "strides such as 1@0 and 1@0@0, one of which belongs "
              "to a mode of the other, cannot be added", NULL);
  if (last < 0) {
    Dim none[2] = {{1}, {0}};
    put_inverse(cx, w, here.n ? w->inverse(cx, w->nt, here, pre, w->sure)
                              : (Flat){none, none + 1, 1});
    return;
  }
  tupb_open(cx, &w->shape);
  for (int m = 0; m <= last; m++) {
    path[depth] = m;
    by_path(cx, w, path, depth + 1);
  }
  tupb_close(cx, &w->shape);
}

static Layout inverse_of_bases(Ctx *cx, Note *nt, Layout l, Inverse *f,
                               bool *sure) {
  Flat all = flat_coalesce(cx, flat_of(cx, l), false);
  Dim *pre = flat_prefix(cx, all);
  Paths w = {.nt = nt, .l = l, .f = {NEW(cx, Dim, (size_t)all.n),
                             NEW(cx, Dim, (size_t)all.n), 0}, .inverse = f,
             .sure = sure};
  for (int i = 0; i < all.n; i++) {
    if (dim_is(dim_basis_value(all.d[i]), 0)) continue;
    w.f.s[w.f.n] = all.s[i];
    w.f.d[w.f.n] = all.d[i];
    pre[w.f.n++] = pre[i];
  }
  w.pre = pre;
  int path[DIM_LEVELS + 1];
  by_path(cx, &w, path, 0);
  return (Layout){.shape = tupb_done(cx, &w.shape), .stride = w.stride};
}

static Layout right_plain(Ctx *cx, Note *nt, Layout l) {
  if (!layout_has_basis(l)) return inverse_offsets(cx, l);
  return inverse_of_bases(cx, nt, l, right_modes, NULL);
}

// Checks l(r(l(i))) == l(i) by evaluation.
static void check_left(Ctx *cx, Note *nt, Layout l, Layout r) {
  if (!layout_static(l)) return;
  int64_t n = dim_value(layout_size(cx, l));
  if (n > 65536)
    note_fail(cx, nt, "the modes may overlap, and have too many elements to "
              "check",
              NULL);
  for (int64_t i = 0; i < n && !nt->bad; i++) {
    Tup x = layout_eval_tup(cx, l, tup_int(cx, i));
    Tup at = layout_eval_tup(cx, r, x);
    if (tup_eq(x, layout_eval_tup(cx, l, at))) continue;
    const char *why = arena_printf(
      cx, &cx->scratch, "e.g. it is %s at coordinate %lld, but no inverse "
      "leads back there", tup_text(cx, x), (long long)i);
    note_fail(cx, nt, "the modes overlap", why);
  }
}

static Flat left_sorted(Ctx *cx, Note *nt, Flat f, const int *at,
                        const Dim *pre) {
  Flat out = {NEW(cx, Dim, (size_t)f.n + 2), NEW(cx, Dim, (size_t)f.n + 2), 0};
  Dim size = {1}, stride = {0};
  for (int k = 0; k < f.n; k++) {
    Dim d = f.d[at[k]];
    if (dim_is(d, 0)) continue;
    if (d.w < 0) {
      note_fail(cx, nt, arena_printf(cx, &cx->scratch, "stride %lld leads "
                                     "below offset 0, where no inverse is "
                                     "defined", (long long)
                d.w), NULL);
      return f;
    }
    if (d.w % size.w != 0) {
      note_fail(cx, nt,
                arena_printf(cx, &cx->scratch,
                             "stride %lld is not a multiple of %lld, the size "
                             "of the modes with smaller strides",
                             (long long)d.w, (long long)size.w), NULL);
      return f;
    }
    out.s[out.n] = dim_int(cx, d.w / size.w);
    out.d[out.n++] = stride;
    if (explain_on(cx))
      explain_say(cx, "  mode %s: offsets in steps of %lld, "
                  "coordinates of stride %lld",
                  layout_text(cx, layout_leaf(cx, f.s[at[k]], d)),
                  (long long)d.w,
                  (long long)pre[at[k]].w);
    size = d;
    stride = pre[at[k]];
  }
  out.s[out.n] = f.s[at[f.n - 1]];
  out.d[out.n++] = stride;
  return flat_coalesce(cx, out, false);
}

// Reports whether the modes in the order `at` have disjoint ranges of offsets.
// Then each offset belongs to one coordinate, and the inverse needs no check.
static bool modes_apart(Flat f, const int *at) {
  for (int k = 0; k + 1 < f.n; k++) {
    Dim s = f.s[at[k]];
    int64_t end;
    if (!dim_static(s) || __builtin_mul_overflow(s.w, f.d[at[k]].w, &end) ||
        end > f.d[at[k + 1]].w)
      return false;
  }
  return true;
}

// Returns the left inverse of the modes f, whose index strides are pre. Clears
// *sure if the result must be checked.
static Flat left_modes(Ctx *cx, Note *nt, Flat f, const Dim *pre, bool *sure) {
  int n, *at = by_stride(cx, f, &n);
  if (n != f.n)
    ctx_fail(cx, ERR_STATIC, "left_inverse: strides must be static: %s",
             layout_text(cx, *nt->a));
  *sure = *sure && modes_apart(f, at);
  return left_sorted(cx, nt, f, at, pre);
}

static Layout left_plain(Ctx *cx, Note *nt, Layout l) {
  bool sure = true;
  Flat f = flat_coalesce(cx, flat_of(cx, l), false);
  if (explain_on(cx))
    explain_say(cx, "left_inverse of %s", layout_text(cx, l));
  Layout r = layout_has_basis(l)
    ? inverse_of_bases(cx, nt, l, left_modes, &sure)
    : flat_layout(cx, left_modes(cx, nt, f, flat_prefix(cx, f), &sure));
  if (!sure) check_left(cx, nt, l, r);
  return r;
}

// ---- composed layouts ----

// Returns the left or right inverse of layout l. The inverse of a composed
// layout f o rest is rest^-1 o f^-1.
static Layout inverse_of(Ctx *cx, Note *nt, Layout l, bool left) {
  if (!note_elements(cx, nt, l.shape)) return l;
  if (!l.outer && layout_has_xor(l)) return inverse_xor(cx, nt, l, left);
  if (!l.outer) return left ? left_plain(cx, nt, l) : right_plain(cx, nt, l);
  Layout rest;
  Dim back = {0};
  const Outer *f = layout_last(cx, l, &rest);
  if (f->kind == OUTER_FN || rest.at)
    note_fail(cx, nt, "a layout with a function, or with coordinates as "
              "values, has no inverse", NULL);
  for (const Layout *p = &l; p->outer; p = layout_next(p))
    back = dim_neg(cx, p->offset);
  Layout in = inverse_of(cx, nt, rest, left);
  if (f->kind == OUTER_SWIZZLE && dim_is(back, 0))
    return layout_compose_swizzle(cx, in, f->sw);
  Layout first = f->kind == OUTER_LAYOUT
                   ? inverse_of(cx, nt, layout_inner(f->l), left)
                   : layout_swizzled(cx, f->sw, (Dim){0},
                                     layout_compact(cx, in.shape));
  return layout_composed(cx, in, back, first);
}

// Returns the number of leading indices i = 0, 1, ... for which r(i) is an
// index of l and l(r(i)) == i.
static int64_t inverts(Ctx *cx, Layout l, Layout r) {
  int64_t n = dim_value(layout_size(cx, r)), size;
  size = dim_value(layout_size(cx, l));
  for (int64_t i = 0; i < n; i++) {
    Dim at = layout_eval_at(cx, r, dim_int(cx, i));
    if (at.w < 0 || at.w >= size || !dim_is(layout_eval_at(cx, l, at), i))
      return i;
  }
  return n;
}

// Checks that a composed layout is small enough to check its inverse by
// evaluation. The evaluation is necessary: outer functions and offsets may not
// reach all offsets that the inverses of the single layouts assume.
static void check_composed(Ctx *cx, Note *nt, Layout l) {
  if (!layout_static(l) || dim_value(layout_size(cx, l)) > LOOK_MAX)
    note_fail(cx, nt, "a composed layout must be static and have at most 2^20 "
              "elements", NULL);
}

Layout layout_right_inverse(Ctx *cx, Layout l) {
  Note nt = {.op = "right_inverse", .a = &l, .mode = -1};
  Layout r = inverse_of(cx, &nt, l, false);
  if (!l.outer) return r;
  check_composed(cx, &nt, l);
  int64_t all = dim_value(layout_size(cx, r)), n = inverts(cx, l, r);
  if (n == 0)
    note_fail(cx, &nt, arena_printf(
      cx, &cx->scratch, "a right inverse needs a coordinate whose value is 0, "
      "but the inverses of the layout's parts contain none; the value at "
      "coordinate 0 is %lld",
      (long long)layout_eval_at(cx, l, dim_int(cx, 0)).w), NULL);
  for (Layout cut = r; n < all; n--) {
    Note q = {.op = nt.op, .mode = -1, .quiet = true};
    Layout first = layout_leaf(cx, dim_int(cx, n), dim_int(cx, n > 1));
    cut = compose_in(cx, &q, r, first);
    if (!q.bad) return cut;
  }
  return r;
}

Layout layout_left_inverse(Ctx *cx, Layout l) {
  Note nt = {.op = "left_inverse", .a = &l, .mode = -1};
  Layout r = inverse_of(cx, &nt, l, true);
  if (!l.outer) return r;
  check_composed(cx, &nt, l);
  int64_t n = dim_value(layout_size(cx, l));
  for (int64_t i = 0; i < n; i++) {
    Dim x = layout_eval_at(cx, l, dim_int(cx, i));
    Dim at = layout_eval_at(cx, r, x);
    if (at.w < 0 || !dim_eq(layout_eval_at(cx, l, at), x))
      note_fail(cx, &nt, arena_printf(
        cx, &cx->scratch, "the layout's value is %lld at coordinate %lld, but "
        "the inverses of the layout's parts do not map that value back",
        (long long)x.w, (long long)i), NULL);
  }
  return r;
}
// SPDX-License-Identifier: MIT
