// Divides, products, tile_to_shape, and layouts of wider or narrower elements.
// All are derived from composition and complement.
#include "layout/composed.h"
#include "layout/inside.h"

// ---- tilers ----

Tiler tiler_layout(Layout l) {
  return (Tiler){.kind = TILER_LAYOUT, .n = 1, .l = l};
}

Tiler tiler_tup(Ctx *cx, Tup t) {
  if (tup_is_leaf(t)) {
    if (dim_kind(*t) == DIM_ANY) return (Tiler){.kind = TILER_ANY, .n = 1};
    Tiler r = tiler_layout(layout_leaf(cx, *t, (Dim){1}));
    r.extent = true;
    if (dim_static(*t) && t->w < 1)
      ctx_fail(cx, ERR_SHAPE, "a tile's extent must be positive, not %lld",
               (long long)t->w);
    return r;
  }
  int n = tup_rank(t);
  Tiler *m = NEW(cx, Tiler, (size_t)n + 1);
  Tup at = tup_first(t);
  for (int i = 0; i < n; i++, at = tup_next(at)) m[i] = tiler_tup(cx, at);
  return (Tiler){.kind = TILER_TUPLE, .n = n, .mode = m};
}

// Appends to b the profile of tiler t, a tuple with t's nesting, for zip
// operations.
static void profile(Ctx *cx, TupB *b, Tiler t) {
  if (t.kind != TILER_TUPLE) {
    tupb_leaf(cx, b, (Dim){0});
    return;
  }
  tupb_open(cx, b);
  for (int i = 0; i < t.n; i++) profile(cx, b, t.mode[i]);
  tupb_close(cx, b);
}

static Tup profile_of(Ctx *cx, Tiler t) {
  TupB b = {0};
  profile(cx, &b, t);
  return tupb_done(cx, &b);
}

// ---- by mode ----

typedef Layout Step(Ctx *cx, Note *nt, Layout l, Layout t);

static Layout by_tiler(Ctx *cx, Note *nt, Layout l, Tiler t, Step *f) {
  if (t.kind == TILER_ANY) return l;
  if (t.kind == TILER_LAYOUT) {
    // An integer tile n stands for the compact layout of shape n. Therefore
    // tile 1 is 1:0 or, if l's values are coordinates, 1:1.
    if (t.extent && dim_is(*t.l.shape, 1) && !layout_has_basis(l))
      t.l = layout_leaf(cx, (Dim){1}, (Dim){0});
    return f(cx, nt, l, t.l);
  }
  int n = layout_rank(l);
  if (t.n > n) {
    note_fail(cx, nt, "the tiler has more modes than the layout", NULL);
    return l;
  }
  Layout *m = NEW(cx, Layout, (size_t)n + 1);
  int outer = nt->mode;
  for (int i = 0; i < n; i++) {
    m[i] = layout_mode(cx, l, i);
    if (i >= t.n) continue;
    nt->mode = outer < 0 ? i : outer;
    m[i] = by_tiler(cx, nt, m[i], t.mode[i], f);
  }
  nt->mode = outer;
  return layout_concat(cx, m, n);
}

// If the tile covers all of l and l's values are coordinates, restores the
// stride of the rest mode of `made`, whose modes are (tile,rest). A new tensor
// map may later make the tensor longer. Without this stride, tile 1 would then
// start where tile 0 does.
static Layout keep_step(Ctx *cx, Layout l, Layout t, Layout made) {
  Flat f = flat_of(cx, l);
  Dim step = layout_size(cx, t);
  Layout rest = layout_mode(cx, made, 1);
  if (!layout_has_basis(l) || layout_has_basis(t) || !layout_static(l) ||
      !dim_static(step) || !tup_is_leaf(rest.shape) ||
      !dim_is(*rest.shape, 1) || !dim_is(*rest.stride, 0))
    return made;
  for (int i = 0; i + 1 < f.n; i++) step = dim_ceil_div(cx, step, f.s[i]);
  Layout pair[2] = {layout_mode(cx, made, 0),
                    layout_leaf(cx, (Dim){1},
                                dim_mul(cx, step, f.d[f.n - 1]))};
  return layout_concat(cx, pair, 2);
}

// Checks that the layout `both`, with modes tile and rest, reaches all
// coordinates of l.
static void check_lost(Ctx *cx, Note *nt, Layout l, Layout both) {
  Dim size = layout_size(cx, l);
  Flat f = flat_filter(cx, both);
  Dim n = layout_size(cx, flat_layout(cx, f));
  if (!layout_static(both) || !dim_static(size)) {
    nt->trust = true;
    return;
  }
  if (layout_has_basis(both)) {
    note_fail(cx, nt, "the tiles do not cover all elements", NULL);
    return;
  }
  // n distinct values without gaps include all values from 0 to size - 1.
  if (!nt->gaps && n.w >= size.w) return;
  nt->many = n.w > LOOK_MAX || size.w > LOOK_MAX;
  if (nt->many) {
    note_fail(cx, nt, "there are too many tiles to check", NULL);
    return;
  }
  bool *there = arena_zero(cx, &cx->scratch, (size_t)size.w);
  for (int64_t i = 0; i < n.w; i++) {
    int64_t at = flat_at(f, i);
    if (at < size.w) there[at] = true;
  }
  int64_t lost = 0;
  while (lost < size.w && there[lost]) lost++;
  if (lost == size.w) return;
  const char *at = "";
  if (layout_static(l) && !layout_has_basis(l))
    at = arena_printf(cx, &cx->scratch, " (offset %lld)",
                      (long long)flat_at(flat_of(cx, l), lost));
  note_fail(cx, nt, "the tiles do not cover all elements", arena_printf(
    cx, &cx->scratch, "e.g. coordinate %lld%s is not a value of %s, the tile "
                      "and its rest",
                      (long long)lost, at, layout_text(cx, both)));
}

// Divides a mode without elements. The result (tile,0) has no tiles. The mode
// must have a single stride.
static Layout divide_nothing(Ctx *cx, Note *nt, Layout l, Layout t) {
  Flat f = flat_coalesce(cx, flat_of(cx, l), true);
  if (f.n > 1 || t.outer || layout_has_basis(t)) {
    note_elements(cx, nt, l.shape);
    return l;
  }
  Layout pair[2] = {t, layout_leaf(cx, (Dim){0}, layout_cosize(cx, t))};
  return compose_in(cx, nt, l, layout_concat(cx, pair, 2));
}

static Layout divide_one(Ctx *cx, Note *nt, Layout l, Layout t) {
  if (!t.outer && !dim_is(layout_below(cx, t), 0)) {
    note_fail(cx, nt, arena_printf(
      cx, &cx->scratch, "the tile %s has a negative stride, which leads to "
      "coordinates below 0", layout_text(cx, t)), NULL);
    return l;
  }
  if (tup_empty(l.shape)) return divide_nothing(cx, nt, l, t);
  Tup space = layout_has_basis(t) ? l.shape : layout_coalesce(cx, l).shape;
  Layout pair[2] = {t, complement_in(cx, nt, t, space)};
  Layout both = layout_concat(cx, pair, 2);
  if (explain_on(cx))
    explain_say(cx, "divide: tile %s, rest %s", layout_text(cx, t),
                layout_text(cx, pair[1]));
  Note up = *nt;  // First, try to round extents up, as CuTe does.
  up.quiet = up.weak = true;
  Layout made = compose_in(cx, &up, l, both);
  if (up.bad) {
    check_lost(cx, nt, l, both);
    made = compose_in(cx, nt, l, both);
  }
  nt->trust |= up.trust;
  if (nt->bad) return made;
  traced_claim(cx, nt, TRACED_DIVIDE, l, t, made);
  return keep_step(cx, l, t, made);
}

static Layout product_one(Ctx *cx, Note *nt, Layout l, Layout t) {
  if (layout_swizzle(t)) return layout_product_swizzled(cx, l, t);
  Layout free = complement_in(cx, nt, l, product_room(cx, l, t));
  if (explain_on(cx))
    explain_say(cx, "product: the tiler %s is laid over the free offsets %s",
                layout_text(cx, t), layout_text(cx, free));
  Layout pair[2] = {l, compose_in(cx, nt, free, t)};
  Layout made = layout_concat(cx, pair, 2);
  traced_claim(cx, nt, TRACED_PRODUCT, l, t, made);
  return made;
}

static Layout apply(Ctx *cx, const char *op, Layout l, Tiler t, Step *f) {
  Note nt = {.op = op, .a = &l, .bt = &t, .mode = -1};
  return layout_outer(by_tiler(cx, &nt, layout_inner(l), t, f), l);
}

static Layout product(Ctx *cx, const char *op, Layout l, Tiler t) {
  if (!l.outer && t.kind == TILER_LAYOUT && layout_swizzle(t.l))
    return layout_product_swizzled(cx, l, t.l);
  return apply(cx, op, l, t, product_one);
}

Layout layout_logical_divide(Ctx *cx, Layout l, Tiler t) {
  return apply(cx, "logical_divide", l, t, divide_one);
}

bool layout_evenly_divides(Ctx *cx, Tup shape, Tiler t) {
  if (t.kind == TILER_ANY) return true;
  if (t.kind == TILER_LAYOUT && t.extent)
    return tup_evenly_divides(cx, shape, t.l.shape);
  // A tile that is a layout divides evenly if its size times the size of its
  // complement is the size of the shape.
  if (t.kind == TILER_LAYOUT) {
    Note nt = {.op = "evenly_divides", .a = &t.l, .mode = -1, .quiet = true};
    Dim size = tup_size(cx, shape);
    Layout l = layout_inner(t.l);
    Layout rest = complement_in(cx, &nt, l, tup_leaf(cx, size));
    return !nt.bad && dim_eq(size, dim_mul(cx, layout_size(cx, l),
                                           layout_size(cx, rest)));
  }
  int n = tup_rank(shape);  // An integer shape has one mode.
  if (t.n > n) return false;
  Tup at = tup_first(shape);
  for (int i = 0; i < t.n; i++, at = tup_next(at))
    if (!layout_evenly_divides(cx, at, t.mode[i])) return false;
  return true;
}

Layout layout_logical_product(Ctx *cx, Layout l, Tiler t) {
  return product(cx, "logical_product", l, t);
}

Layout layout_tile_unzip(Ctx *cx, Layout l, Tiler t) {
  Tup guide = profile_of(cx, t);
  Tup s = tup_zip2_by(cx, l.shape, guide);
  Tup d = tup_zip2_by(cx, layout_stride(cx, l), guide);
  Dim *w = NEW(cx, Dim, tup_leaves(d) + 1);
  tup_collect(d, w);
  l.shape = s;
  l.stride = w;
  return l;
}

// Reports whether t has a pair (tile,rest) where guide has a leaf.
static bool splits(Tup t, Tup guide) {
  if (tup_is_leaf(guide)) return !tup_is_leaf(t) && tup_rank(t) == 2;
  int n = tup_rank(guide);
  if (tup_is_leaf(t) || tup_rank(t) < n) return false;
  t = tup_first(t);
  guide = tup_first(guide);
  for (int i = 0; i < n; i++, t = tup_next(t), guide = tup_next(guide))
    if (!splits(t, guide)) return false;
  return true;
}

// Removes one level of parentheses of l = ((tile),(rest)): opens the rest, and
// also the tile if `tile` is true.
static Layout open_modes(Ctx *cx, Layout l, bool tile) {
  Tup t = tup_first(l.shape), r = tup_next(t), both[2];
  // tup_cat removes the parentheses that tup_pack adds, so these modes stay as
  // they are.
  both[0] = tile && tup_rank(t) != 1 ? t : tup_pack(cx, &t, 1);
  both[1] = tup_rank(r) != 1 ? r : tup_pack(cx, &r, 1);
  l.shape = tup_cat(cx, both, 2);
  return l;
}

static Layout zipped(Ctx *cx, const char *op, Layout l, Tiler t, Step *f) {
  Layout r = f == product_one ? product(cx, op, l, t) : apply(cx, op, l, t, f);
  if (!splits(r.shape, profile_of(cx, t))) {
    Note nt = {.op = op, .a = &l, .bt = &t, .mode = -1};
    note_fail(cx, &nt, "a tiler entry `_` leaves a mode whole, with no tile "
              "and rest to separate",
              "write the mode's extent here; logical_divide and "
              "logical_product allow `_`");
  }
  return layout_tile_unzip(cx, r, t);
}

Layout layout_zipped_divide(Ctx *cx, Layout l, Tiler t) {
  return zipped(cx, "zipped_divide", l, t, divide_one);
}

Layout layout_tiled_divide(Ctx *cx, Layout l, Tiler t) {
  return open_modes(cx, zipped(cx, "tiled_divide", l, t, divide_one), false);
}

Layout layout_flat_divide(Ctx *cx, Layout l, Tiler t) {
  return open_modes(cx, zipped(cx, "flat_divide", l, t, divide_one), true);
}

Layout layout_zipped_product(Ctx *cx, Layout l, Tiler t) {
  return zipped(cx, "zipped_product", l, t, product_one);
}

Layout layout_tiled_product(Ctx *cx, Layout l, Tiler t) {
  return open_modes(cx, zipped(cx, "tiled_product", l, t, product_one), false);
}

Layout layout_flat_product(Ctx *cx, Layout l, Tiler t) {
  return open_modes(cx, zipped(cx, "flat_product", l, t, product_one), true);
}

// ---- rank-sensitive products ----

static Layout rank_product(Ctx *cx, const char *op, Layout l, Layout t,
                           bool raked) {
  Layout block = layout_inner(l);
  int r = layout_rank(block) > layout_rank(t) ? layout_rank(block)
                                              : layout_rank(t);
  Layout one = layout_leaf(cx, (Dim){1}, (Dim){0});
  Note nt = {.op = op, .a = &l, .bl = &t, .mode = -1};
  block = layout_append_to(cx, block, r, one);
  Layout tiler = layout_append_to(cx, t, r, one);
  Layout p = product_one(cx, &nt, block, tiler);
  Layout m[2] = {layout_inner(layout_mode(cx, p, raked)),
                 layout_inner(layout_mode(cx, p, !raked))};
  if (tup_is_leaf(m[1].shape) && !tup_is_leaf(m[0].shape))
    // m[0] is a tuple, so m[1] must also be a tuple, of one mode.
    m[1] = layout_concat(cx, &m[1], 1);
  Layout z = layout_zip_of(cx, m, 2);
  if (p.outer) return layout_outer(z, p);
  return layout_outer(z, l);
}

Layout layout_blocked_product(Ctx *cx, Layout l, Layout t) {
  return rank_product(cx, "blocked_product", l, t, false);
}

Layout layout_raked_product(Ctx *cx, Layout l, Layout t) {
  return rank_product(cx, "raked_product", l, t, true);
}

Layout layout_tile_to_shape(Ctx *cx, Layout block, Tup shape, Tup order) {
  int r = tup_rank(shape);
  if (layout_rank(block) > r)
    ctx_fail(cx, ERR_INADMISSIBLE,
             "tile_to_shape: %s has more modes than the shape %s",
             layout_text(cx, block), tup_text(cx, shape));
  Layout one = layout_leaf(cx, (Dim){1}, (Dim){0});
  Layout b = layout_append_to(cx, layout_inner(block), r, one);
  tup_need_elements(cx, "tile_to_shape", b.shape);
  Tup have = tup_product_each(cx, b.shape);
  Tup want = tup_product_each(cx, shape);
  for (int k = 0; tup_static(want) && k < r; k++)
    if (tup_first(want)[k].w < 1)
      ctx_fail(cx, ERR_INADMISSIBLE, "tile_to_shape: the shape %s has %lld in "
               "mode %d; 1 or more is needed", tup_text(cx, shape),
               (long long)tup_first(want)[k].w, k);
  if (tup_static(want) && !tup_evenly_divides(cx, want, have)) {
    Note nt = {.op = "tile_to_shape", .a = &block, .bs = shape, .mode = 0};
    Tup w = tup_first(want), h = tup_first(have);
    for (; w->w % h->w == 0; nt.mode++, w++, h++) {}
    note_fail(cx, &nt,
              arena_printf(cx, &cx->scratch,
                           "the block's extent %lld does not divide the "
                           "shape's %lld",
                           (long long)h->w, (long long)w->w), NULL);
  }
  Tup times = tup_ceil_div(cx, want, have);
  Layout t = layout_ordered(cx, times, order);
  return layout_outer(rank_product(cx, "tile_to_shape", b, t, false), block);
}

Tup layout_ceil_div(Ctx *cx, Tup shape, Tiler t) {
  if (t.kind == TILER_LAYOUT) {
    Note nt = {.op = "ceil_div", .a = &t.l, .bs = shape, .mode = -1};
    return complement_in(cx, &nt, t.l, shape).shape;
  }
  if (t.kind == TILER_ANY) return shape;
  int n = tup_rank(shape);
  if (t.n > n)
    ctx_fail(cx, ERR_SHAPE, "ceil_div: the tiler %s has more modes than %s",
             tiler_text(cx, t), tup_text(cx, shape));
  TupB b = {0};
  tupb_open(cx, &b);
  Tup m = tup_first(shape);
  for (int i = 0; i < n; i++, m = tup_next(m))
    tupb_put(cx, &b, i < t.n ? layout_ceil_div(cx, m, t.mode[i]) : m);
  tupb_close(cx, &b);
  return tupb_done(cx, &b);
}

// ---- element width ----

static int64_t check_factor(Ctx *cx, const char *op, Layout l, int64_t n) {
  if (n < 1)
    ctx_fail(cx, ERR_ARG, "%s: the factor must be positive, not %lld", op,
             (long long)n);
  if (layout_has_basis(l))
    ctx_fail(cx, ERR_INADMISSIBLE, "%s: strides that are bases give "
             "coordinates, which have no element width: %s", op,
             layout_text(cx, l));
  return n;
}

// Converts the extent *s and the stride *d of a mode to elements that are n
// times as wide.
static void up_leaf(Ctx *cx, Note *nt, Dim *s, Dim *d, int64_t n) {
  Dim by = dim_int(cx, n), v = *d;
  if (dim_is(v, 0)) return;
  if (!dim_static(v)) {
    nt->trust |= !traced_divides(cx, by, v);
    *d = dim_quo(cx, *d, by);
    return;
  }
  if (v.w % n != 0 && n % v.w != 0 && !dim_is(*s, 1)) {
    note_fail(cx, nt,
              arena_printf(cx, &cx->scratch,
                           "neither stride %lld nor factor %lld divides the "
                           "other",
                           (long long)v.w, (long long)n), NULL);
    return;
  }
  Dim abs = dim_abs(cx, v);
  *s = dim_ceil_div(cx, *s, dim_ceil_div(cx, by, abs));
  *d = dim_ceil_div(cx, abs, by);
  if (v.w < 0) d->w = -d->w;
}

static Layout change(Ctx *cx, Note *nt, Layout l, int64_t n, bool up) {
  size_t k = tup_leaves(l.shape);
  Dim *s = NEW(cx, Dim, k + 1), *d = NEW(cx, Dim, k + 1);
  if (layout_has_xor(l))
    note_fail(cx, nt, "XORed strides cannot be scaled", NULL);
  tup_collect(l.shape, s);
  for (size_t i = 0; i < k; i++) {
    d[i] = l.stride[i];
    if (up)
      up_leaf(cx, nt, &s[i], &d[i], n);
    else if (dim_is(d[i], 1) || dim_is(d[i], -1))
      s[i] = dim_mul(cx, s[i], dim_int(cx, n));
    else
      d[i] = dim_mul(cx, d[i], dim_int(cx, n));
  }
  l.shape = tup_like(cx, l.shape, s);
  l.stride = d;
  return l;
}

// Converts plain layout l with stride 1 to elements that are n times as wide
// (up) or 1/n as wide. l must map runs of n coordinates to runs of n offsets.
static Layout cast_runs(Ctx *cx, Note *nt, Layout l, int64_t n, bool up) {
  Flat f = flat_coalesce(cx, flat_of(cx, l), true);
  Dim by = dim_int(cx, n);
  bool ok = dim_is(f.d[0], 1);
  for (int i = 0; i < f.n && ok && up; i++)
    ok = i ? dim_div(cx, f.d[i]) % n == 0
           : f.n == 1 || dim_div(cx, f.s[i]) % n == 0;
  if (!ok) {
    note_fail(cx, nt, arena_printf(
      cx, &cx->scratch, "%s does not keep runs of %lld elements contiguous",
      layout_text(cx, l), (long long)n), NULL);
    return l;
  }
  f.s[0] = up ? dim_ceil_div(cx, f.s[0], by) : dim_mul(cx, f.s[0], by);
  for (int i = 1; i < f.n; i++)
    f.d[i] = up ? dim_quo(cx, f.d[i], by) : dim_mul(cx, f.d[i], by);
  return flat_layout(cx, f);
}

// Converts the outer functions of l to elements that are n times as wide (up)
// or 1/n as wide.
static Layout cast_outer(Ctx *cx, Note *nt, Layout l, int64_t n, bool up) {
  Outer *f = NEW(cx, Outer, 1);
  *f = *l.outer;
  if (f->kind == OUTER_FN || l.at)
    note_fail(cx, nt, "a layout with a function or with coordinates cannot be "
              "recast to elements of another width", NULL);
  if (up && dim_div(cx, l.offset) % n != 0)
    note_fail(cx, nt, "the layout's offset is not divisible by the factor",
              NULL);
  l.offset = up ? dim_quo(cx, l.offset, dim_int(cx, n))
                : dim_mul(cx, l.offset, dim_int(cx, n));
  l.outer = f;
  if (f->kind == OUTER_LAYOUT)
    f->l = layout_outer(cast_runs(cx, nt, layout_inner(f->l), n, up), f->l);
  else
    f->sw = up ? swizzle_upcast(cx, f->sw, n) : swizzle_downcast(cx, f->sw, n);
  if (f->l.outer) f->l = cast_outer(cx, nt, f->l, n, up);
  return l;
}

Layout layout_upcast(Ctx *cx, Layout l, int64_t n) {
  Note nt = {.op = "upcast", .a = &l, .mode = -1};
  check_factor(cx, "upcast", l, n);
  Layout r = change(cx, &nt, l, n, true);
  traced_claim(cx, &nt, TRACED_UPCAST, l,
               layout_leaf(cx, dim_int(cx, n), (Dim){0}), r);
  return l.outer && n > 1 ? cast_outer(cx, &nt, r, n, true) : r;
}

Layout layout_downcast(Ctx *cx, Layout l, int64_t n) {
  Note nt = {.op = "downcast", .a = &l, .mode = -1};
  check_factor(cx, "downcast", l, n);
  bool unit = false;
  size_t k = tup_leaves(l.shape);
  for (size_t i = 0; i < k; i++)
    unit = unit || dim_is(l.stride[i], 1);
  if (!unit)
    note_fail(cx, &nt, "no mode has stride 1: elements are not adjacent",
              NULL);
  Layout r = change(cx, &nt, l, n, false);
  return l.outer && n > 1 ? cast_outer(cx, &nt, r, n, false) : r;
}

Layout layout_recast(Ctx *cx, Layout l, int64_t old_bits, int64_t new_bits) {
  check_factor(cx, "recast_layout", l, old_bits);
  check_factor(cx, "recast_layout", l, new_bits);
  Dim was = dim_int(cx, old_bits), is = dim_int(cx, new_bits);
  int64_t g = dim_value(dim_gcd(cx, was, is));
  int64_t num = new_bits / g, den = old_bits / g;
  if (num != 1) l = layout_upcast(cx, l, num);
  return den == 1 ? l : layout_downcast(cx, l, den);
}

// ---- thread-value layouts ----

Layout layout_tv(Ctx *cx, Layout thr, Layout val, Tup *tiler) {
  Layout mn = layout_raked_product(cx, thr, val);
  Dim n[2] = {layout_size(cx, thr), layout_size(cx, val)};
  Layout tv = layout_compact(cx, tup_of(cx, n, 2));
  *tiler = tup_product_each(cx, mn.shape);
  return layout_compose(cx, layout_right_inverse(cx, mn), tv);
}
// SPDX-License-Identifier: MIT
