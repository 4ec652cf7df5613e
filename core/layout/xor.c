// Layouts with XORed strides (F2): functions that are linear over the bits of
// an index. Inverses use Gaussian elimination over the field of two elements.
#include "layout/composed.h"
#include "layout/inside.h"

bool layout_has_xor(Layout l) {
  size_t n = tup_leaves(l.shape);
  for (size_t i = 0; i < n; i++)
    if (dim_kind(l.stride[i]) == DIM_XOR) return true;
  return false;
}

Layout layout_linear(Ctx *cx, Layout l) {
  if (!layout_has_xor(l)) return l;
  Layout r = layout_compact(cx, l.shape);
  r = layout_composed(cx, layout_inner(l), (Dim){0}, r);
  return layout_seen_through(cx, r, l);
}

// Evaluates plain layout r and a o b, and reports whether they are equal.
static bool agrees(Ctx *cx, Layout a, Layout b, Layout r) {
  if (!layout_static(a) || !layout_static(b) || !layout_static(r)) return false;
  int64_t n = dim_value(layout_size(cx, b));
  for (Dim i = {0}; n <= LOOK_MAX && i.w < n; i.w++) {
    Dim at = layout_eval_at(cx, b, i);
    if (!dim_eq(layout_eval_at(cx, a, at), layout_eval_at(cx, r, i)))
      return false;
  }
  return n <= LOOK_MAX;
}

Layout compose_xor(Ctx *cx, Layout a, Layout b) {
  Layout in = layout_inner(a);
  size_t n = tup_leaves(b.shape);
  bool ahead = true;
  for (size_t i = 0; i < n; i++)
    ahead = ahead && dim_static(b.stride[i]) && b.stride[i].w >= 0;
  if (ahead) {
    Note nt = {.op = "composition", .mode = -1, .quiet = true};
    Layout r = compose_plain(cx, &nt, in, b);
    if (!nt.bad && agrees(cx, in, b, r)) return layout_outer(r, a);
  }
  return layout_composed(cx, a, (Dim){0}, b);
}

// ---- inverses ----

enum { BITS = 59 };

// A basis of the values of a layout, found by elimination from the values of
// the index bits. v[k] is a value whose highest bit is k, or 0 if no value has
// highest bit k. c[k] is the index whose value is v[k].
typedef struct Basis {
  int64_t v[BITS], c[BITS];
} Basis;

static int top_bit(int64_t v) { return 63 - __builtin_clzll((uint64_t)v); }

// Reduces x by the basis and returns the remainder. XORs into *c the index
// whose value is the removed part.
static int64_t reduced(const Basis *b, int64_t x, int64_t *c) {
  for (int k = BITS - 1; k >= 0 && x; k--)
    if (x >> k & 1 && b->v[k]) {
      x ^= b->v[k];
      *c ^= b->c[k];
    }
  return x;
}

static Basis basis_of(Ctx *cx, Note *nt, Layout l) {
  Basis b = {{0}, {0}};
  Flat f = flat_of(cx, l);
  int bit = 0;
  for (int i = 0; i < f.n; i++) {
    int64_t s = dim_static(f.s[i]) ? f.s[i].w : 0;
    bool bits = s > 0 && (s & (s - 1)) == 0;
    if (!bits || (s > 1 && dim_kind(f.d[i]) != DIM_XOR &&
                  !dim_is(f.d[i], 0)))
      note_fail(cx, nt, "XORed strides need extents that are powers of two, "
                "and no other strides beside them", NULL);
    for (int k = 0; (int64_t)1 << k < s; k++, bit++) {
      if (dim_is(f.d[i], 0)) continue;
      int64_t c = (int64_t)1 << bit;
      Dim d = dim_mul(cx, dim_int(cx, (int64_t)1 << k), f.d[i]);
      int64_t x = reduced(&b, dim_xor_value(d), &c);
      if (x == 0) continue;
      b.v[top_bit(x)] = x;
      b.c[top_bit(x)] = c;
    }
  }
  return b;
}

// Returns the XORed layout of n bits that maps bit k of the index to col[k].
static Layout of_columns(Ctx *cx, const int64_t *col, int n) {
  Flat f = {NEW(cx, Dim, (size_t)n + 1), NEW(cx, Dim, (size_t)n + 1), n};
  for (int k = 0; k < n; k++) {
    f.s[k] = (Dim){2};
    f.d[k] = dim_xor(cx, col[k]);
  }
  return flat_layout(cx, flat_coalesce(cx, f, false));
}

Layout inverse_xor(Ctx *cx, Note *nt, Layout l, bool left) {
  Basis b = basis_of(cx, nt, l);
  int64_t col[BITS] = {0};
  int n = 0;
  if (!left) {  // Stop before the first bit that l does not reach.
    for (; n < BITS; n++) {
      int64_t c = 0;
      if (reduced(&b, (int64_t)1 << n, &c)) break;
      col[n] = c;
    }
    return of_columns(cx, col, n);
  }
  // c[k] is the index of v[k]. To compute the index whose value is bit k alone,
  // XOR the columns of the lower bits of v[k] into c[k]. Columns of unreachable
  // bits are 0.
  for (int k = 0; k < BITS; k++) {
    if (!b.v[k]) continue;
    col[k] = b.c[k];
    for (int i = 0; i < k; i++)
      if (b.v[k] >> i & 1) col[k] ^= col[i];
    n = k + 1;
  }
  return of_columns(cx, col, n);
}
// SPDX-License-Identifier: MIT
