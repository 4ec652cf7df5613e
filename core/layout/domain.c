// Domains and codomains: the common domain of two shapes, the complement of a
// layout of coordinates, and the sum of two layouts.
#include "layout/inside.h"

#include <string.h>

Tup layout_coprofile(Ctx *cx, Layout l) {
  // The last outer layout determines the values, so replace l by it.
  for (const Layout *p = &l; p; p = layout_next(p)) l = *p;
  size_t n = tup_leaves(l.shape);
  Dim *term = NEW(cx, Dim, n + 1);
  for (size_t i = 0; i < n; i++)
    term[i] = dim_kind(l.stride[i]) == DIM_BASIS
                ? l.stride[i] : dim_int(cx, !dim_is(l.stride[i], 0));
  return tup_repeat_like(cx, tup_from_terms(cx, term, n), (Dim){0});
}

// The n leaves of a shape. from[i] is the stride of leaf s[i] in the linear
// index: the product of the leaves before it.
typedef struct Digits {
  Dim *s, *from;
  size_t n;
} Digits;

static Digits digits(Ctx *cx, const char *op, Tup shape) {
  size_t n = tup_leaves(shape);
  Digits d = {NEW(cx, Dim, n + 1), NEW(cx, Dim, n + 1), n};
  tup_collect(shape, d.s);
  tup_need_elements(cx, op, shape);
  Dim at = {1};
  for (size_t i = 0; i < n; i++) {
    if (!dim_static(d.s[i]) || d.s[i].w < 1)
      ctx_fail(cx, ERR_STATIC, "%s: extents must be positive and static: %s",
               op, tup_text(cx, shape));
    d.from[i] = at;
    at = dim_mul(cx, at, d.s[i]);
  }
  return d;
}

// Returns the common factor of leaf i of a and leaf j of b: the extent of the
// mode of the linear index that both leaves contain. Stores the stride of this
// mode in *at. Returns 1 if the leaves have no common factor.
static int64_t shared(Ctx *cx, Digits a, size_t i, Digits b, size_t j,
                      Dim *at) {
  int64_t p = a.from[i].w, q = b.from[j].w;
  int64_t g = dim_gcd(cx, a.from[i], b.from[j]).w, in_a = q / g, in_b = p / g;
  if (a.s[i].w % in_a != 0 || b.s[j].w % in_b != 0) return 1;
  *at = dim_mul(cx, a.from[i], dim_int(cx, in_a));
  Dim of_a = dim_int(cx, a.s[i].w / in_a), of_b = dim_int(cx, b.s[j].w / in_b);
  return dim_gcd(cx, of_a, of_b).w;
}

Layout layout_greatest_common_domain(Ctx *cx, Tup a, Tup b) {
  const char *op = "greatest_common_domain";
  Digits x = digits(cx, op, a), y = digits(cx, op, b);
  TupB s = {0};
  Dim *stride = NEW(cx, Dim, x.n + y.n + 1), at;
  size_t n = 0;
  tupb_open(cx, &s);
  for (size_t i = 0; i < x.n; i++)
    for (size_t j = 0; j < y.n; j++) {
      int64_t g = shared(cx, x, i, y, j, &at);
      if (g == 1) continue;
      tupb_leaf(cx, &s, dim_int(cx, g));
      stride[n++] = at;
    }
  if (n == 0) {
    tupb_leaf(cx, &s, (Dim){1});
    stride[n++] = (Dim){0};
  }
  tupb_close(cx, &s);
  return (Layout){.shape = tupb_done(cx, &s), .stride = stride};
}

// Converts x, an integer or a coordinate, to one stride. Returns false if the
// coordinate is nonzero in several modes.
static bool one_stride(Ctx *cx, Tup x, int *path, int depth, Dim *d) {
  if (tup_is_leaf(x)) {
    if (dim_is(*x, 0)) return true;
    if (!dim_is(*d, 0) || depth > DIM_LEVELS) return false;
    *d = dim_basis(cx, *x, path, depth);
    return true;
  }
  Tup m = tup_first(x);
  for (int i = 0, n = tup_rank(x); i < n; i++, m = tup_next(m)) {
    if (depth < DIM_LEVELS) path[depth] = i;
    if (!one_stride(cx, m, path, depth + 1, d)) return false;
  }
  return true;
}

Layout layout_add(Ctx *cx, Layout a, Layout b) {
  Note nt = {.op = "layout_add", .a = &a, .bl = &b, .mode = -1};
  if (a.outer || b.outer)
    note_fail(cx, &nt, "composed layouts cannot be added", NULL);
  if (layout_has_xor(a) || layout_has_xor(b))
    note_fail(cx, &nt, "XORed strides cannot be added", NULL);
  if (!dim_eq(layout_size(cx, a), layout_size(cx, b)))
    note_fail(cx, &nt, "the layouts differ in size", NULL);
  Layout x = layout_coalesce(cx, a), y = layout_coalesce(cx, b);
  Layout g = layout_greatest_common_domain(cx, x.shape, y.shape);
  if (!dim_eq(layout_size(cx, g), layout_size(cx, a)))
    note_fail(cx, &nt, "the modes of the layouts do not divide each other",
              arena_printf(cx, &cx->scratch, "their greatest common domain is "
                           "%s", layout_text(cx, g)));
  size_t n = tup_leaves(g.shape);
  Dim *d = NEW(cx, Dim, n);
  for (size_t i = 0; i < n; i++) {
    Dim at = g.stride[i];
    Tup sum = tup_add(cx, layout_eval_tup(cx, x, &at),
                      layout_eval_tup(cx, y, &at));
    int path[DIM_LEVELS];
    d[i] = (Dim){0};
    if (!one_stride(cx, sum, path, 0, &d[i]))
      note_fail(cx, &nt, arena_printf(
        cx, &cx->scratch, "no single stride can represent %s",
                          tup_text(cx, sum)), NULL);
  }
  g.stride = d;
  return layout_coalesce(cx, g);
}

// ---- complements mode by mode of a codomain of coordinates ----

// Returns the modes of l whose strides are bases with the path `path`, as a
// layout with integer strides.
static Layout along(Ctx *cx, Layout l, const int *path, int depth) {
  Flat f = flat_of(cx, l);
  int n = 0, p[DIM_LEVELS];
  for (int i = 0; i < f.n; i++) {
    int len = dim_basis_path(f.d[i], p);
    if (len != depth || memcmp(p, path, (size_t)len * sizeof *p) != 0) continue;
    f.s[n] = f.s[i];
    f.d[n++] = dim_basis_value(f.d[i]);
  }
  f.n = n;
  return flat_layout(cx, f);
}

typedef struct Axes {
  Note *nt;
  Layout l;
  int path[DIM_LEVELS + 1];
  TupB shape;
  Dim *stride;
  size_t n;
} Axes;

// Appends the complement of the modes of a->l that point along mode a->path of
// the coordinates. `room` is the codomain's extent along this mode.
static void put_axis(Ctx *cx, Axes *a, Tup room, int depth) {
  Layout l = along(cx, a->l, a->path, depth);
  Layout c = complement_in(cx, a->nt, l, room);
  size_t n = tup_leaves(c.shape);
  tupb_put(cx, &a->shape, c.shape);
  for (size_t i = 0; i < n; i++) {
    Dim d = c.stride[i];
    if (n == 1 && dim_is(*tup_flatten(cx, c.shape), 1))
      // All offsets up to the end are in use, so the complement's stride is the
      // cosize of l.
      d = layout_cosize(cx, l);
    a->stride[a->n++] = dim_basis(cx, d, a->path, depth);
  }
}

// Appends the complement for each mode of the coordinates. `has` is the
// coprofile of l at a->path, and `room` is the codomain at this path.
static void put_axes(Ctx *cx, Axes *a, Tup has, Tup room, int depth) {
  if (!has || tup_is_leaf(has)) {
    put_axis(cx, a, room, depth);
    return;
  }
  if (tup_is_leaf(room) || tup_rank(room) < tup_rank(has)) {
    note_fail(cx, a->nt, arena_printf(
      cx, &cx->scratch, "the cotarget %s has fewer modes than the coordinates",
                        tup_text(cx, room)), NULL);
    return;
  }
  tupb_open(cx, &a->shape);
  int n = tup_rank(room), k = tup_rank(has);
  Tup h = tup_first(has), r = tup_first(room);
  for (int i = 0; i < n; i++, r = tup_next(r)) {
    a->path[depth] = i;
    put_axes(cx, a, i < k ? h : NULL, r, depth + 1);
    if (i < k) h = tup_next(h);
  }
  tupb_close(cx, &a->shape);
}

Layout complement_based(Ctx *cx, Note *nt, Layout l, Tup room) {
  Axes a = {.nt = nt, .l = l};
  a.stride = NEW(cx, Dim, tup_leaves(l.shape) + 2 * tup_leaves(room) + 2);
  put_axes(cx, &a, layout_coprofile(cx, l), room, 0);
  if (nt->bad) return l;
  return (Layout){.shape = tupb_done(cx, &a.shape), .stride = a.stride};
}

// Returns the element-wise product a * b. If b has fewer modes, its missing
// modes are 1.
static Tup room_of(Ctx *cx, Tup a, Tup b) {
  size_t n = tup_leaves(a);
  // An integer b scales the last mode of a.
  if (tup_is_leaf(b) && !tup_is_leaf(a)) {
    Dim *s = NEW(cx, Dim, n);
    tup_collect(a, s);
    s[n - 1] = dim_mul(cx, s[n - 1], *b);
    return tup_like(cx, a, s);
  }
  if (tup_rank(b) < tup_rank(a))
    b = tup_append_to(cx, b, tup_rank(a), tup_int(cx, 1));
  return tup_elem_scale(cx, a, b);
}

Tup product_room(Ctx *cx, Layout l, Layout t) {
  if (!layout_has_basis(l))
    return tup_leaf(cx, dim_mul(cx, layout_size(cx, l), layout_cosize(cx, t)));
  return room_of(cx, layout_coshape(cx, l), layout_coshape(cx, t));
}
// SPDX-License-Identifier: MIT
