// Implements Dim, one extent or stride. Computes static operands on the host.
// Simplifies operations on traced operands by the known ranges and divisors of
// these operands, or appends them to the IR.
#include "layout/tuple.h"

#define TAGGED(t, x) \
  ((Dim){.of = {.tag = (t), .bits = (uint64_t)(x) & ((1ull << 60) - 1)}})

DimKind dim_kind(Dim d) {
  switch (dim_tag(d)) {
  case TAG_TUP: return DIM_TUP;
  case TAG_DYN: return DIM_DYN;
  case TAG_ANY: return DIM_ANY;
  case TAG_BASIS: case TAG_BASISREF: return DIM_BASIS;
  case TAG_LAYOUT: return DIM_LAYOUT;
  case TAG_XOR: return DIM_XOR;
  default: return DIM_INT;
  }
}

static _Noreturn void overflow(Ctx *cx, const char *op, Dim a, Dim b) {
  ctx_fail(cx, ERR_OVERFLOW,
           "%lld %s %lld does not fit in an extent or stride (limit 2^60)",
           (long long)a.w, op, (long long)b.w);
}

Dim dim_int(Ctx *cx, int64_t v) {
  Dim d = {v};
  if (!dim_static(d))
    ctx_fail(cx, ERR_OVERFLOW,
             "%lld does not fit in an extent or stride (limit 2^60)",
             (long long)v);
  return d;
}

Dim dim_ref(Ref r) { return TAGGED(TAG_DYN, r); }

static Fn *fn_of(Ctx *cx) {
  if (!ir_fn(cx))
    ctx_fail(cx, ERR_FOREIGN, "a traced extent was used outside its kernel");
  return ir_fn(cx);
}

Dim dim_fold(Ctx *cx, Ref r) {
  int64_t v;
  Dim d;
  if (ir_const(fn_of(cx), r, &v)) {
    d.w = v;
    if (dim_static(d)) return d;
  }
  return dim_ref(r);
}

Dim dim_any(void) { return TAGGED(TAG_ANY, 0); }

Ref dim_getref(Dim d) { return (Ref)d.basis.value; }

Dim dim_layout(const Layout *l) { return TAGGED(TAG_LAYOUT, (uintptr_t)l); }

const Layout *dim_getlayout(Dim d) {
  if (dim_tag(d) != TAG_LAYOUT) return NULL;
  return (const Layout *)(uintptr_t)d.of.bits;
}

// ---- XORed strides ----

Dim dim_xor(Ctx *cx, int64_t v) {
  if (v < 0 || v >= (int64_t)1 << 59)
    ctx_fail(cx, ERR_OVERFLOW, "an XORed stride must be from 0 to 2^59 - 1, "
             "not %lld", (long long)v);
  return v ? TAGGED(TAG_XOR, v) : (Dim){0};
}

int64_t dim_xor_value(Dim d) {
  return (int64_t)d.of.bits;
}

// ---- bases ----

enum { LEVEL_BITS = 6 };

Dim dim_basis(Ctx *cx, Dim value, const int *path, int n) {
  if (n == 0) return value;
  if (n > DIM_LEVELS)
    ctx_fail(cx, ERR_LIMIT, "a basis has at most %d levels (got %d)",
             DIM_LEVELS, n);
  uint32_t modes = 0;
  for (int i = 0; i < n; i++) {
    if (path[i] < 0 || path[i] > 63)
      ctx_fail(cx, ERR_LIMIT, "a basis names modes 0 to 63 (got %d)", path[i]);
    modes |= (uint32_t)path[i] << (LEVEL_BITS * i);
  }
  Dim d = {.basis = {.path = modes & 0xffffff, .levels = (unsigned)n & 15}};
  if (dim_tag(value) == TAG_DYN) {
    d.basis.tag = TAG_BASISREF;
    d.basis.value = dim_getref(value);
    return d;
  }
  if (!dim_static(value))
    ctx_fail(cx, ERR_ARG, "the value of a basis must be an integer");
  if (value.w != (int32_t)value.w)
    ctx_fail(cx, ERR_OVERFLOW, "the value %lld of a basis such as 2@0 does not "
             "fit in 32 bits", (long long)value.w);
  d.basis.tag = TAG_BASIS;
  d.basis.value = (uint32_t)value.w;
  return d;
}

Dim dim_basis_value(Dim d) {
  if (dim_tag(d) == TAG_BASISREF) return dim_ref(dim_getref(d));
  if (dim_tag(d) == TAG_BASIS) return (Dim){(int32_t)d.basis.value};
  return d;
}

int dim_basis_path(Dim d, int path[DIM_LEVELS]) {
  if (dim_kind(d) != DIM_BASIS) return 0;
  int n = d.basis.levels;
  for (int i = 0; i < n; i++)
    path[i] = d.basis.path >> (LEVEL_BITS * i) & 63;
  return n;
}

// Returns a basis with d's path and the value `value`.
static Dim basis_with(Ctx *cx, Dim d, Dim value) {
  int path[DIM_LEVELS];
  int n = dim_basis_path(d, path);
  return dim_basis(cx, value, path, n);
}

static bool same_path(Dim a, Dim b) {
  return a.basis.path == b.basis.path && a.basis.levels == b.basis.levels;
}

// ---- traced values ----

Ref dim_asref(Ctx *cx, Dim d) {
  switch (dim_tag(d)) {
  case TAG_DYN: return dim_getref(d);
  case TAG_TUP:
    ctx_fail(cx, ERR_ARG, "an integer is needed here, not a tuple");
  case TAG_LAYOUT:
    ctx_fail(cx, ERR_ARG, "an integer is needed here, not a layout");
  case TAG_ANY: case TAG_BASIS: case TAG_BASISREF: case TAG_XOR:
    ctx_fail(cx, ERR_ARG, "an integer is needed here, not %s",
             tup_text(cx, &d));
  default:
    return ir_int(cx, fn_of(cx), d.w == (int32_t)d.w ? DT_I32 : DT_I64, d.w);
  }
}

// Returns the known range and divisor of d. For a basis, they are those of its
// value.
static Fact fact_of(Ctx *cx, Dim d) {
  if (dim_tag(d) == TAG_XOR) {
    int64_t x = dim_xor_value(d);
    return (Fact){0, DIM_MAX, x & -x};
  }
  if (dim_tag(d) == TAG_DYN || dim_tag(d) == TAG_BASISREF)
    return ir_fact(fn_of(cx), dim_getref(d));
  int64_t v = dim_basis_value(d).w;
  return (Fact){v, v, v < 0 ? -v : v};
}

int64_t dim_div(Ctx *cx, Dim d) { return fact_of(cx, d).div; }

static _Noreturn void bad_kind(Ctx *cx, const char *op, Dim a, Dim b);

static Dim emit2(Ctx *cx, Op op, Dim a, Dim b) {
  // dim_asref fails for an operand that is not an integer, because a kernel
  // cannot compute with it.
  if (!dim_static(a)) dim_asref(cx, a);
  if (!dim_static(b)) dim_asref(cx, b);
  if (dim_kind(a) == DIM_BASIS || dim_kind(b) == DIM_BASIS)
    bad_kind(cx, op_name(op), a, b);
  Ref x = dim_asref(cx, a), y = dim_asref(cx, b);
  return dim_fold(cx, ir_index(cx, fn_of(cx), op, x, y));
}

static _Noreturn void bad_kind(Ctx *cx, const char *op, Dim a, Dim b) {
  // arena_printf copies the text, so that `out` can be freed before the error.
  Buf out = {0};
  buf_printf(cx, &out, "operator '%s' is not defined for ", op);
  dim_print(cx, a, &out);
  buf_printf(cx, &out, " and ");
  dim_print(cx, b, &out);
  const char *s = arena_printf(cx, &cx->scratch, "%s", out.p);
  buf_free(&out);
  ctx_fail(cx, ERR_ARG, "%s", s);
}

// ---- arithmetic ----

Dim dim_bit_xor(Ctx *cx, Dim a, Dim b) {
  if (dim_static(a) && dim_static(b)) return (Dim){a.w ^ b.w};
  if (dim_is(a, 0)) return b;
  if (dim_is(b, 0)) return a;
  return dim_fold(cx, ir_index(cx, fn_of(cx), OP_XOR, dim_asref(cx, a),
                               dim_asref(cx, b)));
}

// Returns the carry-less product of n and the XORed stride d. For a traced n
// the result is an integer.
static Dim mul_xor(Ctx *cx, Dim n, Dim d) {
  uint64_t x = (uint64_t)dim_xor_value(d), sum = 0;
  if (dim_static(n)) {
    if (n.w < 0) bad_kind(cx, "*", n, d);
    for (int k = 0; n.w >> k; k++) {
      if (!(n.w >> k & 1)) continue;
      if (k > 59 || x >> (59 - k)) overflow(cx, "*", n, (Dim){(int64_t)x});
      sum ^= x << k;
    }
    return dim_xor(cx, (int64_t)sum);
  }
  Dim r = {0};
  for (int k = 0; x >> k; k++)
    if (x >> k & 1)
      r = dim_bit_xor(cx, r, dim_mul(cx, n, (Dim){(int64_t)1 << k}));
  return r;
}

Dim dim_add(Ctx *cx, Dim a, Dim b) {
  if (dim_static(a) && dim_static(b)) {
    // Both operands are below 2^60, so the sum fits in 64 bits.
    Dim d = {a.w + b.w};
    if (!dim_static(d)) overflow(cx, "+", a, b);
    return d;
  }
  if (dim_is(a, 0)) return b;
  if (dim_is(b, 0)) return a;
  if (dim_tag(a) == TAG_XOR || dim_tag(b) == TAG_XOR) {
    if (dim_tag(a) != dim_tag(b)) bad_kind(cx, "+", a, b);
    return dim_xor(cx, dim_xor_value(a) ^ dim_xor_value(b));
  }
  if (dim_kind(a) == DIM_BASIS || dim_kind(b) == DIM_BASIS) {
    if (dim_kind(a) != dim_kind(b) || !same_path(a, b))
      bad_kind(cx, "+", a, b);
    return basis_with(
      cx, a, dim_add(cx, dim_basis_value(a), dim_basis_value(b)));
  }
  return emit2(cx, OP_ADD, a, b);
}

Dim dim_sub(Ctx *cx, Dim a, Dim b) {
  if (dim_static(a) && dim_static(b)) {
    Dim d = {a.w - b.w};
    if (!dim_static(d)) overflow(cx, "-", a, b);
    return d;
  }
  if (dim_is(b, 0)) return a;
  if (dim_static(b)) return dim_add(cx, a, dim_int(cx, -b.w));
  if (dim_kind(a) == DIM_BASIS || dim_kind(b) == DIM_BASIS)
    return dim_add(cx, a, dim_neg(cx, b));
  if (dim_eq(a, b) && dim_kind(a) == DIM_DYN) return (Dim){0};
  return emit2(cx, OP_SUB, a, b);
}

Dim dim_neg(Ctx *cx, Dim a) { return dim_mul(cx, a, (Dim){-1}); }

Dim dim_abs(Ctx *cx, Dim a) {
  if (dim_tag(a) == TAG_XOR) return a;
  if (dim_static(a)) return a.w < 0 ? dim_int(cx, -a.w) : a;
  if (dim_kind(a) == DIM_BASIS)
    return basis_with(cx, a, dim_abs(cx, dim_basis_value(a)));
  if (fact_of(cx, a).lo >= 0) return a;
  return dim_fold(cx, ir_op1(cx, fn_of(cx), OP_ABS, dim_asref(cx, a)));
}

Dim dim_mul(Ctx *cx, Dim a, Dim b) {
  if (dim_static(a) && dim_static(b)) {
    Dim d;
    if (__builtin_mul_overflow(a.w, b.w, &d.w) || !dim_static(d))
      overflow(cx, "*", a, b);
    return d;
  }
  if (dim_is(a, 1)) return b;
  if (dim_is(b, 1)) return a;
  if (dim_tag(a) == TAG_XOR && dim_kind(b) <= DIM_DYN) return mul_xor(cx, b, a);
  if (dim_tag(b) == TAG_XOR && dim_kind(a) <= DIM_DYN) return mul_xor(cx, a, b);
  if (dim_kind(a) == DIM_BASIS && dim_kind(b) == DIM_BASIS)
    bad_kind(cx, "*", a, b);
  if (dim_kind(a) == DIM_BASIS)
    return basis_with(cx, a, dim_mul(cx, dim_basis_value(a), b));
  if (dim_kind(b) == DIM_BASIS)
    return basis_with(cx, b, dim_mul(cx, a, dim_basis_value(b)));
  if (dim_is(a, 0) || dim_is(b, 0)) return (Dim){0};
  return emit2(cx, OP_MUL, a, b);
}

static void need_nonzero(Ctx *cx, const char *op, Dim a, Dim b) {
  if (dim_is(b, 0))
    ctx_fail(cx, ERR_ARG, "%lld %s 0: division by zero", (long long)a.w, op);
}

// Returns the known range and divisor of divisor b. Facts allow an extent to be
// 0, but a divisor must not be 0, so a lower bound of 0 becomes 1.
static Fact divisor_fact(Ctx *cx, Dim b) {
  Fact f = fact_of(cx, b);
  if (f.lo == 0) f.lo = 1;
  return f;
}

Dim dim_quo(Ctx *cx, Dim a, Dim b) {
  need_nonzero(cx, "/", a, b);
  if (dim_static(a) && dim_static(b))
    return dim_int(cx, base_floor_div(a.w, b.w));
  if (dim_is(b, 1)) return a;
  if (dim_kind(a) == DIM_BASIS)
    return basis_with(cx, a, dim_quo(cx, dim_basis_value(a), b));
  Fact f = fact_of(cx, a), g = divisor_fact(cx, b);
  if (f.lo >= 0 && f.hi < g.lo) return (Dim){0};
  return emit2(cx, OP_DIV, a, b);
}

Dim dim_rem(Ctx *cx, Dim a, Dim b) {
  need_nonzero(cx, "%", a, b);
  if (dim_static(a) && dim_static(b))
    return (Dim){base_floor_mod(a.w, b.w)};
  if (dim_is(b, 1)) return (Dim){0};
  if (dim_kind(a) == DIM_BASIS)
    return basis_with(cx, a, dim_rem(cx, dim_basis_value(a), b));
  Fact f = fact_of(cx, a), g = divisor_fact(cx, b);
  if (dim_static(b) && f.div % b.w == 0) return (Dim){0};
  if (f.lo >= 0 && f.hi < g.lo) return a;
  if (dim_eq(a, b)) return (Dim){0};
  return emit2(cx, OP_MOD, a, b);
}

// Divides toward zero. If the sign of a traced `a` is unknown, adds b - 1 where
// `a` is negative, before a division that rounds down.
Dim dim_tquo(Ctx *cx, Dim a, Dim b) {
  need_nonzero(cx, "/", a, b);
  if (dim_static(a) && dim_static(b)) return dim_int(cx, a.w / b.w);
  if (dim_kind(a) == DIM_BASIS)
    return basis_with(cx, a, dim_tquo(cx, dim_basis_value(a), b));
  if (dim_static(b) && b.w < 0)
    return dim_neg(cx, dim_tquo(cx, a, dim_int(cx, -b.w)));
  if (dim_is(b, 1) || fact_of(cx, a).lo >= 0) return dim_quo(cx, a, b);
  Dim below = dim_lt(cx, a, (Dim){0}), up = dim_sub(cx, b, (Dim){1});
  return dim_quo(cx, dim_add(cx, a, dim_sel(cx, below, up, (Dim){0})), b);
}

Dim dim_trem(Ctx *cx, Dim a, Dim b) {
  need_nonzero(cx, "%", a, b);
  if (dim_static(a) && dim_static(b)) return (Dim){a.w % b.w};
  if (dim_kind(a) == DIM_BASIS)
    return basis_with(cx, a, dim_trem(cx, dim_basis_value(a), b));
  if (dim_static(b) && b.w < 0) return dim_trem(cx, a, dim_int(cx, -b.w));
  Fact f = fact_of(cx, a);
  if (f.lo >= 0 || (dim_static(b) && f.div % b.w == 0))
    return dim_rem(cx, a, b);
  return dim_sub(cx, a, dim_mul(cx, dim_tquo(cx, a, b), b));
}

// Returns (a + b - 1) / b with C++'s division, which rounds toward zero.
Dim dim_ceil_div(Ctx *cx, Dim a, Dim b) {
  need_nonzero(cx, "ceil_div", a, b);
  if (dim_static(a) && dim_static(b)) return dim_int(cx, (a.w + b.w - 1) / b.w);
  if (dim_is(b, 1)) return a;
  if (dim_eq(a, b) && dim_kind(a) == DIM_DYN) return (Dim){1};
  if (dim_static(b) && b.w > 0 && fact_of(cx, a).div % b.w == 0)
    return dim_quo(cx, a, b);
  Fact f = fact_of(cx, a), g = divisor_fact(cx, b);
  if (f.lo >= 1 && f.hi <= g.lo) return (Dim){1};
  Dim up = dim_add(cx, a, dim_sub(cx, b, (Dim){1}));
  return dim_quo(cx, up, b);
}

Dim dim_min(Ctx *cx, Dim a, Dim b) {
  if (dim_static(a) && dim_static(b)) return a.w < b.w ? a : b;
  if (dim_eq(a, b)) return a;
  Fact f = fact_of(cx, a), g = fact_of(cx, b);
  if (f.hi <= g.lo) return a;
  if (g.hi <= f.lo) return b;
  return emit2(cx, OP_MIN, a, b);
}

Dim dim_max(Ctx *cx, Dim a, Dim b) {
  if (dim_static(a) && dim_static(b)) return a.w > b.w ? a : b;
  if (dim_eq(a, b)) return a;
  Fact f = fact_of(cx, a), g = fact_of(cx, b);
  if (f.lo >= g.hi) return a;
  if (g.lo >= f.hi) return b;
  return emit2(cx, OP_MAX, a, b);
}

Dim dim_gcd(Ctx *cx, Dim a, Dim b) {
  return dim_int(cx, base_gcd(dim_div(cx, a), dim_div(cx, b)));
}

// ---- truth ----

Dim dim_lt(Ctx *cx, Dim a, Dim b) {
  if (dim_static(a) && dim_static(b)) return (Dim){a.w < b.w};
  Fact f = fact_of(cx, a), g = fact_of(cx, b);
  if (f.hi < g.lo) return (Dim){1};
  if (f.lo >= g.hi) return (Dim){0};
  return emit2(cx, OP_LT, a, b);
}

Dim dim_same(Ctx *cx, Dim a, Dim b) {
  if (dim_eq(a, b)) return (Dim){1};
  if (dim_kind(a) != DIM_DYN && dim_kind(b) != DIM_DYN) return (Dim){0};
  Fact f = fact_of(cx, a), g = fact_of(cx, b);
  if (f.hi < g.lo || g.hi < f.lo) return (Dim){0};
  return emit2(cx, OP_EQ, a, b);
}

static Dim logic(Ctx *cx, Op op, Dim a, Dim b) {
  return dim_fold(
    cx, ir_op2(cx, fn_of(cx), op, dim_asref(cx, a), dim_asref(cx, b)));
}

Dim dim_and(Ctx *cx, Dim a, Dim b) {
  if (dim_is(a, 0) || dim_is(b, 0)) return (Dim){0};
  if (dim_static(a)) return b;
  if (dim_static(b)) return a;
  return logic(cx, OP_AND, a, b);
}

Dim dim_or(Ctx *cx, Dim a, Dim b) {
  if (dim_is(a, 1) || dim_is(b, 1)) return (Dim){1};
  if (dim_static(a)) return b;
  if (dim_static(b)) return a;
  return logic(cx, OP_OR, a, b);
}

Dim dim_sel(Ctx *cx, Dim p, Dim a, Dim b) {
  if (dim_static(p)) return p.w ? a : b;
  if (dim_eq(a, b)) return a;
  Ref x = dim_asref(cx, a), y = dim_asref(cx, b);
  DType t = ir_type(ir_fn(cx), x) == DT_I64 || ir_type(ir_fn(cx), y) == DT_I64
              ? DT_I64 : DT_I32;
  return dim_fold(cx, ir_op3(cx, ir_fn(cx), OP_SEL, dim_asref(cx, p),
                             ir_cvt(cx, ir_fn(cx), t, x),
                             ir_cvt(cx, ir_fn(cx), t, y)));
}

Dim dim_not(Ctx *cx, Dim a) {
  if (dim_static(a)) return (Dim){!a.w};
  return dim_fold(cx, ir_op1(cx, fn_of(cx), OP_NOT, dim_asref(cx, a)));
}
// SPDX-License-Identifier: MIT
