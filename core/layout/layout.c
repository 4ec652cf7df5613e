// Implements Layout: construction, queries, mode edits, coalescing,
// coordinates.
#include "layout/composed.h"
#include "layout/inside.h"

#include <string.h>

// ---- construction ----

static Layout plain(Tup shape, const Dim *stride) {
  return (Layout){.shape = shape, .stride = stride};
}

static void check_shape(Ctx *cx, Tup shape) {
  size_t n = tup_words(shape);
  for (size_t i = 0; i < n; i++) {
    if (!tup_is_leaf(shape + i)) continue;
    DimKind k = dim_kind(shape[i]);
    if (k == DIM_DYN || (k == DIM_INT && shape[i].w >= 0)) continue;
    ctx_fail(cx, ERR_SHAPE, "make_layout: an extent must be an integer of at "
             "least 0, not %s in %s", tup_text(cx, shape + i),
             tup_text(cx, shape));
  }
}

Layout layout_make(Ctx *cx, Tup shape, Tup stride) {
  check_shape(cx, shape);
  if (!tup_congruent(shape, stride))
    ctx_fail(cx, ERR_SHAPE,
             "make_layout: shape %s and stride %s differ in nesting",
             tup_text(cx, shape), tup_text(cx, stride));
  if (tup_has(stride, DIM_ANY))
    ctx_fail(cx, ERR_ARG, "make_layout: `_` is not a stride, in %s",
             tup_text(cx, stride));
  Dim *d = NEW(cx, Dim, tup_leaves(shape));
  tup_collect(stride, d);
  return plain(shape, d);
}

// Returns a layout of two tuples that are known to be congruent.
static Layout of_tups(Ctx *cx, Tup shape, Tup stride) {
  Dim *d = NEW(cx, Dim, tup_leaves(shape));
  tup_collect(stride, d);
  return plain(shape, d);
}

Layout layout_leaf(Ctx *cx, Dim shape, Dim stride) {
  Dim *w = NEW(cx, Dim, 2);
  w[0] = shape;
  w[1] = stride;
  return plain(w, w + 1);
}

Layout layout_unit(Ctx *cx) {
  return layout_leaf(cx, dim_int(cx, 1), dim_int(cx, 0));
}

Layout layout_compact(Ctx *cx, Tup shape) {
  check_shape(cx, shape);
  return of_tups(cx, shape, tup_compact(cx, shape, NULL, false));
}

Layout layout_compact_right(Ctx *cx, Tup shape) {
  check_shape(cx, shape);
  return of_tups(cx, shape, tup_compact(cx, shape, NULL, true));
}

Layout layout_ordered(Ctx *cx, Tup shape, Tup order) {
  check_shape(cx, shape);
  return of_tups(cx, shape, tup_compact_order(cx, shape, order));
}

// Returns the absolute values of l's strides, but leaves traced strides
// unchanged. Callers order l's modes by the result.
static Tup steps(Ctx *cx, Layout l) {
  size_t n = tup_leaves(l.shape);
  Dim *d = NEW(cx, Dim, n);
  for (size_t i = 0; i < n; i++)
    d[i] = dim_static(l.stride[i]) ? dim_abs(cx, l.stride[i]) : l.stride[i];
  return tup_like(cx, l.shape, d);
}

Layout layout_like(Ctx *cx, Layout l) {
  if (layout_has_basis(l) || layout_has_xor(l))
    ctx_fail(cx, ERR_INADMISSIBLE, "make_layout_like: strides that are %s "
             "cannot be ordered: %s", layout_has_xor(l) ? "XORed" : "bases",
             layout_text(cx, l));
  Tup d = steps(cx, l);
  Tup s = tup_filter_zeros(cx, d, l.shape);
  return of_tups(cx, l.shape, tup_compact_order(cx, s, d));
}

Layout layout_fragment_like(Ctx *cx, Layout l) {
  int n = layout_rank(l);
  if (n < 2 || !tup_static(l.shape)) return layout_compact(cx, l.shape);
  Layout v = layout_inner(layout_mode(cx, l, 0));
  Layout rest = layout_take(cx, layout_inner(l), 1, n);
  if (n == 2) rest = layout_mode(cx, rest, 0);
  Tup vd = layout_stride(cx, v);
  vd = tup_compact(cx, tup_filter_zeros(cx, vd, v.shape), NULL, false);
  v = of_tups(cx, v.shape, vd);
  rest = layout_ordered(cx, rest.shape, steps(cx, rest));
  // For two modes, use the logical product, whose result has the nesting of l.
  // CuTe's tiled product would nest `rest` one level deeper.
  return n == 2 ? layout_logical_product(cx, v, tiler_layout(rest))
                : layout_tiled_product(cx, v, tiler_layout(rest));
}

Layout layout_identity(Ctx *cx, Tup shape) {
  check_shape(cx, shape);
  return of_tups(cx, shape, tup_basis_like(cx, shape));
}

// Writes strides for the leaves of `shape` to d. They map a coordinate of
// `shape` to the index of an element of `from`, times `scale`. If `from` is
// NULL, all strides are 0. Returns the position in d after the strides.
static Dim *spread(Ctx *cx, Tup from, Tup shape, Dim scale, Dim *d) {
  bool leaf = from && tup_is_leaf(from);
  if (tup_is_leaf(shape)) {
    *d = leaf && !dim_is(*from, 1) ? scale : dim_int(cx, 0);
    return d + 1;
  }
  bool whole = leaf && dim_eq(*from, tup_size(cx, shape));
  int rank = from ? tup_rank(from) : 0;
  Tup s = tup_first(shape), f = from ? tup_first(from) : NULL;
  for (int i = 0, n = tup_rank(shape); i < n; i++, s = tup_next(s)) {
    Tup part = whole ? s : i < rank ? f : NULL;
    d = spread(cx, part, s, scale, d);
    if (part) scale = dim_mul(cx, scale, tup_size(cx, part));
    if (i < rank) f = tup_next(f);
  }
  return d;
}

Layout layout_broadcast(Ctx *cx, Tup from, Tup shape) {
  Dim *d = NEW(cx, Dim, tup_leaves(shape));
  spread(cx, from, shape, dim_int(cx, 1), d);
  return layout_make(cx, shape, tup_like(cx, shape, d));
}

Layout layout_concat(Ctx *cx, const Layout *l, int n) {
  TupB b = {0};
  size_t leaves = 0;
  tupb_open(cx, &b);
  for (int i = 0; i < n; i++) {
    if (l[i].outer)
      ctx_fail(cx, ERR_INADMISSIBLE,
               "make_layout: a composed layout cannot be a mode: %s",
               layout_text(cx, l[i]));
    tupb_put(cx, &b, l[i].shape);
    leaves += tup_leaves(l[i].shape);
  }
  tupb_close(cx, &b);
  Dim *d = NEW(cx, Dim, leaves), *at = d;
  for (int i = 0; i < n; i++) {
    size_t k = tup_leaves(l[i].shape);
    memcpy(at, l[i].stride, k * sizeof *d);
    at += k;
  }
  return plain(tupb_done(cx, &b), d);
}

Tup layout_stride(Ctx *cx, Layout l) {
  return tup_like(cx, l.shape, l.stride);
}

Layout layout_inner(Layout l) { return plain(l.shape, l.stride); }

Layout layout_outer(Layout l, Layout like) {
  l.offset = like.offset;
  l.at = like.at;
  l.outer = like.outer;
  return l;
}

bool layout_static(Layout l) {
  for (const Layout *p = &l; p; p = layout_next(p)) {
    size_t n = tup_leaves(p->shape), w = tup_words(p->shape);
    for (size_t i = 0; i < n; i++)
      if (dim_dynamic(p->stride[i])) return false;
    for (size_t i = 0; i < w; i++)
      if (dim_dynamic(p->shape[i])) return false;
    if (dim_dynamic(p->offset)) return false;
    for (size_t i = 0; p->at && i < tup_words(p->at); i++)
      if (dim_dynamic(p->at[i])) return false;
  }
  return true;
}

// Reports whether a stride of l is a basis. For a composed layout, checks only
// the strides of the innermost layout.
bool layout_has_basis(Layout l) {
  size_t n = tup_leaves(l.shape);
  for (size_t i = 0; i < n; i++)
    if (dim_kind(l.stride[i]) == DIM_BASIS) return true;
  return false;
}

bool layout_eq(Layout a, Layout b) {
  if (!tup_eq(a.shape, b.shape) || !a.outer != !b.outer) return false;
  if (memcmp(a.stride, b.stride, tup_leaves(a.shape) * sizeof(Dim)) != 0)
    return false;
  if (!dim_eq(a.offset, b.offset) || !a.at != !b.at) return false;
  if (a.at && !tup_eq(a.at, b.at)) return false;
  const Outer *f = a.outer, *g = b.outer;
  if (f == g) return true;
  if (f->kind != g->kind) return false;
  if (f->kind == OUTER_FN && (f->fn->id != g->fn->id ||
                              f->fn->mode != g->fn->mode ||
                              f->fn->run != g->fn->run))
    return false;
  return memcmp(&f->sw, &g->sw, sizeof f->sw) == 0 && layout_eq(f->l, g->l);
}

// Reports whether l can be compared with another layout only by evaluation: l
// has an outer function other than a single swizzle, or XORed strides.
static bool looked_at(Layout l) {
  return (l.outer && !layout_swizzle(l)) || layout_has_xor(l);
}

bool layout_equals(Ctx *cx, Layout a, Layout b) {
  if (layout_eq(a, b)) return true;
  if (!layout_static(a) || !layout_static(b))
    ctx_fail(cx, ERR_STATIC, "equals: only static layouts can be compared as "
             "functions");
  if (!dim_eq(layout_size(cx, a), layout_size(cx, b))) return false;
  if (tup_empty(a.shape)) return true;
  Layout x = layout_outer(layout_coalesce(cx, layout_inner(a)), a);
  Layout y = layout_outer(layout_coalesce(cx, layout_inner(b)), b);
  if (layout_eq(x, y)) return true;
  bool sums = !layout_has_xor(a) && !layout_has_xor(b);
  // Coalesced plain layouts are equal only if their modes are equal.
  if (!a.outer && !b.outer && sums) return false;
  int64_t n = dim_value(layout_size(cx, a));
  if (n > (int64_t)1 << 24)
    ctx_fail(cx, ERR_LIMIT, "equals: composed layouts of more than 2^24 "
             "elements cannot be compared");
  for (int64_t i = 0; i < n; i++) {
    Dim c = dim_int(cx, i);
    if (!tup_eq(layout_eval_tup(cx, x, &c), layout_eval_tup(cx, y, &c)))
      return false;
  }
  return true;
}

// ---- queries ----

int layout_rank(Layout l) { return tup_rank(l.shape); }
Dim layout_size(Ctx *cx, Layout l) { return tup_size(cx, l.shape); }

Layout layout_mode(Ctx *cx, Layout l, int i) {
  Tup m = tup_get(cx, l.shape, i);
  const Dim *d = l.stride;
  for (Tup t = tup_first(l.shape); t != m; t = tup_next(t))
    d += tup_leaves(t);
  return layout_outer(plain(m, d), l);
}

Tup layout_coshape(Ctx *cx, Layout l) {
  if (looked_at(l)) return tup_leaf(cx, layout_cosize(cx, l));
  if (tup_empty(l.shape))
    return tup_repeat_like(cx, layout_coprofile(cx, l), (Dim){0});
  size_t n = tup_leaves(l.shape), k = 0;
  Dim *s = NEW(cx, Dim, n + 1), *term = NULL, sum = {0};
  tup_collect(l.shape, s);
  for (size_t i = 0; i < n; i++) {
    Dim d = dim_abs(cx, l.stride[i]);
    if (dim_is(d, 0)) continue;
    Dim top = dim_mul(cx, dim_sub(cx, s[i], (Dim){1}), d);
    if (dim_kind(top) == DIM_BASIS) {
      if (!term) term = NEW(cx, Dim, n + 1);
      term[k++] = top;
    } else {
      sum = dim_add(cx, sum, top);
    }
  }
  if (!term) return tup_leaf(cx, dim_add(cx, sum, (Dim){1}));
  term[k++] = sum;
  Tup t = tup_from_terms(cx, term, k);
  Dim *leaf = NEW(cx, Dim, tup_leaves(t));
  tup_collect(t, leaf);
  for (size_t i = 0; i < tup_leaves(t); i++)
    leaf[i] = dim_add(cx, leaf[i], (Dim){1});
  return tup_like(cx, t, leaf);
}

Dim layout_cosize(Ctx *cx, Layout l) {
  if (!looked_at(l)) return tup_size(cx, layout_coshape(cx, l));
  return dim_add(cx, layout_reach(cx, l), layout_below(cx, l));
}

Dim layout_reach(Ctx *cx, Layout l) {
  if (!l.outer && !layout_has_xor(l)) return layout_cosize(cx, l);
  if (tup_empty(l.shape)) return (Dim){0};
  bool bound = layout_static(l) && !layout_has_fn(l);
  int64_t lo, hi = bound ? layout_bound(cx, l) : 0;
  if (!bound || dim_value(layout_size(cx, l)) <= LOOK_MAX)
    layout_range(cx, l, &lo, &hi);
  return dim_int(cx, hi + 1);
}

Dim layout_below(Ctx *cx, Layout l) {
  if (tup_empty(l.shape)) return (Dim){0};
  if (looked_at(l)) {
    int64_t lo, hi;
    layout_range(cx, l, &lo, &hi);
    return dim_int(cx, lo < 0 ? -lo : 0);
  }
  Tup s = layout_flatten(cx, l).shape;
  Dim sum = {0};
  s = tup_first(s);
  for (size_t i = 0, n = tup_leaves(l.shape); i < n; i++, s++) {
    Dim d = l.stride[i];
    if (dim_static(d) && d.w < 0)
      sum = dim_add(cx, sum, dim_mul(cx, dim_sub(cx, *s, (Dim){1}),
                                     dim_neg(cx, d)));
  }
  return sum;
}

// ---- mode edits: the same on shape and stride ----

#define BOTH(l, expr_s, expr_d) \
  Tup d = layout_stride(cx, l); \
  return layout_outer(of_tups(cx, expr_s, expr_d), l)

Layout layout_take(Ctx *cx, Layout l, int b, int e) {
  BOTH(l, tup_take(cx, l.shape, b, e), tup_take(cx, d, b, e));
}

Layout layout_select(Ctx *cx, Layout l, const int *i, int n) {
  BOTH(l, tup_select(cx, l.shape, i, n), tup_select(cx, d, i, n));
}

Layout layout_group(Ctx *cx, Layout l, int b, int e) {
  BOTH(l, tup_group(cx, l.shape, b, e), tup_group(cx, d, b, e));
}

static Tup plain_stride(Ctx *cx, const char *op, Layout x) {
  if (x.outer)
    ctx_fail(cx, ERR_INADMISSIBLE,
             "%s: a composed layout cannot become a mode: %s", op,
             layout_text(cx, x));
  return layout_stride(cx, x);
}

Layout layout_append(Ctx *cx, Layout l, Layout x) {
  Tup y = plain_stride(cx, "append", x);
  BOTH(l, tup_append(cx, l.shape, x.shape), tup_append(cx, d, y));
}

Layout layout_prepend(Ctx *cx, Layout l, Layout x) {
  Tup y = plain_stride(cx, "prepend", x);
  BOTH(l, tup_prepend(cx, l.shape, x.shape), tup_prepend(cx, d, y));
}

Layout layout_append_to(Ctx *cx, Layout l, int rank, Layout x) {
  Tup y = plain_stride(cx, "append", x);
  BOTH(l, tup_append_to(cx, l.shape, rank, x.shape),
       tup_append_to(cx, d, rank, y));
}

Layout layout_prepend_to(Ctx *cx, Layout l, int rank, Layout x) {
  Tup y = plain_stride(cx, "prepend", x);
  BOTH(l, tup_prepend_to(cx, l.shape, rank, x.shape),
       tup_prepend_to(cx, d, rank, y));
}

Layout layout_replace(Ctx *cx, Layout l, int i, Layout x) {
  Tup y = plain_stride(cx, "replace", x);
  BOTH(l, tup_replace(cx, l.shape, i, x.shape), tup_replace(cx, d, i, y));
}

Layout layout_flatten(Ctx *cx, Layout l) {
  l.shape = tup_flatten(cx, l.shape);
  return l;
}

Layout layout_unflatten(Ctx *cx, Layout l, Tup profile) {
  BOTH(l, tup_unflatten(cx, l.shape, profile), tup_unflatten(cx, d, profile));
}

Layout layout_zip(Ctx *cx, Layout l) {
  BOTH(l, tup_zip(cx, l.shape), tup_zip(cx, d));
}

Layout layout_zip_of(Ctx *cx, const Layout *l, int n) {
  Tup *s = NEW(cx, Tup, 2 * (size_t)n), *d = s + n;
  for (int i = 0; i < n; i++) {
    s[i] = l[i].shape;
    d[i] = plain_stride(cx, "zip", l[i]);
  }
  return of_tups(cx, tup_zip(cx, tup_pack(cx, s, n)),
                 tup_zip(cx, tup_pack(cx, d, n)));
}

// ---- flat modes, coalescing ----

Flat flat_of(Ctx *cx, Layout l) {
  int n = (int)tup_leaves(l.shape);
  Dim *w = NEW(cx, Dim, 2 * (size_t)n + 2);
  // Each array has room for one more mode, because flat_coalesce turns an empty
  // list into one mode.
  Dim *d = w + n + 1;
  tup_collect(l.shape, w);
  if (n) memcpy(d, l.stride, (size_t)n * sizeof *w);
  return (Flat){w, d, n};
}

Layout flat_layout(Ctx *cx, Flat f) {
  if (f.n == 0) return layout_leaf(cx, (Dim){1}, (Dim){0});
  if (f.n == 1) return layout_leaf(cx, f.s[0], f.d[0]);
  return plain(tup_of(cx, f.s, (size_t)f.n), f.d);
}

// Reports whether s * d is known to equal `next`. Neither fails nor emits
// instructions.
static bool meets(Dim s, Dim d, Dim next) {
  int64_t v;
  // An XORed stride requires an extent that is a power of two.
  if (dim_kind(d) == DIM_XOR)
    return dim_kind(next) == DIM_XOR && dim_static(s) &&
           (s.w & (s.w - 1)) == 0 &&
           !__builtin_mul_overflow(s.w, dim_xor_value(d), &v) &&
           v == dim_xor_value(next);
  if (dim_static(s) && dim_static(d) && dim_static(next))
    return !__builtin_mul_overflow(s.w, d.w, &v) && v == next.w;
  if (!dim_static(s) || dim_dynamic(d) || dim_dynamic(next)) return false;
  if (__builtin_mul_overflow(s.w, dim_basis_value(d).w, &v)) return false;
  if (dim_basis_value(next).w != v) return false;
  int p[DIM_LEVELS], q[DIM_LEVELS];
  int n = dim_basis_path(d, p);
  return n == dim_basis_path(next, q) &&
         memcmp(p, q, (size_t)n * sizeof *p) == 0;
}

// Coalesces modes from the last to the first. The result grows downwards from
// the end of f's arrays.
Flat flat_coalesce(Ctx *cx, Flat f, bool x) {
  if (f.n == 0) {
    f.s[0] = dim_int(cx, x ? 2 : 1);
    f.d[0] = (Dim){0};
    f.n = 1;
    return f;
  }
  // index of the first mode of the result so far
  int top = f.n - 1;
  if (x && dim_is(f.s[top], 1)) f.s[top] = (Dim){2};
  for (int i = f.n - 2; i >= 0; i--) {
    if (dim_is(f.s[i], 1)) continue;
    // After coalescing, only the last mode can have extent 1.
    if (dim_is(f.s[top], 1)) {
      f.s[top] = f.s[i];
      f.d[top] = f.d[i];
    } else if (dim_static(f.s[top]) && meets(f.s[i], f.d[i], f.d[top])) {
      f.s[top] = dim_mul(cx, f.s[i], f.s[top]);
      f.d[top] = f.d[i];
    } else {
      top--;
      f.s[top] = f.s[i];
      f.d[top] = f.d[i];
    }
  }
  if (top == f.n - 1 && dim_is(f.s[top], 1)) f.d[top] = (Dim){0};
  return (Flat){f.s + top, f.d + top, f.n - top};
}

Flat flat_filter(Ctx *cx, Layout l) {
  Flat f = flat_of(cx, l);
  for (int i = 0; i < f.n; i++)
    if (dim_is(f.d[i], 0) && !dim_is(f.s[i], 0)) f.s[i] = (Dim){1};
  return flat_coalesce(cx, f, false);
}

Layout layout_coalesce(Ctx *cx, Layout l) {
  Flat f = flat_coalesce(cx, flat_of(cx, l), false);
  Layout r = layout_outer(flat_layout(cx, f), l);
  if (explain_on(cx) && !layout_eq(l, r))
    explain_say(cx, "coalesce %s: flattened, without extents of 1, contiguous "
                "modes joined: %s",
                layout_text(cx, l), layout_text(cx, r));
  return r;
}

Layout layout_filter(Ctx *cx, Layout l) {
  return layout_outer(flat_layout(cx, flat_filter(cx, l)), l);
}

// Applies f to the sub-layout of l at each leaf of the profile `by`. Modes of l
// beyond the profile are unchanged.
static Layout by_profile(Ctx *cx, const char *op, Layout l, Tup by,
                         Layout (*f)(Ctx *, Layout)) {
  if (!by || tup_is_leaf(by)) return f(cx, l);
  int n = layout_rank(l), k = tup_rank(by);
  if (k > n)
    ctx_fail(cx, ERR_SHAPE, "%s: profile %s has more modes than %s", op,
             tup_text(cx, by), layout_text(cx, l));
  Layout *m = NEW(cx, Layout, (size_t)n);
  by = tup_first(by);
  for (int i = 0; i < n; i++) {
    m[i] = layout_mode(cx, layout_inner(l), i);
    if (i >= k) continue;
    m[i] = by_profile(cx, op, m[i], by, f);
    by = tup_next(by);
  }
  return layout_outer(layout_concat(cx, m, n), l);
}

Layout layout_coalesce_by(Ctx *cx, Layout l, Tup by) {
  return by_profile(cx, "coalesce", l, by, layout_coalesce);
}

Layout layout_filter_by(Ctx *cx, Layout l, Tup by) {
  return by_profile(cx, "filter", l, by, layout_filter);
}

Layout layout_filter_zeros(Ctx *cx, Layout l, Tup guide) {
  if (tup_empty(l.shape)) return l;
  if (!guide) guide = layout_stride(cx, l);
  l.shape = tup_filter_zeros(cx, guide, l.shape);
  return l;
}

// ---- coordinates ----

Tup layout_eval_tup(Ctx *cx, Layout l, Tup coord) {
  return layout_through(cx, l, tup_crd2idx(cx, coord, l.shape, l.stride));
}

Dim layout_eval(Ctx *cx, Layout l, Tup coord) {
  Tup x = layout_eval_tup(cx, l, coord);
  if (!tup_is_leaf(x))
    ctx_fail(cx, ERR_ARG, "an offset was expected, but %s gives coordinates",
             layout_text(cx, l));
  return *x;
}

Dim layout_eval_at(Ctx *cx, Layout l, Dim i) { return layout_eval(cx, l, &i); }

Layout layout_slice_tup(Ctx *cx, Layout l, Tup coord, Tup *offset) {
  if (l.outer) return layout_slice_composed(cx, l, coord, offset);
  *offset = tup_crd2idx(cx, coord, l.shape, l.stride);
  if (layout_has_xor(l) && !dim_is(**offset, 0))
    return layout_slice_composed(cx, layout_linear(cx, l), coord, offset);
  Tup d = layout_stride(cx, l);
  return of_tups(cx, tup_slice(cx, coord, l.shape), tup_slice(cx, coord, d));
}

Layout layout_slice(Ctx *cx, Layout l, Tup coord, Dim *offset) {
  Tup o;
  Layout r = layout_slice_tup(cx, l, coord, &o);
  if (!tup_is_leaf(o))
    ctx_fail(cx, ERR_ARG, "an offset was expected, but %s gives coordinates",
             layout_text(cx, l));
  *offset = *o;
  return r;
}

Layout layout_dice(Ctx *cx, Layout l, Tup coord) {
  BOTH(l, tup_dice(cx, coord, l.shape), tup_dice(cx, coord, d));
}

Layout layout_domain_offset(Ctx *cx, Layout l, Tup coord, Tup *offset) {
  l = layout_linear(cx, l);
  Tup x = tup_crd2idx(cx, coord, l.shape, l.stride);
  *offset = x;
  if (!l.outer) return l;
  *offset = tup_int(cx, 0);
  return layout_with_offset(l, layout_shifted(cx, l, x));
}

// Returns the value that l's innermost layout must have so that the value of l
// is x: applies the inverses of l's outer functions to x.
static Tup before(Ctx *cx, Layout l, Tup x) {
  if (!l.outer) return x;
  const Outer *f = l.outer;
  if (f->kind == OUTER_FN || l.at)
    ctx_fail(cx, ERR_INADMISSIBLE, "an offset has no coordinate in %s, which "
             "cannot be inverted", layout_text(cx, l));
  x = before(cx, f->l, x);
  if (f->kind == OUTER_LAYOUT)
    x = tup_leaf(cx, layout_1d_coord(cx, layout_inner(f->l), x));
  else if (tup_is_leaf(x))
    // A swizzle is its own inverse.
    x = tup_leaf(cx, swizzle_apply(cx, f->sw, *x));
  if (dim_is(l.offset, 0)) return x;
  return tup_add(cx, x, tup_leaf(cx, dim_neg(cx, l.offset)));
}

// Returns the coordinate of l whose offset is x. l must have compact strides in
// some order.
Tup layout_hier_coord(Ctx *cx, Layout l, Tup x) {
  if (layout_has_basis(l) && !l.outer)
    ctx_fail(cx, ERR_INADMISSIBLE, "an offset has no coordinate in %s, which "
             "gives coordinates, not offsets; invert it with left_inverse",
             layout_text(cx, l));
  x = before(cx, l, x);
  if (layout_has_xor(l)) {
    Layout back = layout_left_inverse(cx, layout_inner(l));
    return tup_idx2crd(cx, layout_eval_tup(cx, back, x), l.shape, NULL);
  }
  return tup_idx2crd(cx, x, l.shape, layout_stride(cx, l));
}

Tup layout_flat_coord(Ctx *cx, Layout l, Tup x) {
  Tup top = tup_product_each(cx, l.shape), c = layout_hier_coord(cx, l, x);
  if (tup_rank(top) == 1) top = tup_unwrap(top);
  return tup_idx2crd(cx, tup_crd2idx(cx, c, l.shape, NULL), top, NULL);
}

Dim layout_1d_coord(Ctx *cx, Layout l, Tup x) {
  return *tup_crd2idx(cx, layout_hier_coord(cx, l, x), l.shape, NULL);
}

// ---- storage ----

static size_t own_bytes(Layout l) {
  size_t at = l.at ? tup_words(l.at) : 0;
  return (tup_words(l.shape) + tup_leaves(l.shape) + at) * sizeof(Dim);
}

size_t layout_bytes(Layout l) {
  size_t n = sizeof(Layout) + own_bytes(l);
  for (const Outer *f = l.outer; f; f = f->l.outer)
    n += sizeof(Outer) + own_bytes(f->l);
  return n;
}

// Copies the shape and the strides of *l to mem and makes *l point to the
// copies. Returns the first free address after them.
static char *put_words(Layout *l, char *mem) {
  size_t n = tup_words(l->shape), k = tup_leaves(l->shape);
  Dim *w = (Dim *)(void *)mem;
  memcpy(w, l->shape, n * sizeof *w);
  if (k) memcpy(w + n, l->stride, k * sizeof *w);
  l->shape = w;
  l->stride = w + n;
  w += n + k;
  if (!l->at) return (char *)w;
  size_t a = tup_words(l->at);
  memcpy(w, l->at, a * sizeof *w);
  l->at = w;
  return (char *)(w + a);
}

Layout layout_copy(void *mem, Layout l) {
  Layout *at = mem, *own = at;
  *own = l;
  char *next = put_words(own, (char *)(at + 1));
  while (own->outer) {
    Outer *f = (Outer *)(void *)next;
    *f = *own->outer;
    own->outer = f;
    own = &f->l;
    next = put_words(own, (char *)(f + 1));
  }
  return *at;
}
// SPDX-License-Identifier: MIT
