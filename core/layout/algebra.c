// Implements the composition of layouts, swizzles and tilers, the complement,
// and operations derived from the complement and from inverses.
#include "layout/composed.h"
#include "layout/inside.h"

#include <string.h>

// ---- failures ----

void note_fail(Ctx *cx, Note *nt, const char *what, const char *detail) {
  if (nt->quiet) {
    nt->bad = true;
    return;
  }
  Arena *s = &cx->scratch;
  const char *b = nt->bl ? layout_text(cx, *nt->bl)
                : nt->bt ? tiler_text(cx, *nt->bt)
                : nt->bs ? tup_text(cx, nt->bs) : NULL;
  const char *mode =
    nt->mode >= 0 ? arena_printf(cx, s, " in mode %d", nt->mode) : "";
  const char *tail = b ? arena_printf(cx, s, "\n  right: %s", b) : "";
  const char *more = detail ? arena_printf(cx, s, "\n  %s", detail) : "";
  ctx_fail(cx, nt->many ? ERR_LIMIT : ERR_INADMISSIBLE,
           "%s: %s%s\n  left:  %s%s%s", nt->op, what, mode,
           layout_text(cx, *nt->a), tail, more);
}

bool note_elements(Ctx *cx, Note *nt, Tup shape) {
  if (!nt->quiet) tup_need_elements(cx, nt->op, shape);
  nt->bad = nt->bad || tup_empty(shape);
  return !nt->bad;
}

// ---- composition (plain layouts: compose.c) ----

// Rewrites a o (Sw o 0 o b) as Sw' o 0 o ab, where ab is a o b and Sw' is a
// swizzle of a's offsets. Returns false if the original and the rewritten
// layout differ in an element, or have more than 2^16 elements.
static bool move_swizzle(Ctx *cx, Layout a, Layout b, Layout ab, Layout *r) {
  const Swizzle *sw = layout_swizzle(b);
  Swizzle w;
  if (a.outer || layout_has_basis(a) || !layout_static(a)) return false;
  Dim y = layout_eval_at(cx, a, dim_int(cx, swizzle_yyy(*sw)));
  Dim z = layout_eval_at(cx, a, dim_int(cx, swizzle_zzz(*sw)));
  int64_t n = dim_value(layout_size(cx, b));
  if (!swizzle_test_masks(y.w, z.w, &w) || n > 65536) return false;
  *r = layout_swizzled(cx, w, (Dim){0}, ab);
  for (int64_t i = 0; i < n; i++) {
    Dim x = dim_int(cx, i), at = layout_eval_at(cx, b, x);
    if (!dim_eq(layout_eval_at(cx, a, at), layout_eval_at(cx, *r, x)))
      return false;
  }
  return true;
}

// Returns a o b, where b has an outer function.
static Layout compose_after(Ctx *cx, Layout a, Layout b) {
  Layout r;
  Flat f = flat_coalesce(cx, flat_of(cx, layout_inner(a)), true);
  if (f.n == 1 && dim_is(f.d[0], 1)) return layout_seen_through(cx, b, a);
  if (layout_swizzle(b) && dim_is(b.offset, 0) && layout_static(b)) {
    Note nt = {.op = "composition", .mode = -1, .quiet = true};
    Layout ab = compose_in(cx, &nt, a, layout_inner(b));
    if (!nt.bad && move_swizzle(cx, a, b, ab, &r)) return r;
  }
  return layout_composed(cx, a, (Dim){0}, b);
}

Layout compose_in(Ctx *cx, Note *nt, Layout a, Layout b) {
  if (b.outer) return compose_after(cx, a, b);
  if (layout_has_xor(a) || layout_has_xor(b)) return compose_xor(cx, a, b);
  Layout r = compose_plain(cx, nt, layout_inner(a), b);
  return layout_outer(r, a);
}

// Composes a and b for the public operation nt->op. If traced extents leave it
// undecided whether the result is correct, appends an assertion to the kernel.
static Layout composed(Ctx *cx, Note *nt, Layout a, Layout b) {
  Layout r = compose_in(cx, nt, a, b);
  traced_claim(cx, nt, TRACED_COMPOSE, a, b, r);
  return r;
}

static Layout compose_tiler_in(Ctx *cx, Note *nt, Layout a, Tiler b) {
  if (b.kind == TILER_ANY) return a;
  if (b.kind == TILER_LAYOUT) return composed(cx, nt, a, b.l);
  if (b.n > layout_rank(a)) {
    note_fail(cx, nt, "the tiler has more modes than the layout", NULL);
    return a;
  }
  Layout *m = NEW(cx, Layout, (size_t)b.n);
  for (int i = 0; i < b.n; i++) {
    if (nt->mode < 0 || nt->mode < i) nt->mode = i;
    m[i] = layout_mode(cx, layout_inner(a), i);
    m[i] = compose_tiler_in(cx, nt, m[i], b.mode[i]);
  }
  nt->mode = -1;
  return layout_outer(layout_concat(cx, m, b.n), a);
}

Layout layout_compose(Ctx *cx, Layout a, Layout b) {
  Note nt = {.op = "composition", .a = &a, .bl = &b, .mode = -1,
             .modes = true};
  return composed(cx, &nt, a, b);
}

Layout layout_compose_tiler(Ctx *cx, Layout a, Tiler b) {
  Note nt = {.op = "composition", .a = &a, .bt = &b, .mode = -1};
  return compose_tiler_in(cx, &nt, a, b);
}

Layout layout_compose_swizzle(Ctx *cx, Layout a, Swizzle b) {
  Layout r, domain = layout_compact(cx, a.shape);
  domain = layout_swizzled(cx, b, (Dim){0}, domain);
  if (layout_swizzle(domain) && move_swizzle(cx, a, domain, a, &r)) return r;
  return compose_after(cx, a, domain);
}

Layout layout_with_shape(Ctx *cx, Layout l, Tup shape) {
  Layout b = layout_compact(cx, shape);
  Note nt = {.op = "with_shape", .a = &l, .bs = shape, .mode = -1};
  return composed(cx, &nt, l, b);
}

// ---- complement ----

static Flat coalesce_shape(Ctx *cx, Tup shape) {
  Tup t = tup_coalesce(cx, shape);
  size_t n = tup_leaves(t);
  Flat f = {NEW(cx, Dim, n), NEW(cx, Dim, n), (int)n};
  tup_collect(t, f.s);
  return f;
}

// Sets the strides of f to compact strides. The first one is `first`.
static void compact_from(Ctx *cx, Flat f, Dim first) {
  for (int i = 0; i < f.n; i++) {
    f.d[i] = dim_is(f.s[i], 1) ? (Dim){0} : first;
    if (i + 1 < f.n) first = dim_mul(cx, first, f.s[i]);
  }
}

// Removes the mode with the smallest stride from f and returns it.
static Mode take_least(Flat *f) {
  int at = 0;
  for (int i = 1; i < f->n; i++)
    if (f->d[i].w < f->d[at].w) at = i;
  Mode r = {f->s[at], f->d[at]};
  f->n--;
  for (int i = at; i < f->n; i++) {
    f->s[i] = f->s[i + 1];
    f->d[i] = f->d[i + 1];
  }
  return r;
}

// Returns text that names two coordinates of l with the same offset, or NULL if
// the first 1024 coordinates have different offsets.
static const char *collision(Ctx *cx, Layout l) {
  if (!layout_static(l) || layout_has_basis(l)) return NULL;
  int64_t n = dim_value(layout_size(cx, l));
  if (n > 1024) n = 1024;
  Dim *seen = NEW(cx, Dim, (size_t)n);
  for (int64_t i = 0; i < n; i++) {
    seen[i] = layout_eval_at(cx, l, dim_int(cx, i));
    for (int64_t k = 0; k < i; k++)
      if (dim_eq(seen[k], seen[i]))
        return arena_printf(cx, &cx->scratch,
                            "e.g. coordinates %lld and %lld are both at %lld",
                            (long long)k, (long long)i,
                            (long long)seen[i].w);
  }
  return NULL;
}

static void complement_check(Ctx *cx, Layout l, Flat f) {
  for (int i = 0; i < f.n; i++) {
    if (f.n > 1 && !dim_static(f.d[i])) {
      ctx_fail(cx, ERR_STATIC,
               "complement: a layout with traced strides must have a single "
               "mode, not %s",
               layout_text(cx, l));
    }
  }
}

static void explain_gap(Ctx *cx, Mode r, Dim gap, Dim last) {
  explain_say(cx, "  before mode %s: %s fills the gap",
              layout_text(cx, layout_leaf(cx, r.s, r.d)),
              layout_text(cx, layout_leaf(cx, gap, last)));
}

static void check_cotarget(Ctx *cx, Note *nt, Tup cotarget) {
  size_t n = tup_words(cotarget);
  for (size_t i = 0; i < n; i++)
    if (tup_is_leaf(cotarget + i) && !dim_dynamic(cotarget[i]) &&
        (!dim_static(cotarget[i]) || cotarget[i].w < 1))
      ctx_fail(cx, ERR_SHAPE, "%s: the cotarget %s for the complement of %s is "
               "not made of positive integers", nt->op, tup_text(cx, cotarget),
               layout_text(cx, *nt->a));
}

// Writes to `out` modes that cover the gaps between the modes of f. Returns the
// offset where the modes of f end, or 0 if the modes of f overlap.
static Dim gaps(Ctx *cx, Note *nt, Layout l, Flat f, Flat *out) {
  Dim last = {1};  // offset where the modes visited so far end
  while (f.n) {
    Mode r = take_least(&f);
    bool known = dim_static(r.d) && dim_static(last);
    Dim gap = known ? dim_int(cx, r.d.w / last.w) : dim_quo(cx, r.d, last);
    if (known && r.d.w % last.w != 0) nt->gaps = true;
    if (!known && !traced_divides(cx, last, r.d)) nt->trust = true;
    if (dim_is(gap, 0)) {
      const char *why = arena_printf(
        cx, &cx->scratch, "the modes overlap: stride %lld lies inside the %lld "
                          "offsets of the modes before it",
                          (long long)r.d.w, (long long)last.w);
      const char *eg = nt->quiet ? NULL
                                 : collision(cx, layout_filter(cx, l));
      note_fail(cx, nt, why, eg);
      return gap;
    }
    if (explain_on(cx)) explain_gap(cx, r, gap, last);
    out->s[out->n] = gap;
    out->d[out->n++] = last;
    last = dim_mul(cx, r.d, r.s);
  }
  return last;
}

// Returns the complement of layout l. f has l's coalesced modes, whose strides
// are integers.
static Layout complement_flat(Ctx *cx, Note *nt, Layout l, Flat f,
                              Tup cotarget) {
  // Treat a negative stride as positive. This only shifts the set of offsets,
  // so the gaps between the offsets stay the same.
  for (int i = 0; i < f.n; i++) {
    nt->trust |= !traced_positive(cx, f.d[i]);
    f.d[i] = dim_abs(cx, f.d[i]);
  }
  size_t n = (size_t)f.n;
  Flat out = {NEW(cx, Dim, n + tup_leaves(cotarget) + 1),
              NEW(cx, Dim, n + tup_leaves(cotarget) + 1), 0};
  Dim last = gaps(cx, nt, l, f, &out);
  if (dim_is(last, 0)) return l;
  Flat rest = coalesce_shape(cx, tup_ceil_div(cx, cotarget, &last));
  compact_from(cx, rest, last);
  for (int i = 0; i < rest.n; i++) {
    out.s[out.n] = rest.s[i];
    out.d[out.n++] = rest.d[i];
  }
  if (explain_on(cx))
    explain_say(cx, "  beyond: %s of %s", layout_text(cx,
                flat_layout(cx, rest)), tup_text(cx, cotarget));
  Layout r = flat_layout(cx, flat_coalesce(cx, out, false));
  if (explain_on(cx)) explain_say(cx, "  result %s", layout_text(cx, r));
  return r;
}

Layout complement_in(Ctx *cx, Note *nt, Layout l, Tup cotarget) {
  Flat f = flat_filter(cx, layout_inner(l));
  if (l.outer && !layout_swizzle(l)) {
    note_fail(cx, nt, "a composed layout has no complement: no layout "
              "describes the offsets between its elements",
              "complement(l.outer, n) is the complement of its right side");
    return l;
  }
  if (layout_has_xor(l)) {
    note_fail(cx, nt, "a layout with XORed strides has no complement: no "
              "layout describes the offsets between its elements", NULL);
    return l;
  }
  if (!note_elements(cx, nt, l.shape)) return l;
  check_cotarget(cx, nt, cotarget);
  if (explain_on(cx))
    explain_say(cx, "complement of %s in %s", layout_text(cx, l),
                tup_text(cx, cotarget));
  if (layout_has_basis(l)) return complement_based(cx, nt, l, cotarget);
  if (f.n == 1 && dim_is(f.d[0], 0)) {
    Flat c = coalesce_shape(cx, cotarget);
    compact_from(cx, c, (Dim){1});
    if (explain_on(cx))
      explain_say(cx, "  nothing is taken: result %s",
                  layout_text(cx, flat_layout(cx, c)));
    return flat_layout(cx, c);
  }
  complement_check(cx, l, f);
  return complement_flat(cx, nt, l, f, cotarget);
}

// Reports whether x is an offset of an element of f, whose modes are sorted and
// disjoint.
static bool takes(Flat f, int64_t x) {
  for (int i = f.n - 1; i >= 0; i--) {
    int64_t d = f.d[i].w ? f.d[i].w : 1, own = x / d;
    if (own >= f.s[i].w) return false;
    x -= own * d;
  }
  return x == 0;
}

// Checks that l and r have no offset in common. r is the complement of l
// without the outer functions of l.
static void check_free(Ctx *cx, Note *nt, Layout l, Layout r) {
  Flat f = flat_of(cx, r);
  if (!layout_static(l) || !layout_static(r) || layout_has_basis(r)) return;
  int64_t n = dim_value(layout_size(cx, l));
  if (n > LOOK_MAX)
    note_fail(cx, nt, "the layout has too many elements to check that its "
              "complement shares no offset with it", NULL);
  for (int64_t i = 0; i < n; i++) {
    Dim x = layout_eval_at(cx, l, dim_int(cx, i));
    if (x.w <= 0 || !takes(f, x.w)) continue;
    note_fail(cx, nt, "an outer function moves an element to an offset "
              "of the complement",
              arena_printf(
      cx, &cx->scratch, "e.g. coordinate %lld is at %lld, which is in %s",
      (long long)i, (long long)x.w, layout_text(cx, r)));
  }
}

Layout layout_complement(Ctx *cx, Layout l, Tup cotarget) {
  Note nt = {.op = "complement", .a = &l, .bs = cotarget, .mode = -1};
  if (!cotarget) {
    Flat f = flat_filter(cx, layout_inner(l));
    cotarget = layout_coshape(cx, flat_layout(cx, f));
  }
  Layout r = complement_in(cx, &nt, l, cotarget);
  if (l.outer) check_free(cx, &nt, l, r);
  Layout room = layout_compact(cx, cotarget);
  traced_claim(cx, &nt, TRACED_COMPLEMENT, l, room, r);
  return r;
}

// ---- nullspace ----

Layout layout_nullspace(Ctx *cx, Layout l) {
  tup_need_elements(cx, "nullspace", l.shape);
  for (const Layout *p = &l; p; p = layout_next(p))
    if (!dim_is(p->offset, 0) || p->at)
      return layout_leaf(cx, (Dim){1}, (Dim){0});
  Flat f = flat_of(cx, l);
  Flat out = {NEW(cx, Dim, (size_t)f.n + 1), NEW(cx, Dim, (size_t)f.n + 1), 0};
  Dim *pre = flat_prefix(cx, f);
  for (int i = 0; i < f.n; i++) {
    if (!dim_is(f.d[i], 0)) continue;
    out.s[out.n] = f.s[i];
    out.d[out.n++] = dim_is(f.s[i], 1) ? (Dim){0} : pre[i];
  }
  return flat_layout(cx, out);
}

// ---- common vectors ----

// Returns the first mode of a o inv, where inv is the inverse of layout b, if
// that mode is static with stride 1. Otherwise returns 1:0.
static Layout common_mode(Ctx *cx, Layout a, Layout inv) {
  Note nt = {.op = "max_common_layout", .a = &a, .mode = -1, .quiet = true};
  Layout one = layout_leaf(cx, (Dim){1}, (Dim){0});
  Layout c = compose_in(cx, &nt, a, inv);
  if (nt.bad || c.outer || tup_empty(c.shape)) return one;
  c = layout_mode(cx, layout_coalesce(cx, c), 0);
  return dim_static(*c.shape) && dim_is(c.stride[0], 1) ? c : one;
}

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

// Returns the length of the aligned runs of consecutive offsets that l's outer
// functions keep consecutive. Ignores the offset of l itself.
static int64_t run_of(Ctx *cx, Layout l) {
  l.offset = (Dim){0};
  l.at = NULL;
  return layout_grain(cx, l);
}

static bool same_swizzle(Layout a, Layout b) {
  const Swizzle *s = layout_swizzle(a), *t = layout_swizzle(b);
  return s && t && memcmp(s, t, sizeof *s) == 0;
}

Layout layout_max_common_layout(Ctx *cx, Layout a, Layout b) {
  if (a.outer && !b.outer) {
    Layout c = a;
    a = layout_inner(a);
    Layout r = layout_max_common_layout(cx, a, b);
    int64_t base = run_of(cx, c);
    if (base >= dim_value(layout_size(cx, r))) return r;
    return layout_compose(cx, r, layout_leaf(cx, dim_int(cx, base), (Dim){1}));
  }
  if (b.outer && !a.outer) return layout_max_common_layout(cx, b, a);
  // Equal swizzles map equal offsets to equal offsets, so it suffices to
  // compare the layouts without their swizzles.
  if (b.outer) {
    Layout r = layout_max_common_layout(cx, layout_inner(a), layout_inner(b));
    int64_t base = least(run_of(cx, a), run_of(cx, b));
    if (same_swizzle(a, b) || base >= dim_value(layout_size(cx, r))) return r;
    return layout_compose(cx, r, layout_leaf(cx, dim_int(cx, base), (Dim){1}));
  }
  Layout inv = inverse_offsets(cx, b);
  Layout v = common_mode(cx, a, inv);
  if (dim_is(*v.shape, 1)) return v;
  return layout_compose(cx, inv, v);
}

int64_t layout_max_common_vector(Ctx *cx, Layout a, Layout b) {
  Layout inv = inverse_offsets(cx, layout_inner(b));
  Layout v = common_mode(cx, layout_inner(a), inv);
  int64_t n = dim_value(*v.shape);
  if (same_swizzle(a, b)) return n;
  return least(n, least(run_of(cx, a), run_of(cx, b)));
}

int64_t layout_max_alignment(Ctx *cx, Layout l) {
  if (layout_has_xor(l)) return 1;
  if (l.outer) {
    Dim in = dim_int(cx, layout_max_alignment(cx, layout_inner(l)));
    return dim_value(dim_gcd(cx, dim_int(cx, layout_grain(cx, l)), in));
  }
  Flat f = flat_coalesce(cx, flat_of(cx, l), false);
  for (int i = 0; i < f.n; i++) {
    if (!dim_static(f.s[i])) f.s[i] = (Dim){1};
    if (!dim_static(f.d[i])) f.d[i] = (Dim){0};
  }
  Layout s = flat_layout(cx, f);
  Note nt = {.op = "max_alignment", .a = &l, .mode = -1, .quiet = true};
  Layout inv = inverse_offsets(cx, s);
  Layout pair[2] = {inv, complement_in(cx, &nt, inv, s.shape)};
  if (nt.bad) return 1;
  Layout p = compose_in(cx, &nt, s, layout_concat(cx, pair, 2));
  if (nt.bad) return 1;
  Dim g = layout_size(cx, layout_mode(cx, p, 0));
  Layout rest = layout_mode(cx, p, 1);
  size_t n = tup_leaves(rest.shape);
  for (size_t i = 0; i < n; i++) g = dim_gcd(cx, g, rest.stride[i]);
  return dim_value(g);
}

Layout layout_domain_distribute(Ctx *cx, Tup shape, int64_t parts) {
  Dim n = dim_int(cx, parts);
  if (!tup_static(shape))
    ctx_fail(cx, ERR_STATIC, "domain_distribute: the shape must be static");
  tup_need_elements(cx, "domain_distribute", shape);
  size_t k = tup_leaves(shape);
  Flat f = {NEW(cx, Dim, k + 1), NEW(cx, Dim, k + 1), (int)k};
  tup_collect(shape, f.s);
  compact_from(cx, f, (Dim){1});
  for (int i = 0; i < f.n; i++) {
    f.s[i] = dim_gcd(cx, f.s[i], n);
    n = dim_quo(cx, n, f.s[i]);
  }
  return flat_layout(cx, flat_coalesce(cx, f, false));
}
// SPDX-License-Identifier: MIT
