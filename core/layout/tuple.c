// Implements IntTuple, which is stored as words in preorder: building, queries
// and mode edits. Arithmetic is in tuplemath.c.
#include "layout/layout.h"

#include <string.h>

static Dim node(size_t rank, size_t leaves, size_t words) {
  return (Dim){.tup = {.words = words & 0xffffff, .leaves = leaves & 0xffffff,
                       .rank = rank & 0xfff, .tag = TAG_TUP}};
}

Tup tup_get(Ctx *cx, Tup t, int i) {
  if (i < 0 || i >= tup_rank(t))
    ctx_fail(cx, ERR_ARG, "no mode %d in %s (modes 0 to %d)", i,
             tup_text(cx, t), tup_rank(t) - 1);
  if (tup_is_leaf(t)) return t;
  for (t++; i > 0; i--) t = tup_next(t);
  return t;
}

int tup_depth(Tup t) {
  if (tup_is_leaf(t)) return 0;
  int deep = 0, n = tup_rank(t);
  Tup m = t + 1;
  for (int i = 0; i < n; i++, m = tup_next(m)) {
    int d = tup_depth(m);
    if (d > deep) deep = d;
  }
  return deep + 1;
}

bool tup_has(Tup t, DimKind k) {
  size_t n = tup_words(t);
  for (size_t i = 0; i < n; i++)
    if (dim_kind(t[i]) == k) return true;
  return false;
}

bool tup_static(Tup t) {
  size_t n = tup_words(t);
  for (size_t i = 0; i < n; i++)
    if (dim_dynamic(t[i]) || (dim_kind(t[i]) == DIM_LAYOUT &&
                              !layout_static(*dim_getlayout(t[i]))))
      return false;
  return true;
}

bool tup_eq(Tup a, Tup b) {
  size_t n = tup_words(a);
  if (n != tup_words(b)) return false;
  for (size_t i = 0; i < n; i++) {
    if (dim_eq(a[i], b[i])) continue;
    const Layout *x = dim_getlayout(a[i]), *y = dim_getlayout(b[i]);
    if (!x || !y || !layout_eq(*x, *y)) return false;
  }
  return true;
}

// ---- builder ----

static Dim *room(Ctx *cx, TupB *b, size_t n) {
  if (b->n + n > b->cap) {
    size_t cap = b->cap ? b->cap * 2 : 16;
    while (cap < b->n + n) cap *= 2;
    Dim *w = NEW(cx, Dim, cap);
    if (b->n) memcpy(w, b->w, b->n * sizeof *w);
    b->w = w;
    b->cap = cap;
  }
  b->n += n;
  return b->w + b->n - n;
}

static void count(Ctx *cx, TupB *b, size_t leaves) {
  b->leaves += leaves;
  if (b->leaves > TUP_LEAVES_MAX)
    ctx_fail(cx, ERR_LIMIT, "a tuple has at most %d leaves", TUP_LEAVES_MAX);
  if (b->nopen && ++b->open[b->nopen - 1].rank > TUP_RANK_MAX)
    ctx_fail(cx, ERR_LIMIT, "a tuple has at most %d modes", TUP_RANK_MAX);
}

void tupb_open(Ctx *cx, TupB *b) {
  if (b->nopen >= TUP_DEPTH_MAX)
    ctx_fail(cx, ERR_LIMIT, "tuples nest at most %d deep", TUP_DEPTH_MAX);
  room(cx, b, 1);
  b->open[b->nopen].at = (uint32_t)(b->n - 1);
  b->open[b->nopen].rank = 0;
  b->open[b->nopen++].leaves = (uint32_t)b->leaves;
}

void tupb_leaf(Ctx *cx, TupB *b, Dim d) {
  *room(cx, b, 1) = d;
  count(cx, b, 1);
}

void tupb_put(Ctx *cx, TupB *b, Tup t) {
  size_t n = tup_words(t);
  if (n > 1 && b->nopen + tup_depth(t) > TUP_DEPTH_MAX)
    ctx_fail(cx, ERR_LIMIT, "tuples nest at most %d deep", TUP_DEPTH_MAX);
  memcpy(room(cx, b, n), t, n * sizeof *t);
  count(cx, b, tup_leaves(t));
}

void tupb_close(Ctx *cx, TupB *b) {
  b->nopen--;
  uint32_t at = b->open[b->nopen].at, rank = b->open[b->nopen].rank;
  b->w[at] = node(rank, b->leaves - b->open[b->nopen].leaves, b->n - at);
  count(cx, b, 0);
}

Tup tupb_done(Ctx *cx, TupB *b) {
  if (b->nopen || !b->n || tup_words(b->w) != b->n)
    ctx_fail(cx, ERR_INTERNAL, "unbalanced tuple");
  return b->w;
}

Tup tup_leaf(Ctx *cx, Dim d) {
  Dim *w = NEW(cx, Dim, 1);
  *w = d;
  return w;
}

Tup tup_int(Ctx *cx, int64_t v) { return tup_leaf(cx, dim_int(cx, v)); }

Tup tup_of(Ctx *cx, const Dim *d, size_t n) {
  if (n > TUP_RANK_MAX)
    ctx_fail(cx, ERR_LIMIT, "a tuple has at most %d modes", TUP_RANK_MAX);
  Dim *w = NEW(cx, Dim, n + 1);
  w[0] = node(n, n, n + 1);
  if (n) memcpy(w + 1, d, n * sizeof *d);
  return w;
}

Tup tup_pack(Ctx *cx, const Tup *t, int n) {
  TupB b = {0};
  tupb_open(cx, &b);
  for (int i = 0; i < n; i++) tupb_put(cx, &b, t[i]);
  tupb_close(cx, &b);
  return tupb_done(cx, &b);
}

Tup tup_like(Ctx *cx, Tup shape, const Dim *leaf) {
  size_t n = tup_words(shape);
  Dim *w = NEW(cx, Dim, n);
  for (size_t i = 0; i < n; i++)
    w[i] = tup_is_leaf(shape + i) ? *leaf++ : shape[i];
  return w;
}

void tup_collect(Tup t, Dim *leaf) {
  size_t n = tup_words(t);
  for (size_t i = 0; i < n; i++)
    if (tup_is_leaf(t + i)) *leaf++ = t[i];
}

Tup tup_repeat_like(Ctx *cx, Tup profile, Dim d) {
  size_t n = tup_words(profile);
  Dim *w = NEW(cx, Dim, n);
  for (size_t i = 0; i < n; i++)
    w[i] = tup_is_leaf(profile + i) ? d : profile[i];
  return w;
}

// ---- edits ----

Tup tup_flatten_to_tuple(Ctx *cx, Tup t) {
  size_t n = tup_leaves(t);
  Dim *d = NEW(cx, Dim, n);
  tup_collect(t, d);
  return tup_of(cx, d, n);
}

static void put_shape(Ctx *cx, TupB *b, Tup t) {
  if (tup_is_leaf(t)) {
    const Layout *l = dim_getlayout(*t);
    tupb_put(cx, b, l ? l->shape : t);
    return;
  }
  tupb_open(cx, b);
  Tup m = tup_first(t);
  for (int i = 0, n = tup_rank(t); i < n; i++, m = tup_next(m))
    put_shape(cx, b, m);
  tupb_close(cx, b);
}

Tup tup_shape(Ctx *cx, Tup t) {
  if (!tup_has(t, DIM_LAYOUT)) return t;
  TupB b = {0};
  put_shape(cx, &b, t);
  return tupb_done(cx, &b);
}

Tup tup_flatten(Ctx *cx, Tup t) {
  return tup_is_leaf(t) ? t : tup_flatten_to_tuple(cx, t);
}

// Appends the modes of `flat` in the nesting of `profile`: for each leaf, one
// mode, which may be a tuple. Returns the next unused mode of `flat`.
static Tup unflatten(Ctx *cx, TupB *b, Tup flat, Tup profile) {
  if (tup_is_leaf(profile)) {
    tupb_put(cx, b, flat);
    return tup_next(flat);
  }
  tupb_open(cx, b);
  Tup m = tup_first(profile);
  for (int i = 0, n = tup_rank(profile); i < n; i++, m = tup_next(m))
    flat = unflatten(cx, b, flat, m);
  tupb_close(cx, b);
  return flat;
}

Tup tup_unflatten(Ctx *cx, Tup flat, Tup profile) {
  if ((size_t)tup_rank(flat) != tup_leaves(profile))
    ctx_fail(cx, ERR_SHAPE, "unflatten: %s has %d modes, but profile %s has "
             "%zu leaves", tup_text(cx, flat), tup_rank(flat),
             tup_text(cx, profile), tup_leaves(profile));
  TupB b = {0};
  unflatten(cx, &b, tup_first(flat), profile);
  return tupb_done(cx, &b);
}

Tup tup_wrap(Ctx *cx, Tup t) { return tup_is_leaf(t) ? tup_of(cx, t, 1) : t; }

Tup tup_unwrap(Tup t) {
  while (!tup_is_leaf(t) && tup_rank(t) == 1) t++;
  return t;
}

// Returns the modes of t as an array, and their number in *n.
static Tup *modes(Ctx *cx, Tup t, int *n) {
  *n = tup_rank(t);
  Tup *m = NEW(cx, Tup, (size_t)*n);
  Tup at = tup_first(t);
  for (int i = 0; i < *n; i++, at = tup_next(at)) m[i] = at;
  return m;
}

Tup tup_reverse(Ctx *cx, Tup t) {
  if (tup_is_leaf(t)) return t;
  int n;
  Tup *m = modes(cx, t, &n);
  for (int i = 0; i < n / 2; i++) {
    Tup x = m[i];
    m[i] = m[n - 1 - i];
    m[n - 1 - i] = x;
  }
  return tup_pack(cx, m, n);
}

static void check_range(Ctx *cx, const char *op, Tup t, int b, int *e) {
  if (*e < 0) *e = tup_rank(t);
  if (b < 0 || b > *e || *e > tup_rank(t))
    ctx_fail(cx, ERR_ARG, "%s: no modes [%d,%d) in %s (rank %d)", op, b, *e,
             tup_text(cx, t), tup_rank(t));
}

Tup tup_group(Ctx *cx, Tup t, int b, int e) {
  int n;
  check_range(cx, "group", t, b, &e);
  Tup *m = modes(cx, t, &n);
  if (b == e) return t;
  m[b] = tup_pack(cx, m + b, e - b);
  for (int i = e; i < n; i++) m[b + 1 + i - e] = m[i];
  return tup_pack(cx, m, n - (e - b) + 1);
}

Tup tup_take(Ctx *cx, Tup t, int b, int e) {
  int n;
  check_range(cx, "take", t, b, &e);
  return tup_pack(cx, modes(cx, t, &n) + b, e - b);
}

Tup tup_select(Ctx *cx, Tup t, const int *i, int n) {
  Tup *m = NEW(cx, Tup, (size_t)n);
  for (int k = 0; k < n; k++) m[k] = tup_get(cx, t, i[k]);
  return tup_pack(cx, m, n);
}

// Returns t with its modes [at,at+drop) replaced by `add` copies of x.
static Tup splice(Ctx *cx, Tup t, int at, int drop, Tup x, int add) {
  int n;
  Tup *m = modes(cx, t, &n);
  TupB b = {0};
  tupb_open(cx, &b);
  for (int i = 0; i < at; i++) tupb_put(cx, &b, m[i]);
  for (int i = 0; i < add; i++) tupb_put(cx, &b, x);
  for (int i = at + drop; i < n; i++) tupb_put(cx, &b, m[i]);
  tupb_close(cx, &b);
  return tupb_done(cx, &b);
}

Tup tup_append(Ctx *cx, Tup t, Tup x) {
  return splice(cx, t, tup_rank(t), 0, x, 1);
}

Tup tup_prepend(Ctx *cx, Tup t, Tup x) { return splice(cx, t, 0, 0, x, 1); }

static int missing(Ctx *cx, const char *op, Tup t, int rank) {
  if (tup_rank(t) > rank)
    ctx_fail(cx, ERR_ARG, "%s: %s has rank %d already, more than %d", op,
             tup_text(cx, t), tup_rank(t), rank);
  return rank - tup_rank(t);
}

Tup tup_append_to(Ctx *cx, Tup t, int rank, Tup x) {
  int add = missing(cx, "append", t, rank);
  return add ? splice(cx, t, tup_rank(t), 0, x, add) : t;
}

Tup tup_prepend_to(Ctx *cx, Tup t, int rank, Tup x) {
  int add = missing(cx, "prepend", t, rank);
  return add ? splice(cx, t, 0, 0, x, add) : t;
}

Tup tup_replace(Ctx *cx, Tup t, int i, Tup x) {
  tup_get(cx, t, i);
  return tup_is_leaf(t) ? x : splice(cx, t, i, 1, x, 1);
}

Tup tup_remove(Ctx *cx, Tup t, int i) {
  tup_get(cx, t, i);
  return splice(cx, t, i, 1, t, 0);
}

Tup tup_insert(Ctx *cx, Tup t, int i, Tup x) {
  if (i < 0 || i > tup_rank(t))
    ctx_fail(cx, ERR_ARG, "insert: no position %d in %s", i, tup_text(cx, t));
  return splice(cx, t, i, 0, x, 1);
}

static void cat(Ctx *cx, TupB *b, Tup t) {
  Tup m = tup_first(t);
  for (int i = 0, n = tup_rank(t); i < n; i++, m = tup_next(m))
    tupb_put(cx, b, m);
}

Tup tup_cat(Ctx *cx, const Tup *t, int n) {
  TupB b = {0};
  tupb_open(cx, &b);
  for (int i = 0; i < n; i++) cat(cx, &b, t[i]);
  tupb_close(cx, &b);
  return tupb_done(cx, &b);
}

Tup tup_zip(Ctx *cx, Tup t) {
  int n;
  Tup *m = modes(cx, t, &n);
  if (tup_is_leaf(t) || n == 0) return t;
  if (tup_is_leaf(m[0])) return tup_pack(cx, &t, 1);
  int r = tup_rank(m[0]);
  for (int i = 1; i < n; i++)
    if (tup_is_leaf(m[i]) || tup_rank(m[i]) != r)
      ctx_fail(cx, ERR_SHAPE, "zip: modes of %s differ in rank",
               tup_text(cx, t));
  TupB b = {0};
  tupb_open(cx, &b);
  for (int j = 0; j < r; j++) {
    tupb_open(cx, &b);
    for (int i = 0; i < n; i++) tupb_put(cx, &b, tup_get(cx, m[i], j));
    tupb_close(cx, &b);
  }
  tupb_close(cx, &b);
  return tupb_done(cx, &b);
}

// Zips t along the profile `guide`: t must have a pair (tile,rest) wherever
// guide has a leaf. Returns ((tiles...),(rests...)).
Tup tup_zip2_by(Ctx *cx, Tup t, Tup guide) {
  if (tup_is_leaf(guide)) {
    if (tup_is_leaf(t) || tup_rank(t) != 2)
      ctx_fail(cx, ERR_INADMISSIBLE,
               "only a mode (tile,rest) can be unzipped, but %s has rank %d",
               tup_text(cx, t), tup_rank(t));
    return t;
  }
  int n, g = tup_rank(guide);
  Tup *m = modes(cx, t, &n), gm = tup_first(guide);
  if (g > n)
    ctx_fail(cx, ERR_SHAPE, "the tiler has %d modes, but the layout only %d",
             g, n);
  for (int i = 0; i < g; i++, gm = tup_next(gm))
    m[i] = tup_zip2_by(cx, m[i], gm);
  TupB b = {0};
  tupb_open(cx, &b);
  for (int k = 0; k < 2; k++) {
    tupb_open(cx, &b);
    for (int i = 0; i < g; i++) tupb_put(cx, &b, tup_get(cx, m[i], k));
    for (int i = g; k == 1 && i < n; i++) tupb_put(cx, &b, m[i]);
    tupb_close(cx, &b);
  }
  tupb_close(cx, &b);
  return tupb_done(cx, &b);
}

// ---- slicing ----

// Appends entries of t to the open tuple. If `any`, these are the entries where
// coord has `_`, otherwise the entries where coord has another value.
static void lift(Ctx *cx, TupB *b, Tup coord, Tup t, bool any) {
  if (!tup_is_leaf(coord)) {
    int n = tup_rank(coord);
    if (tup_is_leaf(t) || tup_rank(t) != n)
      ctx_fail(cx, ERR_SHAPE, "coordinate %s does not fit %s",
               tup_text(cx, coord), tup_text(cx, t));
    Tup c = tup_first(coord), m = tup_first(t);
    for (int i = 0; i < n; i++, c = tup_next(c), m = tup_next(m))
      lift(cx, b, c, m, any);
  } else if ((dim_kind(*coord) == DIM_ANY) == any) {
    tupb_put(cx, b, t);
  }
}

static Tup slice(Ctx *cx, Tup coord, Tup t, bool any) {
  if (tup_is_leaf(coord) && (dim_kind(*coord) == DIM_ANY) == any) return t;
  TupB b = {0};
  tupb_open(cx, &b);
  if (!tup_is_leaf(coord)) lift(cx, &b, coord, t, any);
  tupb_close(cx, &b);
  return tupb_done(cx, &b);
}

Tup tup_slice(Ctx *cx, Tup coord, Tup t) { return slice(cx, coord, t, true); }
Tup tup_dice(Ctx *cx, Tup coord, Tup t) { return slice(cx, coord, t, false); }
// SPDX-License-Identifier: MIT
