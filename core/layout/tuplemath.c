// IntTuple arithmetic: products, divisions, comparisons, coordinates and
// compact strides.
#include "layout/tuple.h"

static _Noreturn void mismatch(Ctx *cx, const char *op, Tup a, Tup b) {
  ctx_fail(cx, ERR_SHAPE, "%s: %s and %s do not match", op, tup_text(cx, a),
           tup_text(cx, b));
}

// ---- folds over the leaves ----

#define EACH_LEAF(t, d, body) \
  for (size_t i_ = 0, n_ = tup_words(t); i_ < n_; i_++) \
    if (tup_is_leaf((t) + i_)) { \
      Dim d = (t)[i_]; \
      body; \
    }

Dim tup_size(Ctx *cx, Tup t) {
  if (tup_is_leaf(t)) return *t;
  Dim p = {1};
  EACH_LEAF(t, d, p = dim_mul(cx, p, d))
  return p;
}

Dim tup_sum(Ctx *cx, Tup t) {
  Dim p = {0};
  EACH_LEAF(t, d, p = dim_add(cx, p, d))
  return p;
}

bool tup_empty(Tup t) {
  EACH_LEAF(t, d, if (dim_is(d, 0)) return true)
  return false;
}

void tup_need_elements(Ctx *cx, const char *op, Tup shape) {
  if (tup_empty(shape))
    ctx_fail(cx, ERR_SHAPE, "%s: an extent of 0 leaves no elements: %s", op,
             tup_text(cx, shape));
}

typedef Dim Fold2(Ctx *cx, Dim a, Dim b);

static Dim fold(Ctx *cx, const char *op, Tup t, Fold2 *f) {
  bool first = true;
  Dim p = {0};
  EACH_LEAF(t, d, p = first ? d : f(cx, p, d); first = false)
  if (first) ctx_fail(cx, ERR_ARG, "%s of the empty tuple", op);
  return p;
}

Dim tup_min(Ctx *cx, Tup t) { return fold(cx, "min", t, dim_min); }
Dim tup_max(Ctx *cx, Tup t) { return fold(cx, "max", t, dim_max); }

static _Noreturn void no_integer(Ctx *cx, const char *op, Dim d) {
  // arena_printf copies the text, so that `out` can be freed before the error.
  Buf out = {0};
  dim_print(cx, d, &out);
  const char *s = arena_printf(cx, &cx->scratch, "%s", out.p);
  buf_free(&out);
  ctx_fail(cx, ERR_ARG, "%s: an integer is needed, not %s", op, s);
}

Dim tup_gcd(Ctx *cx, Tup t) {
  Dim p = {0};
  EACH_LEAF(t, d, if (dim_kind(d) > DIM_DYN) no_integer(cx, "gcd", d);
            p = dim_gcd(cx, p, d))
  return p;
}

Tup tup_product_each(Ctx *cx, Tup t) {
  TupB b = {0};
  tupb_open(cx, &b);
  Tup m = tup_first(t);
  for (int i = 0, n = tup_rank(t); i < n; i++, m = tup_next(m))
    tupb_leaf(cx, &b, tup_size(cx, m));
  tupb_close(cx, &b);
  return tupb_done(cx, &b);
}

Tup tup_coalesce(Ctx *cx, Tup t) {
  Dim *d = NEW(cx, Dim, tup_leaves(t) + 1);
  size_t n = 0;
  d[0] = (Dim){1};
  EACH_LEAF(t, s,
    if (n && dim_static(d[n - 1]) == dim_static(s))
      d[n - 1] = dim_mul(cx, d[n - 1], s);
    else
      d[n++] = s;)
  return n > 1 ? tup_of(cx, d, n) : tup_leaf(cx, d[0]);
}

// ---- element-wise maps ----

typedef void Map2(Ctx *cx, TupB *b, Tup x, Tup y);

static Tup mapped(Ctx *cx, Map2 *f, Tup x, Tup y) {
  TupB b = {0};
  f(cx, &b, x, y);
  return tupb_done(cx, &b);
}

// Applies f to each pair of modes of x and y, and appends the results as one
// tuple. With `pad`, y may have fewer modes; the missing ones are 1.
static void zip_map(Ctx *cx, TupB *b, const char *op, Tup x, Tup y, Map2 *f,
                    bool pad) {
  static const Dim one = {1};
  int n = tup_rank(x), k = tup_rank(y);
  if (k > n || (k < n && !pad)) mismatch(cx, op, x, y);
  tupb_open(cx, b);
  x = tup_first(x);
  y = tup_first(y);
  for (int i = 0; i < n; i++, x = tup_next(x)) {
    f(cx, b, x, i < k ? y : &one);
    if (i < k) y = tup_next(y);
  }
  tupb_close(cx, b);
}

static void product_like(Ctx *cx, TupB *b, Tup t, Tup guide) {
  if (tup_is_leaf(guide))
    tupb_leaf(cx, b, tup_size(cx, t));
  else if (tup_is_leaf(t))
    mismatch(cx, "product_like", t, guide);
  else
    zip_map(cx, b, "product_like", t, guide, product_like, false);
}

Tup tup_product_like(Ctx *cx, Tup t, Tup guide) {
  return mapped(cx, product_like, t, guide);
}

// Divides the shape t by `by`, starting with the first mode: divides each mode
// by the largest possible part of `by`, and the following modes by the rest of
// `by`.
static void div_fold(Ctx *cx, TupB *b, Tup t, Dim by, Fold2 *div) {
  tupb_open(cx, b);
  Tup m = tup_first(t);
  for (int i = 0, n = tup_rank(t); i < n; i++, m = tup_next(m)) {
    Dim s = tup_size(cx, m);
    if (tup_is_leaf(m))
      tupb_leaf(cx, b, div(cx, *m, by));
    else
      div_fold(cx, b, m, by, div);
    if (i + 1 < n) by = div(cx, by, s);
  }
  tupb_close(cx, b);
}

static void map_shape_div(Ctx *cx, TupB *b, Tup x, Tup y) {
  if (tup_is_leaf(x))
    tupb_leaf(cx, b, dim_ceil_div(cx, *x, tup_size(cx, y)));
  else if (tup_is_leaf(y))
    div_fold(cx, b, x, *y, dim_ceil_div);
  else
    zip_map(cx, b, "shape_div", x, y, map_shape_div, false);
}

// Finds the first pair of static leaves of x and y where neither divides the
// other.
static bool undivided(Ctx *cx, Tup x, Tup y, Dim bad[2]) {
  if (tup_is_leaf(x)) {
    Dim b = tup_size(cx, y);
    bad[0] = *x;
    bad[1] = b;
    return dim_static(*x) && dim_static(b) && b.w && x->w % b.w != 0 &&
           (!x->w || b.w % x->w != 0);
  }
  bool each = !tup_is_leaf(y);
  int n = tup_rank(x);
  // map_shape_div reports the different ranks.
  if (each && tup_rank(y) != n) return false;
  Dim by = *y;
  x = tup_first(x);
  if (each) y = tup_first(y);
  for (int i = 0; i < n; i++, x = tup_next(x)) {
    if (undivided(cx, x, each ? y : &by, bad)) return true;
    if (each) y = tup_next(y);
    else if (i + 1 < n) by = dim_ceil_div(cx, by, tup_size(cx, x));
  }
  return false;
}

Tup tup_shape_div(Ctx *cx, Tup a, Tup b) {
  Dim bad[2];
  if (undivided(cx, a, b, bad))
    ctx_fail(cx, ERR_INADMISSIBLE,
             "shape_div: neither of %lld and %lld divides the other, in %s by "
             "%s", (long long)bad[0].w, (long long)bad[1].w, tup_text(cx, a),
             tup_text(cx, b));
  return mapped(cx, map_shape_div, a, b);
}

static void map_ceil_div(Ctx *cx, TupB *b, Tup x, Tup y) {
  if (tup_is_leaf(x))
    tupb_leaf(cx, b, dim_ceil_div(cx, *x, tup_size(cx, y)));
  else if (tup_is_leaf(y))
    div_fold(cx, b, x, *y, dim_ceil_div);
  else
    zip_map(cx, b, "ceil_div", x, y, map_ceil_div, true);
}

Tup tup_ceil_div(Ctx *cx, Tup a, Tup b) {
  return mapped(cx, map_ceil_div, a, b);
}

static void map_round_up(Ctx *cx, TupB *b, Tup x, Tup y) {
  if (tup_is_leaf(x) && tup_is_leaf(y))
    tupb_leaf(cx, b, dim_mul(cx, dim_ceil_div(cx, *x, *y), *y));
  else if (tup_is_leaf(x) || tup_is_leaf(y))
    mismatch(cx, "round_up", x, y);
  else
    zip_map(cx, b, "round_up", x, y, map_round_up, true);
}

Tup tup_round_up(Ctx *cx, Tup a, Tup b) {
  return mapped(cx, map_round_up, a, b);
}

static void map_scale(Ctx *cx, TupB *b, Tup x, Tup y) {
  if (tup_is_leaf(x))
    tupb_leaf(cx, b, dim_mul(cx, *x, tup_size(cx, y)));
  else if (tup_is_leaf(y))
    mismatch(cx, "elem_scale", x, y);
  else
    zip_map(cx, b, "elem_scale", x, y, map_scale, false);
}

Tup tup_elem_scale(Ctx *cx, Tup a, Tup b) {
  return mapped(cx, map_scale, a, b);
}

Dim tup_inner_product(Ctx *cx, Tup a, Tup b) {
  if (tup_is_leaf(a) && tup_is_leaf(b)) return dim_mul(cx, *a, *b);
  if (tup_is_leaf(a) || tup_is_leaf(b) || tup_rank(a) != tup_rank(b))
    mismatch(cx, "inner_product", a, b);
  Dim s = {0};
  Tup x = tup_first(a), y = tup_first(b);
  for (int i = 0, n = tup_rank(a); i < n; i++) {
    s = dim_add(cx, s, tup_inner_product(cx, x, y));
    x = tup_next(x);
    y = tup_next(y);
  }
  return s;
}

static void map_filter(Ctx *cx, TupB *b, Tup guide, Tup t) {
  if (!tup_is_leaf(guide)) {
    if (tup_is_leaf(t)) mismatch(cx, "filter_zeros", guide, t);
    zip_map(cx, b, "filter_zeros", guide, t, map_filter, false);
  } else {
    tupb_put(cx, b, dim_is(*guide, 0) ? tup_repeat_like(cx, t, (Dim){1}) : t);
  }
}

Tup tup_filter_zeros(Ctx *cx, Tup guide, Tup t) {
  return mapped(cx, map_filter, guide, t);
}

// ---- arithmetic tuples and bases ----

static void add(Ctx *cx, TupB *b, Tup x, Tup y) {
  if (tup_is_leaf(x) && tup_is_leaf(y)) {
    tupb_leaf(cx, b, dim_add(cx, *x, *y));
    return;
  }
  if (tup_is_leaf(x) || tup_is_leaf(y)) {
    if (!dim_is(tup_is_leaf(x) ? *x : *y, 0)) mismatch(cx, "+", x, y);
    tupb_put(cx, b, tup_is_leaf(x) ? y : x);
    return;
  }
  int n = tup_rank(x), k = tup_rank(y);
  tupb_open(cx, b);
  Tup p = tup_first(x), q = tup_first(y);
  for (int i = 0; i < n || i < k; i++) {
    if (i < n && i < k)
      add(cx, b, p, q);
    else
      tupb_put(cx, b, i < n ? p : q);
    if (i < n) p = tup_next(p);
    if (i < k) q = tup_next(q);
  }
  tupb_close(cx, b);
}

Tup tup_add(Ctx *cx, Tup a, Tup b) {
  return mapped(cx, add, a, b);
}

static void basis_like(Ctx *cx, TupB *b, Tup t, int *path, int depth) {
  if (tup_is_leaf(t)) {
    tupb_leaf(cx, b, dim_basis(cx, (Dim){1}, path, depth));
    return;
  }
  if (depth >= DIM_LEVELS)
    ctx_fail(cx, ERR_LIMIT, "a basis has at most %d levels: %s nests deeper",
             DIM_LEVELS, tup_text(cx, t));
  tupb_open(cx, b);
  Tup m = tup_first(t);
  for (int i = 0, n = tup_rank(t); i < n; i++, m = tup_next(m)) {
    path[depth] = i;
    basis_like(cx, b, m, path, depth + 1);
  }
  tupb_close(cx, b);
}

Tup tup_basis_like(Ctx *cx, Tup t) {
  int path[DIM_LEVELS + 1];
  TupB b = {0};
  basis_like(cx, &b, t, path, 0);
  return tupb_done(cx, &b);
}

// Appends the sum of the terms whose basis path starts with path[0..depth), as
// one entry.
static void from_terms(Ctx *cx, TupB *b, const Dim *term, size_t n,
                       int *path, int depth) {
  Dim sum = {0};
  int last = -1, p[DIM_LEVELS];
  for (size_t i = 0; i < n; i++) {
    int len = dim_basis_path(term[i], p), k = 0;
    while (k < depth && k < len && p[k] == path[k]) k++;
    if (k < depth) continue;
    if (len == depth)
      sum = dim_add(cx, sum, dim_basis_value(term[i]));
    else if (p[depth] > last)
      last = p[depth];
  }
  if (last < 0) {
    tupb_leaf(cx, b, sum);
    return;
  }
  if (!dim_is(sum, 0))
    ctx_fail(cx, ERR_ARG, "an integer and a coordinate cannot be added");
  tupb_open(cx, b);
  for (int m = 0; m <= last; m++) {
    path[depth] = m;
    from_terms(cx, b, term, n, path, depth + 1);
  }
  tupb_close(cx, b);
}

Tup tup_from_terms(Ctx *cx, const Dim *term, size_t n) {
  int path[DIM_LEVELS + 1];
  TupB b = {0};
  from_terms(cx, &b, term, n, path, 0);
  return tupb_done(cx, &b);
}

// ---- predicates ----

bool tup_congruent(Tup a, Tup b) {
  size_t n = tup_words(a);
  if (n != tup_words(b)) return false;
  for (size_t i = 0; i < n; i++) {
    bool leaf = tup_is_leaf(a + i);
    if (leaf != tup_is_leaf(b + i) || (!leaf && !dim_eq(a[i], b[i])))
      return false;
  }
  return true;
}

typedef bool Test2(Ctx *cx, Tup a, Tup b);

static bool all_pairs(Ctx *cx, Tup a, Tup b, int n, Test2 *f) {
  a = tup_first(a);
  b = tup_first(b);
  for (int i = 0; i < n; i++, a = tup_next(a), b = tup_next(b))
    if (!f(cx, a, b)) return false;
  return true;
}

static bool weakly(Ctx *cx, Tup a, Tup b) {
  if (tup_is_leaf(a)) return true;
  if (tup_is_leaf(b) || tup_rank(a) != tup_rank(b)) return false;
  return all_pairs(cx, a, b, tup_rank(a), weakly);
}

bool tup_weakly_congruent(Tup a, Tup b) { return weakly(NULL, a, b); }

bool tup_compatible(Ctx *cx, Tup a, Tup b) {
  if (tup_is_leaf(a)) return dim_eq(*a, tup_size(cx, b));
  if (tup_is_leaf(b) || tup_rank(a) != tup_rank(b)) return false;
  return all_pairs(cx, a, b, tup_rank(a), tup_compatible);
}

// Reports whether a is weakly compatible with b: each leaf of a divides the
// size of the corresponding entry of b.
bool tup_weakly_compatible(Ctx *cx, Tup a, Tup b) {
  if (tup_is_leaf(a))
    return !dim_is(*a, 0) && dim_is(dim_rem(cx, tup_size(cx, b), *a), 0);
  if (tup_is_leaf(b) || tup_rank(a) != tup_rank(b)) return false;
  return all_pairs(cx, a, b, tup_rank(a), tup_weakly_compatible);
}

static Tup broadcast_modes(Ctx *cx, Tup a, Tup b) {
  TupB t = {0};
  tupb_open(cx, &t);
  int na = tup_rank(a), nb = tup_rank(b);
  Tup x = tup_first(a), y = tup_first(b);
  for (int i = 0; i < na || i < nb; i++) {
    Tup m = i >= na ? y : i >= nb ? x : tup_broadcast(cx, x, y);
    if (!m) return NULL;
    tupb_put(cx, &t, m);
    if (i < na) x = tup_next(x);
    if (i < nb) y = tup_next(y);
  }
  tupb_close(cx, &t);
  return tupb_done(cx, &t);
}

Tup tup_broadcast(Ctx *cx, Tup a, Tup b) {
  if (tup_is_leaf(a) && dim_is(*a, 1)) return b;
  if (tup_is_leaf(b) && dim_is(*b, 1)) return a;
  if (tup_is_leaf(a) && tup_is_leaf(b)) return dim_eq(*a, *b) ? a : NULL;
  Tup t = broadcast_modes(cx, a, b);
  if (t) return t;
  if (tup_is_leaf(a)) return tup_compatible(cx, a, b) ? b : NULL;
  return tup_is_leaf(b) && tup_compatible(cx, b, a) ? a : NULL;
}

static bool divides(Ctx *cx, Tup tiler, Tup shape) {
  if (!tup_is_leaf(tiler)) {
    if (tup_rank(tiler) > tup_rank(shape)) return false;
    return all_pairs(cx, tiler, shape, tup_rank(tiler), divides);
  }
  if (dim_is(*tiler, 0)) return false;
  Dim rest = tup_size(cx, tup_ceil_div(cx, shape, tiler));
  return dim_eq(tup_size(cx, shape), dim_mul(cx, *tiler, rest));
}

bool tup_evenly_divides(Ctx *cx, Tup shape, Tup tiler) {
  return divides(cx, tiler, shape);
}

// ---- comparisons ----

Dim tup_same(Ctx *cx, Tup a, Tup b) {
  if (tup_is_leaf(a) != tup_is_leaf(b) || tup_rank(a) != tup_rank(b))
    return (Dim){0};
  if (tup_is_leaf(a)) return dim_same(cx, *a, *b);
  Dim all = {1};
  Tup x = tup_first(a), y = tup_first(b);
  for (int i = 0, n = tup_rank(a); i < n && !dim_is(all, 0); i++) {
    all = dim_and(cx, all, tup_same(cx, x, y));
    x = tup_next(x);
    y = tup_next(y);
  }
  return all;
}

static Dim elem_less(Ctx *cx, Tup a, Tup b) {
  int n = tup_rank(a), k = tup_rank(b);
  Dim all = {1};
  Tup x = tup_first(a), y = tup_first(b);
  for (int i = 0; i < n && !dim_is(all, 0); i++) {
    if (i == k) return (Dim){0};
    all = dim_and(cx, all, tup_less(cx, TUP_ELEM, x, y));
    x = tup_next(x);
    y = tup_next(y);
  }
  return all;
}

// Compares a and b, starting at their i-th mode from the front (TUP_LEX) or
// from the back (TUP_COLEX). If one tuple runs out of modes first, it is less.
static Dim lex_less(Ctx *cx, TupOrder o, Tup a, Tup b, int i) {
  int n = tup_rank(a), k = tup_rank(b);
  if (i == k) return (Dim){0};
  if (i == n) return (Dim){1};
  Tup x = tup_get(cx, a, o == TUP_LEX ? i : n - 1 - i);
  Tup y = tup_get(cx, b, o == TUP_LEX ? i : k - 1 - i);
  Dim less = tup_less(cx, o, x, y);
  if (dim_is(less, 1)) return less;
  Dim same = tup_same(cx, x, y);
  if (dim_is(same, 0)) return less;
  Dim rest = lex_less(cx, o, a, b, i + 1);
  return dim_or(cx, less, dim_and(cx, same, rest));
}

Dim tup_less(Ctx *cx, TupOrder o, Tup a, Tup b) {
  if (tup_is_leaf(a) && tup_is_leaf(b)) return dim_lt(cx, *a, *b);
  if (tup_is_leaf(a) || tup_is_leaf(b)) mismatch(cx, "less", a, b);
  return o == TUP_ELEM ? elem_less(cx, a, b) : lex_less(cx, o, a, b, 0);
}

// ---- coordinates ----

// State of the computation of an offset. Each leaf of the shape contributes a
// term: its coordinate times its stride.
typedef struct Walk {
  const Dim *stride;
  Dim sum;         // sum of the integer terms
  Dim bits;        // XOR of the terms whose strides are XORed
  bool ints, xors; // whether nonzero integer strides and XORed strides occurred
  Dim *term;       // terms that are bases
  size_t n, leaves;
} Walk;

static _Noreturn void mixed(Ctx *cx, Dim d) {
  ctx_fail(cx, ERR_INADMISSIBLE, "stride %s: a layout cannot mix strides that "
           "add up with XORed strides", tup_text(cx, &d));
}

static void walk_leaf(Ctx *cx, Walk *w, Dim c, Dim d) {
  // The coordinate `_` selects the whole mode, and adds no offset.
  if (dim_kind(c) == DIM_ANY) return;
  if (dim_kind(d) == DIM_BASIS) {
    if (!w->term) w->term = NEW(cx, Dim, w->leaves + 1);
    w->term[w->n++] = dim_mul(cx, c, d);
  } else if (dim_kind(d) == DIM_XOR) {
    Dim x = dim_mul(cx, c, d);
    if (!dim_dynamic(x)) x = dim_int(cx, dim_xor_value(x));
    w->bits = dim_bit_xor(cx, w->bits, x);
    w->xors = true;
    if (w->ints) mixed(cx, d);
  } else if (!dim_is(d, 0)) {
    w->ints = true;
    if (w->xors) mixed(cx, d);
    if (dim_is(c, 0)) return;
    w->sum = dim_add(cx, w->sum, dim_mul(cx, c, d));
  }
}

// Returns the number of modes of shape, not counting trailing modes without
// leaves. The last counted mode takes the remaining part of an index.
static int modes_of(Tup shape) {
  int n = 0;
  Tup m = tup_first(shape);
  for (int i = 0, k = tup_rank(shape); i < k; i++, m = tup_next(m))
    if (tup_leaves(m)) n = i + 1;
  return n;
}

// Returns the coordinate in mode m of the linear index *rest. Stores the index
// for the later modes in *rest. Treats a mode without elements as a mode of one
// element.
static Dim split(Ctx *cx, Dim *rest, Tup m) {
  Dim s = tup_size(cx, m);
  if (dim_is(s, 0)) s = (Dim){1};
  Dim own = dim_trem(cx, *rest, s);
  *rest = dim_tquo(cx, *rest, s);
  return own;
}

static void walk(Ctx *cx, Walk *w, Tup c, Tup shape) {
  if (tup_is_leaf(shape)) {
    if (!tup_is_leaf(c)) mismatch(cx, "coordinate", c, shape);
    walk_leaf(cx, w, *c, *w->stride++);
    return;
  }
  int n = tup_rank(shape);
  Tup m = tup_first(shape);
  if (!tup_is_leaf(c)) {
    if (tup_rank(c) != n) mismatch(cx, "coordinate", c, shape);
    c = tup_first(c);
    for (int i = 0; i < n; i++, c = tup_next(c), m = tup_next(m))
      walk(cx, w, c, m);
    return;
  }
  Dim rest = *c;
  if (dim_kind(rest) == DIM_ANY) {
    w->stride += tup_leaves(shape);
    return;
  }
  for (int i = 0, k = modes_of(shape); i < k; i++, m = tup_next(m)) {
    Dim own = i + 1 < k ? split(cx, &rest, m) : rest;
    walk(cx, w, &own, m);
  }
}

// Returns the strides of the compact layout of shape. Modes with extent 1 also
// get a stride, not 0.
static const Dim *horner(Ctx *cx, Tup shape) {
  size_t n = tup_leaves(shape);
  Dim *d = NEW(cx, Dim, n), p = {1};
  tup_collect(shape, d);
  for (size_t i = 0; i < n; i++) {
    Dim s = d[i];
    d[i] = p;
    if (i + 1 < n) p = dim_mul(cx, p, s);
  }
  return d;
}

Tup tup_crd2idx(Ctx *cx, Tup c, Tup shape, const Dim *stride) {
  Walk w = {.stride = stride ? stride : horner(cx, shape),
            .leaves = tup_leaves(shape)};
  walk(cx, &w, c, shape);
  if (w.xors && !w.term) return tup_leaf(cx, w.bits);
  if (w.xors) mixed(cx, w.term[0]);
  if (!w.term) return tup_leaf(cx, w.sum);
  w.term[w.n] = w.sum;
  return tup_from_terms(cx, w.term, w.n + 1);
}

static void idx2crd(Ctx *cx, TupB *b, Tup idx, Tup shape, Tup stride) {
  if (tup_is_leaf(shape)) {
    if (!tup_is_leaf(idx) || !tup_is_leaf(stride))
      mismatch(cx, "idx2crd", idx, shape);
    tup_need_elements(cx, "idx2crd", shape);
    tupb_leaf(cx, b, dim_is(*shape, 1)
                       ? (Dim){0}
                       : dim_trem(cx, dim_tquo(cx, *idx, *stride), *shape));
    return;
  }
  int n = tup_rank(shape);
  bool each = !tup_is_leaf(idx);
  if (tup_is_leaf(stride)) stride = tup_compact(cx, shape, stride, false);
  if ((each && tup_rank(idx) != n) || tup_rank(stride) != n)
    mismatch(cx, "idx2crd", idx, shape);
  tupb_open(cx, b);
  shape = tup_first(shape);
  stride = tup_first(stride);
  if (each) idx = tup_first(idx);
  for (int i = 0; i < n; i++) {
    idx2crd(cx, b, idx, shape, stride);
    shape = tup_next(shape);
    stride = tup_next(stride);
    if (each) idx = tup_next(idx);
  }
  tupb_close(cx, b);
}

// Converts an index to a coordinate of a compact layout. As in the evaluation
// of a layout, the last mode takes the remaining part of the index, even beyond
// the mode's extent.
static void idx2crd_compact(Ctx *cx, TupB *b, Tup idx, Tup shape) {
  if (tup_is_leaf(shape)) {
    if (!tup_is_leaf(idx)) mismatch(cx, "idx2crd", idx, shape);
    tupb_leaf(cx, b, *idx);
    return;
  }
  if (!tup_is_leaf(idx)) {
    zip_map(cx, b, "idx2crd", idx, shape, idx2crd_compact, false);
    return;
  }
  Dim rest = *idx;
  Tup m = tup_first(shape);
  tupb_open(cx, b);
  for (int i = 0, k = modes_of(shape); i < tup_rank(shape); i++) {
    Dim own = i + 1 < k ? split(cx, &rest, m) : rest;
    idx2crd_compact(cx, b, &own, m);
    m = tup_next(m);
  }
  tupb_close(cx, b);
}

Tup tup_idx2crd(Ctx *cx, Tup idx, Tup shape, Tup stride) {
  TupB b = {0};
  if (stride)
    idx2crd(cx, &b, idx, shape, stride);
  else
    idx2crd_compact(cx, &b, idx, shape);
  return tupb_done(cx, &b);
}

static void crd2crd(Ctx *cx, TupB *b, Tup c, Tup src, Tup dst) {
  if (tup_is_leaf(c) || tup_is_leaf(src) || tup_is_leaf(dst)) {
    tupb_put(cx, b,
             tup_idx2crd(cx, tup_crd2idx(cx, c, src, NULL), dst, NULL));
    return;
  }
  int n = tup_rank(c);
  if (tup_rank(src) != n) mismatch(cx, "crd2crd", c, src);
  if (tup_rank(dst) != n) mismatch(cx, "crd2crd", c, dst);
  tupb_open(cx, b);
  c = tup_first(c);
  src = tup_first(src);
  dst = tup_first(dst);
  for (int i = 0; i < n; i++) {
    crd2crd(cx, b, c, src, dst);
    c = tup_next(c);
    src = tup_next(src);
    dst = tup_next(dst);
  }
  tupb_close(cx, b);
}

Tup tup_crd2crd(Ctx *cx, Tup c, Tup src, Tup dst) {
  TupB b = {0};
  crd2crd(cx, &b, c, src, dst);
  return tupb_done(cx, &b);
}

Tup tup_increment(Ctx *cx, Tup coord, Tup shape) {
  size_t n = tup_leaves(shape);
  if (!tup_congruent(coord, shape)) mismatch(cx, "increment", coord, shape);
  Dim *c = NEW(cx, Dim, n + 1), *s = NEW(cx, Dim, n + 1);
  Dim zero = {0}, one = {1}, carry = one;
  tup_collect(coord, c);
  tup_collect(shape, s);
  for (size_t i = 0; i < n && !dim_is(carry, 0); i++) {
    c[i] = dim_add(cx, c[i], carry);
    if (i + 1 == n) break;
    Dim full = dim_same(cx, c[i], s[i]);
    c[i] = dim_sel(cx, full, zero, c[i]);
    carry = dim_sel(cx, full, one, zero);
  }
  return tup_like(cx, shape, c);
}

// ---- compact strides ----

// Writes compact strides for the leaves of shape, from the left or from the
// right. An extent of 0 is treated as 1, as in PyTorch.
static void compact(Ctx *cx, Tup shape, Dim cur, bool right, Dim *d) {
  size_t n = tup_leaves(shape);
  tup_collect(shape, d);
  for (size_t k = 0; k < n; k++) {
    size_t i = right ? n - 1 - k : k;
    Dim s = d[i];
    if (dim_is(s, 1)) {
      d[i] = (Dim){0};
      continue;
    }
    d[i] = cur;
    if (k + 1 < n && !dim_is(s, 0)) cur = dim_mul(cx, cur, s);
  }
}

static void compact_each(Ctx *cx, TupB *b, Tup shape, Tup first, bool right) {
  if (tup_is_leaf(first)) {
    Dim *d = NEW(cx, Dim, tup_leaves(shape));
    compact(cx, shape, *first, right, d);
    tupb_put(cx, b, tup_like(cx, shape, d));
    return;
  }
  int n = tup_rank(shape);
  if (tup_is_leaf(shape) || tup_rank(first) != n)
    mismatch(cx, "compact strides", shape, first);
  tupb_open(cx, b);
  shape = tup_first(shape);
  first = tup_first(first);
  for (int i = 0; i < n; i++) {
    compact_each(cx, b, shape, first, right);
    shape = tup_next(shape);
    first = tup_next(first);
  }
  tupb_close(cx, b);
}

Tup tup_compact(Ctx *cx, Tup shape, Tup first, bool right) {
  static const Dim one = {1};
  TupB b = {0};
  compact_each(cx, &b, shape, first ? first : &one, right);
  return tupb_done(cx, &b);
}

typedef struct Order {
  // extents, and the position of each extent in the requested order
  const Dim *shape, *order;
  size_t n, at;              // at: index of the next leaf to visit
} Order;

static void by_order(Ctx *cx, TupB *b, Tup shape, Tup order, Order *o) {
  if (tup_is_leaf(order)) {
    Dim start = {1}, mine = o->order[o->at++];
    for (size_t i = 0; i < o->n; i++)
      if (o->order[i].w < mine.w) start = dim_mul(cx, start, o->shape[i]);
    compact_each(cx, b, shape, &start, false);
    return;
  }
  int n = tup_rank(order);
  tupb_open(cx, b);
  shape = tup_first(shape);
  order = tup_first(order);
  for (int i = 0; i < n; i++) {
    by_order(cx, b, shape, order, o);
    shape = tup_next(shape);
    order = tup_next(order);
  }
  tupb_close(cx, b);
}

bool tup_order_ties(Ctx *cx, Tup shape, Tup order) {
  size_t n = tup_leaves(order);
  Dim *s = NEW(cx, Dim, n + 1), *o = NEW(cx, Dim, n + 1);
  if (n > 64) return false;
  tup_collect(tup_product_like(cx, shape, order), s);
  tup_collect(order, o);
  for (size_t i = 0; i < n; i++)
    for (size_t k = 0; k < i; k++)
      if (dim_eq(o[i], o[k]) && !dim_is(s[i], 1) && !dim_is(s[k], 1))
        return true;
  return false;
}

// Returns the strides of a compact layout of the shape. The mode with the
// smallest number in `order` gets the smallest stride. Modes with traced
// numbers come after all others, in their order in the shape.
Tup tup_compact_order(Ctx *cx, Tup shape, Tup order) {
  if (!order) return tup_compact(cx, shape, NULL, false);
  if (!tup_weakly_congruent(order, shape))
    mismatch(cx, "compact_order", shape, order);
  size_t n = tup_leaves(order);
  Dim *s = NEW(cx, Dim, n), *o = NEW(cx, Dim, n);
  Dim *counted = NEW(cx, Dim, tup_leaves(shape) + 1);
  tup_collect(shape, counted);
  for (size_t i = 0; i < tup_leaves(shape); i++)
    if (dim_is(counted[i], 0)) counted[i] = (Dim){1};
  tup_collect(tup_product_like(cx, tup_like(cx, shape, counted), order), s);
  tup_collect(order, o);
  int64_t top = 0;
  for (size_t i = 0; i < n; i++)
    if (dim_static(o[i]) && o[i].w > top) top = o[i].w;
  for (size_t i = 0; i < n; i++)
    if (!dim_static(o[i])) o[i] = dim_int(cx, top + 1 + (int64_t)i);
  Order ord = {s, o, n, 0};
  TupB b = {0};
  by_order(cx, &b, shape, order, &ord);
  return tupb_done(cx, &b);
}
// SPDX-License-Identifier: MIT
