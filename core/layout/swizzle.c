// Swizzles, and layouts whose outer function is a swizzle.
#include "layout/composed.h"
#include "layout/inside.h"

#include <string.h>

static int iabs(int v) { return v < 0 ? -v : v; }

Swizzle swizzle_make(Ctx *cx, int64_t b, int64_t m, int64_t s) {
  bool far = b > 50 || m > 50 || s > 50 || s < -50;
  int64_t a = far ? 50 : s < 0 ? -s : s;
  if (b < 0 || m < 0 || far || b + m + a > 58)
    ctx_fail(cx, ERR_ARG,
             "Sw<%lld,%lld,%lld> is not a swizzle: bits and base must not be "
             "negative, and all bits must be below bit 58",
             (long long)b, (long long)m, (long long)s);
  if (a < b)
    ctx_fail(cx, ERR_INADMISSIBLE,
             "Sw<%lld,%lld,%lld> is not a swizzle: the shift of %lld is "
             "smaller than the %lld bits",
             (long long)b, (long long)m, (long long)s, (long long)a,
             (long long)b);
  return (Swizzle){(int8_t)b, (int8_t)m, (int8_t)s};
}

int64_t swizzle_yyy(Swizzle w) {
  return (((int64_t)1 << w.b) - 1) << (w.m + (w.s > 0 ? w.s : 0));
}

int64_t swizzle_zzz(Swizzle w) {
  return (((int64_t)1 << w.b) - 1) << (w.m + (w.s < 0 ? -w.s : 0));
}

int64_t swizzle_bits(Swizzle w, int64_t x) {
  int64_t y = x & swizzle_yyy(w);
  return x ^ (w.s >= 0 ? y >> w.s : (int64_t)((uint64_t)y << -w.s));
}

static int trailing(int64_t x) { return x ? __builtin_ctzll((uint64_t)x) : 0; }

bool swizzle_test_masks(int64_t y, int64_t z, Swizzle *sw) {
  int b = __builtin_popcountll((uint64_t)y);
  *sw = (Swizzle){0, 0, 0};
  if (y == 0 && z == 0) return true;
  int ty = trailing(y), tz = trailing(z);
  int m = ty < tz ? ty : tz, s = ty - tz;
  *sw = (Swizzle){(int8_t)b, (int8_t)m, (int8_t)s};
  return y > 0 && z > 0 && b == __builtin_popcountll((uint64_t)z) &&
         iabs(s) >= b && swizzle_yyy(*sw) == y && swizzle_zzz(*sw) == z;
}

Swizzle swizzle_from_masks(Ctx *cx, int64_t y, int64_t z) {
  Swizzle w;
  if (!swizzle_test_masks(y, z, &w))
    ctx_fail(cx, ERR_INADMISSIBLE,
             "make_swizzle: masks 0x%llx and 0x%llx do not form a swizzle: "
             "they must have equally many contiguous bits and not overlap",
             (unsigned long long)y, (unsigned long long)z);
  return w;
}

Swizzle swizzle_compose(Ctx *cx, Swizzle a, Swizzle b) {
  if (a.s != b.s)
    ctx_fail(cx, ERR_INADMISSIBLE,
             "composition: Sw<%d,%d,%d> and Sw<%d,%d,%d> have different "
             "shifts; only swizzles of one shift can be composed", a.b, a.m,
             a.s, b.b, b.m, b.s);
  return swizzle_from_masks(cx, swizzle_yyy(a) ^ swizzle_yyy(b),
                            swizzle_zzz(a) ^ swizzle_zzz(b));
}

static int log2_of(Ctx *cx, const char *op, int64_t n) {
  if (n < 1 || (n & (n - 1)))
    ctx_fail(cx, ERR_INADMISSIBLE,
             "%s: swizzled offsets scale by powers of two only, not %lld", op,
             (long long)n);
  return trailing(n);
}

Swizzle swizzle_upcast(Ctx *cx, Swizzle w, int64_t n) {
  int m = w.m - log2_of(cx, "upcast", n);
  if (m >= 0) return (Swizzle){w.b, (int8_t)m, w.s};
  int b = w.b + m;
  return (Swizzle){(int8_t)(b > 0 ? b : 0), 0, w.s};
}

Swizzle swizzle_downcast(Ctx *cx, Swizzle w, int64_t n) {
  return swizzle_make(cx, w.b, w.m + log2_of(cx, "downcast", n), w.s);
}

// ---- traced arguments ----
// The argument x of a swizzle, as a sum of terms. Terms divisible by 2^top are
// added after the swizzle, where `top` is above all bits that the swizzle reads
// or changes. If the other terms can only set disjoint bits, their sum is an
// XOR. Constant terms can then also move out, because a swizzle distributes
// over XOR.

#define TERMS 24
typedef struct Terms {
  Ref t[TERMS];
  int n;
  int64_t con;  // sum of the constant terms
  bool ok;
} Terms;

static void collect(const Fn *fn, Ref r, Terms *ts) {
  int64_t v;
  if (ir_const(fn, r, &v)) {
    ts->con += v;
  } else if (ir_get(fn, r)->op == OP_ADD) {
    Ref a = ir_get(fn, r)->a[0], b = ir_get(fn, r)->a[1];
    collect(fn, a, ts);
    collect(fn, b, ts);
  } else if (ts->n < TERMS) {
    ts->t[ts->n++] = r;
  } else {
    ts->ok = false;
  }
}

// Returns a mask of the bits that may be set in a value with fact f, or -1 if
// any bit may be set.
static int64_t possible_bits(Fact f) {
  if (f.lo < 0 || f.hi >= (int64_t)1 << 58) return -1;
  if (f.hi == 0) return 0;
  int hi = 64 - __builtin_clzll((uint64_t)f.hi);
  int64_t below = f.div ? (f.div & -f.div) - 1 : 0;
  return (((int64_t)1 << hi) - 1) & ~below;
}

static Dim sum_of(Ctx *cx, const Ref *t, int n) {
  Dim s = {0};
  for (int i = 0; i < n; i++) s = dim_add(cx, s, dim_ref(t[i]));
  return s;
}

// Emits x ^ ((x & yyy) >> s), the swizzle w of x.
static Dim plain_swizzle(Ctx *cx, Swizzle w, Dim x) {
  if (dim_static(x)) return dim_int(cx, swizzle_bits(w, x.w));
  Fn *fn = ir_fn(cx);
  Ref r = dim_asref(cx, x);
  Ref mask = dim_asref(cx, dim_int(cx, swizzle_yyy(w)));
  Ref y = ir_index(cx, fn, OP_AND, r, mask);
  int64_t v;
  if (ir_const(fn, y, &v) && v == 0) return x;
  Ref by = ir_int(cx, fn, DT_I32, iabs(w.s));
  Ref z = w.s ? ir_op2(cx, fn, w.s > 0 ? OP_SHR : OP_SHL, y, by) : y;
  return dim_fold(cx, ir_index(cx, fn, OP_XOR, r, z));
}

static Dim apply_traced(Ctx *cx, Swizzle w, Dim x) {
  const Fn *fn = ir_fn(cx);
  Terms ts = {.ok = true};
  collect(fn, dim_getref(x), &ts);
  int top = w.m + w.b + iabs(w.s);
  int64_t unit = (int64_t)1 << top, zy = swizzle_yyy(w) | swizzle_zzz(w);
  if (!ts.ok) return plain_swizzle(cx, w, x);
  Ref in[TERMS], out[TERMS];
  int nin = 0, nout = 0;
  // bits that the terms in `in` may set; -1: two of these terms may set the
  // same bit
  int64_t seen = 0;
  for (int i = 0; i < ts.n; i++) {
    Fact f = ir_fact(fn, ts.t[i]);
    if (f.div % unit == 0) {
      out[nout++] = ts.t[i];
      continue;
    }
    in[nin++] = ts.t[i];
    int64_t bits = possible_bits(f);
    seen = seen < 0 || bits < 0 || (seen & bits) ? -1 : seen | bits;
  }
  int64_t con_in = ts.con & (unit - 1), con_out = ts.con - con_in;
  int64_t con_xor = 0;
  if (seen < 0) {
    // Two terms may set the same bit, but facts about the sum may bound the
    // bits of the sum.
    seen = possible_bits(ir_fact(fn, dim_asref(cx, sum_of(cx, in, nin))));
  }
  if (seen >= 0 && !(seen & con_in)) {
    con_xor = con_in & zy;  // constant bits that the swizzle reads or changes
    // The swizzle does not affect the other constant bits, and adding them
    // later causes no carry.
    con_out += con_in & ~zy;
    con_in = 0;
  }
  Dim r = sum_of(cx, in, nin);
  r = plain_swizzle(cx, w, dim_add(cx, r, dim_int(cx, con_in)));
  if (con_xor) {
    Dim k = dim_int(cx, swizzle_bits(w, con_xor));
    r = dim_fold(cx, ir_index(cx, ir_fn(cx), OP_XOR, dim_asref(cx, r),
                              dim_asref(cx, k)));
  }
  r = dim_add(cx, r, sum_of(cx, out, nout));
  return dim_add(cx, r, dim_int(cx, con_out));
}

Dim swizzle_apply(Ctx *cx, Swizzle w, Dim x) {
  if (w.b == 0) {
    return x;
  } else if (dim_static(x)) {
    return dim_int(cx, swizzle_bits(w, x.w));
  } else if (dim_kind(x) != DIM_DYN) {
    ctx_fail(cx, ERR_ARG, "a swizzle needs an integer, not %s",
             tup_text(cx, &x));
  }
  return apply_traced(cx, w, x);
}

// ---- slices ----

// Returns a mask of the bits that may be set in values of a static layout.
// Returns -1 if strides are negative, or if adding the modes' values may carry.
static int64_t layout_bits(Layout l) {
  int64_t all = 0;
  const Dim *d = l.stride;
  size_t n = tup_words(l.shape);
  for (size_t i = 0; i < n; i++) {
    if (!tup_is_leaf(l.shape + i)) continue;
    int64_t s = l.shape[i].w, v = (d++)->w, bits = 0, top;
    if (s == 1 || v == 0) continue;
    if (v < 0 || __builtin_mul_overflow(s - 1, v, &top)) return -1;
    bits = possible_bits((Fact){0, top, v});
    if (bits < 0 || (bits & all)) return -1;
    all |= bits;
  }
  return all;
}

// Returns a layout that is equivalent to the swizzle w within a slice at offset
// `at`. Each XOR of the swizzle combines two bits, of which the slice must
// change at most one. The swizzle is then linear in the bits that the slice
// changes.
static Layout linear(Ctx *cx, Swizzle w, int64_t at) {
  int n = 0, shift = iabs(w.s);
  Dim *s = NEW(cx, Dim, 2 * (size_t)w.b + 3);
  Dim *d = NEW(cx, Dim, 2 * (size_t)w.b + 3);
  // lowest bits of the two fields that the XOR combines
  int lo = w.m, hi = w.m + shift;
  s[n] = dim_int(cx, (int64_t)1 << w.m);
  d[n++] = (Dim){1};
  for (int k = 0; k < 2; k++) {
    for (int i = 0; i < w.b; i++) {
      int64_t step = (int64_t)1 << ((k ? hi : lo) + i);
      s[n] = (Dim){2};
      d[n++] = dim_int(cx, swizzle_bits(w, at ^ step) - swizzle_bits(w, at));
    }
    s[n] = dim_int(cx, k ? 1 : (int64_t)1 << (shift - w.b));
    d[n++] = dim_int(cx, (int64_t)1 << (k ? hi + w.b : lo + w.b));
  }
  return flat_layout(cx, (Flat){s, d, n});
}

// Reports whether the plain layout lin(i) equals sw(at + part(i)) - sw(at) for
// every index i of part.
static bool agrees(Ctx *cx, Swizzle w, int64_t at, Layout part, Layout lin) {
  int64_t n = dim_value(layout_size(cx, part));
  if (n > 65536) return false;
  for (int64_t i = 0; i < n; i++) {
    int64_t x = layout_eval_at(cx, part, dim_int(cx, i)).w;
    int64_t y = layout_eval_at(cx, lin, dim_int(cx, i)).w;
    if (swizzle_bits(w, at + x) - swizzle_bits(w, at) != y) return false;
  }
  return true;
}

Layout layout_slice_swizzled(Ctx *cx, Layout l, Layout rest, Dim x,
                             Tup *offset) {
  Swizzle w = *layout_swizzle(l);
  Layout part = layout_inner(rest);
  if (!layout_static(rest) || !dim_static(x)) {
    int64_t unit = (int64_t)1 << (w.m + w.b + iabs(w.s));
    if (dim_div(cx, x) % unit == 0)
      *offset = tup_leaf(cx, x);
    else
      rest.offset = dim_add(cx, l.offset, x);
    return rest;
  }
  int64_t zy = swizzle_yyy(w) | swizzle_zzz(w);
  int64_t in = x.w & zy, by = x.w - in, bits = layout_bits(part);
  int64_t at = l.offset.w + in;
  bool clean = bits >= 0 && !(bits & x.w) && !(l.offset.w & x.w) &&
               by >= 0 && l.offset.w >= 0 && !(bits & l.offset.w);
  int64_t act = bits < 0 ? zy : bits & zy;
  int64_t yy = act & swizzle_yyy(w);
  // true if the slice changes both bits that an XOR combines
  bool both = (swizzle_bits(w, yy) ^ yy) & act;
  if (!both) {
    Note nt = {.op = "slice", .mode = -1, .quiet = true};
    Layout lin = compose_in(cx, &nt, linear(cx, w, at), part);
    if (!nt.bad && (clean || agrees(cx, w, l.offset.w + x.w, part, lin))) {
      int64_t o = clean ? swizzle_bits(w, at) + by
                        : swizzle_bits(w, l.offset.w + x.w);
      *offset = tup_int(cx, o);
      return lin;
    }
  }
  if (clean) {
    rest.offset = dim_int(cx, at);
    *offset = tup_int(cx, by);
  } else {
    rest.offset = dim_add(cx, l.offset, x);
  }
  return rest;
}

// Returns the product of a block l and a tiler that has a swizzle. The swizzle
// is shifted to match the strides of the product.
Layout layout_product_swizzled(Ctx *cx, Layout l, Layout tiler) {
  if (!dim_is(tiler.offset, 0))
    ctx_fail(cx, ERR_INADMISSIBLE,
             "logical_product: a swizzled tiler must have offset 0: %s",
             layout_text(cx, tiler));
  Swizzle w = *layout_swizzle(tiler);
  Layout t = layout_inner(tiler);
  Layout r = layout_logical_product(cx, l, tiler_layout(t));
  int64_t one = 1;
  int shift = iabs(w.s);
  Dim s[5] = {{one << w.m}, {one << w.b}, {one << (shift - w.b)},
              {one << w.b}, {1}};
  Dim d[5] = {{0}, {one << w.m}, {0}, {one << (w.m + shift)}, {0}};
  Layout only = flat_layout(cx, (Flat){s, d, 5});
  only = layout_compose(cx, only, t);
  Dim last = dim_sub(cx, layout_size(cx, only), (Dim){1});
  int64_t act = dim_value(layout_eval_at(cx, only, last));
  Dim c[2] = {{0}, {0}};
  c[1] = layout_eval_at(cx, t, dim_int(cx, act & swizzle_zzz(w)));
  Dim z = layout_eval(cx, r, tup_of(cx, c, 2));
  c[1] = layout_eval_at(cx, t, dim_int(cx, act & swizzle_yyy(w)));
  Dim y = layout_eval(cx, r, tup_of(cx, c, 2));
  return layout_swizzled(
    cx, swizzle_from_masks(cx, dim_value(y), dim_value(z)), (Dim){0}, r);
}
// SPDX-License-Identifier: MIT
