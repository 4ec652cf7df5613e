// Layouts with traced extents. If the algebra cannot decide a condition while
// tracing, the kernel asserts it. The simulator checks the assertion with the
// actual numbers of a launch.
#include "layout/inside.h"

bool traced_divides(Ctx *cx, Dim by, Dim n) {
  if (dim_eq(by, n)) return true;
  return dim_static(by) && by.w != 0 && dim_div(cx, n) % by.w == 0;
}

bool traced_positive(Ctx *cx, Dim d) {
  return !dim_dynamic(d) || ir_fact(ir_fn(cx), dim_getref(d)).lo > 0;
}

// ---- assertions: the words of shape and stride, layout by layout ----

static void put_words(Ctx *cx, TracedRule rule, const Dim *w, size_t n) {
  for (size_t i = 0; i < n; i++)
    ir_claim(cx, ir_fn(cx), (Claim){
      .rule = rule, .more = true, .lo = w[i].w,
      .v = dim_dynamic(w[i]) ? dim_getref(w[i]) : 0});
}

void traced_claim(Ctx *cx, Note *nt, TracedRule rule, Layout a, Layout b,
                  Layout r) {
  Fn *fn = ir_fn(cx);
  bool open = nt->trust && !nt->bad && fn && !fn->aside;
  nt->trust = false;
  if (!open || b.outer) return;
  const Layout *l[3] = {&a, &b, &r};
  for (int i = 0; i < 3; i++) {
    put_words(cx, rule, l[i]->shape, tup_words(l[i]->shape));
    put_words(cx, rule, l[i]->stride, tup_leaves(l[i]->shape));
  }
  fn->claim.p[fn->claim.n - 1].more = false;
}

void traced_read(const Dim *word, Layout l[3]) {
  for (int i = 0; i < 3; i++) {
    l[i] = (Layout){.shape = word, .stride = word + tup_words(word)};
    word = l[i].stride + tup_leaves(l[i].shape);
  }
}

Dim traced_word(Ctx *cx, Dim word, int64_t v) {
  int path[DIM_LEVELS], n = dim_basis_path(word, path);
  return dim_basis(cx, dim_int(cx, v), path, n);
}

// ---- checks with known extents ----

// Returns text that describes the first index where layouts s and r differ, or
// NULL. `longer` states whether r may have more elements than s. `mode` is text
// that names the compared mode.
static const char *differ(Ctx *cx, Layout s, Layout r, bool longer,
                          const char *mode) {
  int64_t n = layout_size(cx, s).w, m = layout_size(cx, r).w;
  if (m < n || (m > n && !longer))
    return arena_printf(cx, &cx->scratch, "%lld elements%s, not %lld",
                        (long long)m, mode, (long long)n);
  if (layout_eq(layout_coalesce(cx, s), layout_coalesce(cx, r))) return NULL;
  Flat f = flat_of(cx, s), g = flat_of(cx, r);
  for (int64_t i = 0; i < n && i < LOOK_MAX; i++)
    if (flat_at(f, i) != flat_at(g, i))
      return arena_printf(cx, &cx->scratch, "a different offset at "
                          "coordinate %lld%s", (long long)i, mode);
  return NULL;
}

const char *traced_differs(Ctx *cx, TracedRule rule, Layout a, Layout b,
                           Layout r) {
  static const char *const verbs[] = {
    [TRACED_NONE] = "", [TRACED_COMPOSE] = "composed with",
    [TRACED_DIVIDE] = "divided by", [TRACED_PRODUCT] = "times",
    [TRACED_COMPLEMENT] = "", [TRACED_UPCAST] = "upcast by"};
  Layout s = a;
  switch (rule) {
    case TRACED_COMPOSE: s = layout_compose(cx, a, b); break;
    case TRACED_DIVIDE:
      s = layout_logical_divide(cx, a, tiler_layout(b));
      break;
    case TRACED_PRODUCT:
      s = layout_logical_product(cx, a, tiler_layout(b));
      break;
    case TRACED_COMPLEMENT: s = layout_complement(cx, a, b.shape); break;
    case TRACED_UPCAST:
      s = layout_upcast(cx, a, layout_size(cx, b).w);
      break;
    case TRACED_NONE: return NULL;
  }
  const char *why = NULL;
  if (rule == TRACED_DIVIDE || rule == TRACED_PRODUCT) {
    why = differ(cx, layout_mode(cx, s, 0), layout_mode(cx, r, 0), false,
                 " in mode 0");
    if (!why)
      why = differ(cx, layout_mode(cx, s, 1), layout_mode(cx, r, 1),
                   rule == TRACED_DIVIDE, " in mode 1");
  } else {
    why = differ(cx, s, r, rule == TRACED_COMPLEMENT, "");
  }
  if (!why) return NULL;
  if (rule == TRACED_COMPLEMENT)
    return arena_printf(
      cx, &cx->scratch, "the complement of %s in %s is %s, but was traced as "
      "%s, which has %s", layout_text(cx, a), tup_text(cx, b.shape),
      layout_text(cx, s), layout_text(cx, r), why);
  return arena_printf(
    cx, &cx->scratch, "%s %s %s is %s, but was traced as %s, which has %s",
    layout_text(cx, a), verbs[rule],
    rule == TRACED_UPCAST ? tup_text(cx, b.shape) : layout_text(cx, b),
    layout_text(cx, s), layout_text(cx, r), why);
}
// SPDX-License-Identifier: MIT
