// Simplifies operations by constants, identities and facts (ranges and divisors
// of integers). Index arithmetic then looks as a programmer would write it.
#include "ir/eval.h"
#include "ir/fold.h"

#include <math.h>
#include <string.h>

// ---- facts about integers ----

Fact fold_full(DType t) { return (Fact){dtype_least(t), dtype_most(t), 1}; }

Fact fact_const(int64_t v) {
  return (Fact){v, v, v == INT64_MIN ? 1 : v < 0 ? -v : v};
}

Fact fact_join(Fact a, Fact b) {
  return (Fact){a.lo < b.lo ? a.lo : b.lo, a.hi > b.hi ? a.hi : b.hi,
                base_gcd(a.div, b.div)};
}

Fact fact_widen(Fact a, Fact b) {
  return (Fact){b.lo < a.lo ? INT64_MIN : a.lo, b.hi > a.hi ? INT64_MAX : a.hi,
                base_gcd(a.div, b.div)};
}

bool fact_within(Fact a, Fact b) {
  bool div = b.div == 0 ? a.div == 0 : a.div % b.div == 0;
  return a.lo >= b.lo && a.hi <= b.hi && div;
}

// Returns a fact clipped to the range of type t. Signed overflow is undefined,
// as in C, so facts assume that it does not happen. An unsigned result may
// wrap; then only the power of two in div remains valid.
static Fact clip(DType t, __int128 lo, __int128 hi, int64_t div) {
  bool out = lo < dtype_least(t) || hi > dtype_most(t);
  if (out && dtype_class(t) != 'I') {
    int64_t p = div & -div;
    return (Fact){dtype_least(t), dtype_most(t), p > 0 ? p : 1};
  }
  if (lo < dtype_least(t)) lo = dtype_least(t);
  if (hi > dtype_most(t)) hi = dtype_most(t);
  if (lo > hi) lo = dtype_least(t), hi = dtype_most(t);
  return (Fact){(int64_t)lo, (int64_t)hi, div};
}

static Fact fact_mul(DType t, Fact a, Fact b) {
  __int128 v[4] = {(__int128)a.lo * b.lo, (__int128)a.lo * b.hi,
                   (__int128)a.hi * b.lo, (__int128)a.hi * b.hi};
  __int128 lo = v[0], hi = v[0];
  for (int i = 1; i < 4; i++) {
    if (v[i] < lo) lo = v[i];
    if (v[i] > hi) hi = v[i];
  }
  __int128 d = (__int128)a.div * b.div;
  return clip(t, lo, hi, d > INT64_MAX ? 1 : (int64_t)d);
}

// Returns the fact of a / b. Division by 0 is undefined. Therefore a divisor
// that may be 0, such as an extent, is taken to be at least 1.
static Fact fact_div(DType t, Fact a, Fact b) {
  if (b.lo == 0 && b.hi > 0) b.lo = 1;
  if (b.lo != b.hi || b.lo <= 0) {
    if (a.lo >= 0 && b.lo > 0) return (Fact){0, a.hi / b.lo, 1};
    return fold_full(t);
  }
  int64_t c = b.lo;
  return (Fact){base_floor_div(a.lo, c), base_floor_div(a.hi, c),
                a.div % c == 0 ? a.div / c : 1};
}

static Fact fact_mod(DType t, Fact a, Fact b) {
  if (b.lo < 0 || b.hi < 1) return fold_full(t);
  Fact f = {0, b.hi - 1, base_gcd(a.div, b.div)};
  if (a.lo >= 0 && a.hi < f.hi) f.hi = a.hi;
  if (f.hi < f.lo) f.hi = f.lo;
  return f;
}

// Returns a mask of all bits that may be set in a value from 0 to hi.
static int64_t mask_of(int64_t hi) {
  uint64_t m = (uint64_t)hi;
  for (int s = 1; s < 64; s *= 2) m |= m >> s;
  return (int64_t)m;
}

// Returns the largest power of two that divides div. Returns 2^62 for div = 0,
// which every power of two divides.
static int64_t low_bits(int64_t div) {
  return div == 0 ? (int64_t)1 << 62 : div & -div;
}

static Fact fact_bits(DType t, Op op, Fact a, Fact b) {
  int64_t za = low_bits(a.div), zb = low_bits(b.div);
  if (op == OP_AND) {
    int64_t z = za > zb ? za : zb;
    if (a.lo >= 0 && b.lo >= 0)
      return (Fact){0, a.hi < b.hi ? a.hi : b.hi, z};
    if (b.lo >= 0) return (Fact){0, b.hi, z};
    if (a.lo >= 0) return (Fact){0, a.hi, z};
    return (Fact){dtype_least(t), dtype_most(t), z};
  }
  int64_t z = za < zb ? za : zb;
  if (a.lo < 0 || b.lo < 0)
    return (Fact){dtype_least(t), dtype_most(t), z};
  // OR and XOR do not change the bits of an operand above the highest bit that
  // may be set in the other operand. Therefore a.hi | mb and b.hi | ma bound
  // the result.
  int64_t ma = mask_of(a.hi), mb = mask_of(b.hi);
  int64_t most = (a.hi | mb) < (b.hi | ma) ? a.hi | mb : b.hi | ma;
  return (Fact){0, most, z};
}

static Fact fact_shift(DType t, Op op, Fact a, Fact b) {
  if (b.lo != b.hi || b.lo < 0 || b.lo > 62) return fold_full(t);
  if (op == OP_SHL)
    return fact_mul(t, a, fact_const((int64_t)1 << b.lo));
  int64_t c = (int64_t)1 << b.lo;
  return (Fact){a.lo >> b.lo, a.hi >> b.lo,
                a.div % c == 0 ? a.div / c : 1};
}

// Returns the fact of `a op b`, which is the range of type t for operations
// that have no case here.
static Fact fact_op2(DType t, Op op, Fact a, Fact b) {
  int64_t div = base_gcd(a.div, b.div);
  if (op == OP_ADD)
    return clip(t, (__int128)a.lo + b.lo, (__int128)a.hi + b.hi, div);
  if (op == OP_SUB)
    return clip(t, (__int128)a.lo - b.hi, (__int128)a.hi - b.lo, div);
  if (op == OP_MIN)
    return (Fact){a.lo < b.lo ? a.lo : b.lo, a.hi < b.hi ? a.hi : b.hi, div};
  if (op == OP_MAX)
    return (Fact){a.lo > b.lo ? a.lo : b.lo, a.hi > b.hi ? a.hi : b.hi, div};
  if (op == OP_MUL) return fact_mul(t, a, b);
  if (op == OP_DIV) return fact_div(t, a, b);
  if (op == OP_MOD) return fact_mod(t, a, b);
  if (op_class(op) == CLASS_LOGIC) return fact_bits(t, op, a, b);
  if (op_class(op) == CLASS_SHIFT) return fact_shift(t, op, a, b);
  return fold_full(t);
}

Fact fold_counter(const Fn *fn, Ref lo, Ref hi, Ref step) {
  Fact l = ir_fact(fn, lo), h = ir_fact(fn, hi), s = ir_fact(fn, step);
  if (s.lo < 0) return fold_full(ir_type(fn, lo));
  int64_t top = h.hi > INT64_MIN ? h.hi - 1 : h.hi;
  return (Fact){l.lo, top < l.lo ? l.lo : top, base_gcd(l.div, s.div)};
}

// ---- constants ----

bool ir_const(const Fn *fn, Ref r, int64_t *v) {
  const Ins *i = ir_get(fn, r);
  if (i->op != OP_CONST || dtype_is_float((DType)i->type)) return false;
  *v = i->imm;
  return true;
}

// Reports whether op is a sum, a difference or a product.
static bool is_linear(Op op) {
  return op_class(op) == CLASS_SUM || op_class(op) == CLASS_PRODUCT;
}

static bool is_equality(Op op) { return op == OP_EQ || op == OP_NE; }

bool ir_unrolled(const Fn *fn, Ref r) {
  const Ins *i = ir_get(fn, r);
  int64_t lo, hi, step;
  if (ir_const(fn, r, &lo)) return true;
  if (is_linear((Op)i->op))
    return ir_unrolled(fn, i->a[0]) && ir_unrolled(fn, i->a[1]);
  if (i->op != OP_FOR || !i->imm || !ir_const(fn, i->a[0], &lo) ||
      !ir_const(fn, i->a[1], &hi) || !ir_const(fn, i->a[2], &step))
    return false;
  // Reports whether the loop is fully unrolled: it has at most i->imm
  // iterations, and its counter cannot overflow.
  return step > 0 && hi <= INT32_MAX && lo >= 0 && hi - lo <= i->imm * step;
}

static bool float_const(const Fn *fn, Ref r, double *v) {
  const Ins *i = ir_get(fn, r);
  if (i->op != OP_CONST || !dtype_is_float((DType)i->type)) return false;
  *v = dtype_to_double((DType)i->type, (uint64_t)i->imm);
  return true;
}

Ref ir_int(Ctx *cx, Fn *fn, DType t, int64_t v) {
  v = dtype_int(t, (uint64_t)v);
  Ins i = {.op = OP_CONST, .type = (uint8_t)t, .imm = v};
  return ir_cons(cx, fn, i, fact_const(v));
}

// Returns the constant v. A NaN becomes the NaN that the emitter writes.
Ref ir_float(Ctx *cx, Fn *fn, DType t, double v) {
  if (t == DT_F64 && isnan(v)) v = bits_double(INT64_MAX);
  Ins i = {.op = OP_CONST, .type = (uint8_t)t,
           .imm = (int64_t)dtype_from_double(t, v)};
  return ir_cons(cx, fn, i, fold_full(t));
}

// Returns the value of special register r if cluster shape c determines it, or
// -1.
static int64_t cluster_known(const int32_t c[3], SReg r) {
  if (!c[0]) return -1;
  if (r >= SR_CLUSTER_NCTAID_X && r <= SR_CLUSTER_NCTAID_Z)
    return c[r - SR_CLUSTER_NCTAID_X];
  if (r >= SR_CLUSTER_CTAID_X && r <= SR_CLUSTER_CTAID_Z)
    return c[r - SR_CLUSTER_CTAID_X] == 1 ? 0 : -1;
  int64_t all = (int64_t)c[0] * c[1] * c[2];
  if (r == SR_CLUSTER_NCTARANK) return all;
  return r == SR_CLUSTER_CTARANK && all == 1 ? 0 : -1;
}

Ref ir_sreg(Ctx *cx, Fn *fn, SReg r) {
  Ins i = {.op = OP_SREG, .type = DT_I32, .imm = r};
  Fact f = {sreg_row(r)->least, sreg_row(r)->most, 1};
  if (r <= SR_TID_Z && fn->block[r]) f.hi = fn->block[r] - 1;
  if (r >= SR_NTID_X && r <= SR_NTID_Z && fn->block[r - SR_NTID_X])
    return ir_int(cx, fn, DT_I32, fn->block[r - SR_NTID_X]);
  const int32_t *c = fn->cluster;
  int64_t known = cluster_known(c, r);
  if (r >= SR_CLUSTERID_X && r <= SR_CLUSTERID_Z && c[r - SR_CLUSTERID_X] == 1)
    return ir_sreg(cx, fn, SR_CTAID_X + (r - SR_CLUSTERID_X));
  if (r >= SR_NCLUSTERID_X && r <= SR_NCLUSTERID_Z &&
      c[r - SR_NCLUSTERID_X] == 1)
    return ir_sreg(cx, fn, SR_NCTAID_X + (r - SR_NCLUSTERID_X));
  if (known >= 0) return ir_int(cx, fn, DT_I32, known);
  if (c[0] && r >= SR_CLUSTER_CTAID_X && r <= SR_CLUSTER_CTAID_Z)
    f.hi = c[r - SR_CLUSTER_CTAID_X] - 1;
  if (c[0] && r == SR_CLUSTER_CTARANK) f.hi = c[0] * c[1] * c[2] - 1;
  return ir_cons(cx, fn, i, f);
}

// ---- folding of two operands ----

// Reports whether `x op y` is defined, and has the same result on every target.
static bool defined(Op op, DType t, int64_t x, int64_t y) {
  if (op == OP_DIV || op == OP_MOD)
    return y != 0 && !(x == INT64_MIN && y == -1);
  if (op == OP_SHL || op == OP_SHR) return y >= 0 && y < dtype_bits(t);
  return true;
}

// Evaluates a float operation on constants. Returns false if some target does
// not compute the operation with exactly one rounding.
static bool fold_float2(Op op, DType t, double x, double y, double *v) {
  bool rounds = is_linear(op) || op == OP_DIV;
  if (!rounds || (t != DT_F32 && t != DT_F64)) return false;
  *v = dtype_to_double(t, eval_scalar(op, t, dtype_from_double(t, x),
                                      dtype_from_double(t, y), 0));
  return true;
}

// Decides a comparison by the operands' ranges, and sets *v to its result.
// Returns false if the ranges do not decide it.
static bool fold_compare(Op op, Fact a, Fact b, bool *v) {
  if (op == OP_LT && a.hi < b.lo) return *v = true, true;
  if (op == OP_LT && a.lo >= b.hi) return *v = false, true;
  if (op == OP_LE && a.hi <= b.lo) return *v = true, true;
  if (op == OP_LE && a.lo > b.hi) return *v = false, true;
  bool apart = a.hi < b.lo || b.hi < a.lo;
  if (is_equality(op) && apart) return *v = op == OP_NE, true;
  return false;
}

static bool commutes(Op op) {
  OpClass c = op_class(op);
  return op == OP_ADD || c == CLASS_PRODUCT || c == CLASS_LOGIC ||
         c == CLASS_EXTREME || is_equality(op);
}

static bool is_compare(Op op) { return op_rows[op].rule == RULE_CMP; }

// Reports whether facts show that the sum or product r does not wrap.
static bool exact(const Fn *fn, Ref r) {
  const Ins *i = ir_get(fn, r);
  if (dtype_class((DType)i->type) == 'I') return true;
  Fact a = ir_fact(fn, i->a[0]), b = ir_fact(fn, i->a[1]);
  __int128 lo, hi;
  if (i->op == OP_ADD) {
    lo = (__int128)a.lo + b.lo;
    hi = (__int128)a.hi + b.hi;
  } else if (i->op == OP_MUL && b.lo == b.hi) {
    lo = (__int128)(b.lo < 0 ? a.hi : a.lo) * b.lo;
    hi = (__int128)(b.lo < 0 ? a.lo : a.hi) * b.lo;
  } else {
    return false;
  }
  return lo >= dtype_least((DType)i->type) && hi <= dtype_most((DType)i->type);
}

static bool divides(int64_t c, int64_t div) { return div % c == 0; }

// Reports whether (a + b) / c equals a / c for all values. This holds if a is a
// multiple of a step that divides c, and b is in [0, step).
static bool below_step(const Fn *fn, Ref a, Ref b, int64_t c) {
  Fact f = ir_fact(fn, b);
  int64_t step = base_gcd(ir_fact(fn, a).div, c);
  return f.lo >= 0 && f.hi < step;
}

// A sum, split into the terms that c divides (`whole`), the other terms, whose
// sum is in lo..hi (`rest`), and the constant k.
typedef struct Terms {
  Ref whole[8], rest[8];
  int nwhole, nrest;
  __int128 lo, hi, k;
} Terms;

static bool find_terms(const Fn *fn, Ref x, int64_t c, Terms *t) {
  const Ins *i = ir_get(fn, x);
  Fact f = ir_fact(fn, x);
  int64_t k;
  if (ir_const(fn, x, &k)) return t->k += k, true;
  if (divides(c, f.div)) {
    if (t->nwhole < 8) t->whole[t->nwhole] = x;
    return t->nwhole++ < 8;
  }
  if (i->op == OP_ADD && exact(fn, x))
    return find_terms(fn, i->a[0], c, t) && find_terms(fn, i->a[1], c, t);
  if (t->nrest < 8) t->rest[t->nrest] = x;
  t->lo += f.lo;
  t->hi += f.hi;
  return t->nrest++ < 8;
}

static Ref sum_of(Ctx *cx, Fn *fn, const Ref *x, int n, Ref more) {
  Ref r = n ? x[0] : more;
  for (int k = 1; k < n; k++) r = ir_op2(cx, fn, OP_ADD, r, x[k]);
  return n ? ir_op2(cx, fn, OP_ADD, r, more) : r;
}

// Simplifies x / c or x % c. x must be a sum of multiples of c and other terms,
// and the sum of the other terms must be in [0, c). Returns 0 if x is not such
// a sum.
static Ref fold_terms(Ctx *cx, Fn *fn, Op op, Ref x, int64_t c) {
  Terms t = {0};
  DType type = ir_type(fn, x);
  if (!find_terms(fn, x, c, &t) || !t.nrest) return 0;
  int64_t k = (int64_t)((t.k % c + c) % c);
  if ((!t.nwhole && k == t.k) || t.lo + k < 0 || t.hi + k >= c) return 0;
  if (op == OP_MOD)
    return sum_of(cx, fn, t.rest, t.nrest, ir_int(cx, fn, type, k));
  for (int n = 0; n < t.nwhole; n++)
    t.whole[n] = ir_op2(cx, fn, OP_DIV, t.whole[n], ir_int(cx, fn, type, c));
  return sum_of(cx, fn, t.whole, t.nwhole,
                ir_int(cx, fn, type, (int64_t)((t.k - k) / c)));
}

// Simplifies x / c or x % c for a constant c > 0 where x is a sum, product,
// quotient or remainder. Returns 0 if no simpler form is known.
static Ref fold_divmod(Ctx *cx, Fn *fn, Op op, Ref x, int64_t c) {
  DType t = ir_type(fn, x);
  Fact f = ir_fact(fn, x);
  Ins i = *ir_get(fn, x);
  if (c == 1) return op == OP_DIV ? x : ir_int(cx, fn, t, 0);
  if (f.lo >= 0 && f.hi < c) return op == OP_DIV ? ir_int(cx, fn, t, 0) : x;
  if (op == OP_MOD && divides(c, f.div)) return ir_int(cx, fn, t, 0);
  int64_t k;
  if (i.op == OP_MUL && ir_const(fn, i.a[1], &k) && k > 0 && exact(fn, x)) {
    if (op == OP_DIV && k % c == 0)
      return ir_op2(cx, fn, OP_MUL, i.a[0], ir_int(cx, fn, t, k / c));
    if (c % k == 0) {  // (y*k)/c = y/(c/k);  (y*k)%c = (y%(c/k))*k
      Ref r = ir_op2(cx, fn, op, i.a[0], ir_int(cx, fn, t, c / k));
      return op == OP_DIV ? r
                          : ir_op2(cx, fn, OP_MUL, r, ir_int(cx, fn, t, k));
    }
  }
  if (i.op == OP_ADD && exact(fn, x)) {
    Ref parts = fold_terms(cx, fn, op, x, c);
    if (parts) return parts;
    for (int s = 0; s < 2; s++) {
      Ref a = i.a[s], b = i.a[1 - s];
      if (below_step(fn, a, b, c)) {  // (a+b)/c = a/c; (a+b)%c = a%c + b
        Ref r = ir_op2(cx, fn, op, a, ir_int(cx, fn, t, c));
        return op == OP_DIV ? r : ir_op2(cx, fn, OP_ADD, r, b);
      }
      // (a+b)/c = a/c + b/c if c divides a
      if (!divides(c, ir_fact(fn, a).div)) continue;
      if (op == OP_MOD) return ir_op2(cx, fn, OP_MOD, b, ir_int(cx, fn, t, c));
      Ref ct = ir_int(cx, fn, t, c);
      return ir_op2(cx, fn, OP_ADD, ir_op2(cx, fn, OP_DIV, a, ct),
                    ir_op2(cx, fn, OP_DIV, b, ct));
    }
  }
  // (y/k)/c = y/(k*c), and (y%k)%c = y%c if c divides k
  if (i.op == OP_DIV && op == OP_DIV && ir_const(fn, i.a[1], &k) && k > 0 &&
      k <= INT32_MAX && c <= INT32_MAX && (t == DT_I64 || k * c <= INT32_MAX))
    return ir_op2(cx, fn, OP_DIV, i.a[0], ir_int(cx, fn, t, k * c));
  if (i.op == OP_MOD && op == OP_MOD && ir_const(fn, i.a[1], &k) && k > 0 &&
      k % c == 0)
    return ir_op2(cx, fn, OP_MOD, i.a[0], ir_int(cx, fn, t, c));
  return 0;
}

// Computes k + y or k * y in type t. Returns false if a signed result does not
// fit in t. Both operations then remain, and the simulator checks them.
static bool joined(DType t, Op op, int64_t k, int64_t y, int64_t *out) {
  __int128 v = op == OP_MUL ? (__int128)k * y : (__int128)k + y;
  *out = (int64_t)v;
  return dtype_class(t) != 'I' || (v >= dtype_least(t) && v <= dtype_most(t));
}

// Returns a * y for a constant y, simplified if `a` is a product or a sum with
// a constant.
static Ref fold_product(Ctx *cx, Fn *fn, Ref a, int64_t y) {
  DType t = ir_type(fn, a);
  Ins i = *ir_get(fn, a);
  int64_t k;
  if (y == 0) return ir_int(cx, fn, t, 0);
  if (y == 1) return a;
  bool inner = (i.op == OP_MUL || i.op == OP_ADD) && ir_const(fn, i.a[1], &k);
  if (!inner) return 0;
  if (!joined(t, OP_MUL, k, y, &k)) return 0;
  Ref ky = ir_int(cx, fn, t, k);
  if (i.op == OP_MUL) return ir_op2(cx, fn, OP_MUL, i.a[0], ky);
  Ref x = ir_op2(cx, fn, OP_MUL, i.a[0], ir_int(cx, fn, t, y));
  return ir_op2(cx, fn, OP_ADD, x, ky);
}

// Simplifies `a op y` for a constant y. Returns 0 if no identity applies.
static Ref fold_right(Ctx *cx, Fn *fn, Op op, Ref a, int64_t y) {
  DType t = ir_type(fn, a);
  Ins i = *ir_get(fn, a);
  Fact f = ir_fact(fn, a);
  int64_t k;
  if (op == OP_MUL) return fold_product(cx, fn, a, y);
  if (op == OP_SUB)
    return ir_op2(cx, fn, OP_ADD, a,
                  ir_int(cx, fn, t, (int64_t)(0 - (uint64_t)y)));
  if (op == OP_DIV || op == OP_MOD)
    return y > 0 && t != DT_U64 ? fold_divmod(cx, fn, op, a, y) : 0;
  if (op == OP_AND && y == 0) return ir_int(cx, fn, t, 0);
  if (op == OP_AND)
    return f.lo >= 0 && y > 0 && (mask_of(f.hi) & ~y) == 0 ? a : 0;
  bool same = op == OP_ADD || op_class(op) == CLASS_SHIFT ||
              (op_class(op) == CLASS_LOGIC && op != OP_AND);
  if (same && y == 0) return a;
  if (op == OP_ADD && i.op == OP_ADD && ir_const(fn, i.a[1], &k) &&
      joined(t, OP_ADD, k, y, &k))
    return ir_op2(cx, fn, OP_ADD, i.a[0], ir_int(cx, fn, t, k));
  if (op == OP_XOR && i.op == OP_XOR && ir_const(fn, i.a[1], &k))
    return ir_op2(cx, fn, OP_XOR, i.a[0], ir_int(cx, fn, t, k ^ y));
  return 0;
}

// Reports whether instruction x is y ^ c for a constant c, and b is a multiple
// of a power of two above c. (y ^ c) + b then equals (y + b) ^ c. Thus offsets
// in a swizzled tile can share one sum and differ by XORs with constants.
static bool leaves_sum(const Fn *fn, Ins x, Ref b) {
  int64_t c;
  return x.op == OP_XOR && ir_const(fn, x.a[1], &c) && c >= 0 &&
         low_bits(ir_fact(fn, b).div) > c;
}

// Returns the sum a + b in the normal form (x ^ constant) + constant, where x
// is the sum of the terms that are not constant.
static Ref fold_sum(Ctx *cx, Fn *fn, Ref a, Ref b) {
  Ins x = *ir_get(fn, a), y = *ir_get(fn, b);
  int64_t k;
  if (x.op == OP_ADD && ir_const(fn, x.a[1], &k))
    return ir_op2(cx, fn, OP_ADD, ir_op2(cx, fn, OP_ADD, x.a[0], b), x.a[1]);
  if (y.op == OP_ADD && ir_const(fn, y.a[1], &k))
    return ir_op2(cx, fn, OP_ADD, ir_op2(cx, fn, OP_ADD, a, y.a[0]), y.a[1]);
  if (leaves_sum(fn, x, b))
    return ir_op2(cx, fn, OP_XOR, ir_op2(cx, fn, OP_ADD, x.a[0], b), x.a[1]);
  if (leaves_sum(fn, y, a))
    return ir_op2(cx, fn, OP_XOR, ir_op2(cx, fn, OP_ADD, a, y.a[0]), y.a[1]);
  return 0;
}

// Returns the difference a - b of i32 in the normal form x + constant, where x
// is the sum of the terms that are not constant. Differences of indices can
// then share x.
static Ref fold_difference(Ctx *cx, Fn *fn, Ref a, Ref b) {
  Ins x = *ir_get(fn, a), y = *ir_get(fn, b);
  int64_t k;
  if (ir_type(fn, a) != DT_I32) return 0;
  if (x.op == OP_ADD && ir_const(fn, x.a[1], &k))
    return ir_op2(cx, fn, OP_ADD, ir_op2(cx, fn, OP_SUB, x.a[0], b), x.a[1]);
  if (y.op == OP_ADD && ir_const(fn, y.a[1], &k) && k != INT32_MIN)
    return ir_op2(cx, fn, OP_ADD, ir_op2(cx, fn, OP_SUB, a, y.a[0]),
                  ir_int(cx, fn, DT_I32, -k));
  return 0;
}

static Ref fold_ints(Ctx *cx, Fn *fn, Op op, Ref a, Ref b) {
  DType t = ir_type(fn, a);
  int64_t x = 0, y = 0;
  bool ca = ir_const(fn, a, &x), cb = ir_const(fn, b, &y), c;
  if (ca && cb && defined(op, t, x, y))
    return ir_int(cx, fn, is_compare(op) ? DT_BOOL : t,
                  (int64_t)eval_scalar(op, t, (uint64_t)x, (uint64_t)y, 0));
  if (t != DT_U64 && fold_compare(op, ir_fact(fn, a), ir_fact(fn, b), &c))
    return ir_int(cx, fn, DT_BOOL, c);
  if (a == b) {
    if (op == OP_SUB || op == OP_XOR) return ir_int(cx, fn, t, 0);
    if (op == OP_AND || op == OP_OR) return a;
    if (op_class(op) == CLASS_EXTREME) return a;
    if (op == OP_EQ || op == OP_LE) return ir_int(cx, fn, DT_BOOL, 1);
    if (op == OP_NE || op == OP_LT) return ir_int(cx, fn, DT_BOOL, 0);
  }
  if (t == DT_BOOL && cb && op == OP_AND) return y ? a : b;
  if (t == DT_BOOL && cb && op == OP_OR) return y ? b : a;
  if (cb) {
    Ref r = fold_right(cx, fn, op, a, y);
    if (r) return r;
  } else if (op == OP_ADD) {
    return fold_sum(cx, fn, a, b);
  } else if (op == OP_SUB) {
    return fold_difference(cx, fn, a, b);
  }
  return 0;
}

static void want_same(Ctx *cx, const Fn *fn, Op op, Ref a, Ref b) {
  DType t = ir_type(fn, a), u = ir_type(fn, b);
  if (t != u)
    ctx_fail(cx, ERR_TYPE, "%s needs operands of one type, got %s and %s: "
             "convert one with :to(dtype)", op_name(op), dtype_name(t),
             dtype_name(u));
}

// Returns the type in which operations on type t are computed. Types narrower
// than a byte have no arithmetic.
static DType worker(DType t) {
  return t == DT_UE8M0 ? DT_F32
         : dtype_is_int(t) && dtype_bits(t) < 8 ? DT_I32 : t;
}

// Returns the shift count b converted to 32 bits. Fails if b is a constant that
// is out of range for a's type.
static Ref shift_by(Ctx *cx, Fn *fn, Ref a, Ref b) {
  int bits = dtype_bits(ir_type(fn, a));
  int64_t by;
  if (ir_const(fn, b, &by) && (by < 0 || by >= bits))
    ctx_fail(cx, ERR_ARG, "a shift by %lld of a value of %s: the shift must be "
             "0 to %d",
             (long long)by, dtype_name(ir_type(fn, a)), bits - 1);
  return dtype_bits(ir_type(fn, b)) > 32 ? ir_cvt(cx, fn, DT_I32, b) : b;
}

Ref ir_op2(Ctx *cx, Fn *fn, Op op, Ref a, Ref b) {
  ir_use(cx, fn, a);
  ir_use(cx, fn, b);
  bool shift = op == OP_SHL || op == OP_SHR;
  if (shift) b = shift_by(cx, fn, a, b);
  else want_same(cx, fn, op, a, b);
  DType t = ir_type(fn, a), in = worker(t);
  if (in != t) {
    Ref x = ir_cvt(cx, fn, in, a), y = shift ? b : ir_cvt(cx, fn, in, b);
    Ref r = ir_op2(cx, fn, op, x, y);
    return is_compare(op) ? r : ir_cvt(cx, fn, t, r);
  }
  bool ints = !dtype_is_float(t);
  int64_t v;
  // Move a constant to the right operand, where the identities expect it. Float
  // operands keep their order, because no identity applies to them.
  if (ints && commutes(op) && ir_const(fn, a, &v) && !ir_const(fn, b, &v)) {
    Ref s = a;
    a = b;
    b = s;
  }
  if (ints) {
    Ref r = fold_ints(cx, fn, op, a, b);
    if (r) return r;
  } else {
    double x, y, z;
    // min(x, x) and max(x, x) are x, even for a NaN
    if (a == b && (op == OP_MIN || op == OP_MAX)) return a;
    if (float_const(fn, a, &x) && float_const(fn, b, &y) &&
        fold_float2(op, t, x, y, &z))
      return ir_float(cx, fn, t, z);
    Ref r = irfast_op2(cx, fn, op, a, b);
    if (r) return r;
  }
  DType rt = is_compare(op) ? DT_BOOL : t;
  Ins i = {.op = (uint8_t)op, .type = (uint8_t)rt, .a = {a, b, 0}};
  Fact f = ints && !is_compare(op)
             ? fact_op2(t, op, ir_fact(fn, a), ir_fact(fn, b))
             : fold_full(rt);
  return ir_cons(cx, fn, i, f);
}

// ---- one and three operands ----

Ref ir_op1(Ctx *cx, Fn *fn, Op op, Ref a) {
  ir_use(cx, fn, a);
  DType t = ir_type(fn, a), in = worker(t);
  if (in != t)
    return ir_cvt(cx, fn, t, ir_op1(cx, fn, op, ir_cvt(cx, fn, in, a)));
  Fact f = ir_fact(fn, a), g = fold_full(t);
  int64_t x;
  double d;
  const Ins *i = ir_get(fn, a);
  if (op == OP_NOT && i->op == OP_NOT) return i->a[0];
  if (op == OP_NEG && i->op == OP_NEG) return i->a[0];
  if (ir_const(fn, a, &x)) {
    if (op != OP_ABS || x != INT64_MIN)
      return ir_int(cx, fn, t,
                    (int64_t)eval_scalar(op, t, (uint64_t)x, 0, 0));
  }
  if (float_const(fn, a, &d)) {
    if (op == OP_NEG) return ir_float(cx, fn, t, -d);
    if (op == OP_ABS) return ir_float(cx, fn, t, fabs(d));
  }
  if (op == OP_NEG && dtype_is_int(t))
    g = clip(t, -(__int128)f.hi, -(__int128)f.lo, f.div);
  if (op == OP_ABS && dtype_is_int(t)) {
    if (f.lo >= 0) return a;
    if (f.lo > dtype_least(t))
      g = (Fact){0, f.hi > -f.lo ? f.hi : -f.lo, f.div};
  }
  Ins ins = {.op = (uint8_t)op, .type = (uint8_t)t, .a = {a, 0, 0}};
  return ir_cons(cx, fn, ins, g);
}

Ref ir_op3(Ctx *cx, Fn *fn, Op op, Ref a, Ref b, Ref c) {
  ir_use(cx, fn, a);
  ir_use(cx, fn, b);
  ir_use(cx, fn, c);
  want_same(cx, fn, op, b, c);
  int64_t v;
  Fact f = fold_full(ir_type(fn, b));
  if (op == OP_SEL) {
    if (ir_type(fn, a) != DT_BOOL)
      ctx_fail(cx, ERR_TYPE, "where: the condition is %s, not a boolean",
               dtype_name(ir_type(fn, a)));
    if (ir_const(fn, a, &v)) return v ? b : c;
    if (b == c) return b;
    if (!dtype_is_float(ir_type(fn, b)))
      f = fact_join(ir_fact(fn, b), ir_fact(fn, c));
  } else {
    want_same(cx, fn, op, a, b);
  }
  Ins i = {.op = (uint8_t)op, .type = ir_get(fn, b)->type, .a = {a, b, c}};
  return ir_cons(cx, fn, i, f);
}

Ref ir_math(Ctx *cx, Fn *fn, MathFn f, Ref a, Ref b) {
  ir_use(cx, fn, a);
  ir_use(cx, fn, b);
  DType t = ir_type(fn, a);
  if (!dtype_is_float(t))
    ctx_fail(cx, ERR_TYPE, "%s of %s: the operand must be a float",
             math_name(f), dtype_name(t));
  if (math_is_approx(f) && t != DT_F32)
    ctx_fail(cx, ERR_TYPE, "%s of %s: the operand must be f32",
             math_name(f), dtype_name(t));
  if (math_arity(f) == 2) want_same(cx, fn, OP_MATH, a, b);
  // x^1 is x, and x^2 is one product, which is rounded once and is far cheaper
  // than pow.
  double d;
  if (f == MF_POW && float_const(fn, b, &d) && (d == 1 || d == 2))
    return d == 1 ? a : ir_op2(cx, fn, OP_MUL, a, a);
  Ref r = irfast_math(cx, fn, f, a, b);
  if (r) return r;
  Ins i = {.op = OP_MATH, .type = (uint8_t)t, .a = {a, b, 0}, .imm = f};
  return ir_cons(cx, fn, i, fold_full(t));
}

static Ref cvt_const(Ctx *cx, Fn *fn, DType t, Ref a) {
  int64_t x;
  double d;
  if (ir_const(fn, a, &x)) {
    if (t == DT_BOOL) return ir_int(cx, fn, t, x != 0);
    if (!dtype_is_float(t)) return ir_int(cx, fn, t, x);
    double y = ir_type(fn, a) == DT_U64 ? (double)(uint64_t)x : (double)x;
    if (t == DT_F64 || (x >= -(1 << 24) && x <= 1 << 24))
      return ir_float(cx, fn, t, y);
    // Folding this conversion would round twice, to double and then to t, so
    // the GPU computes it.
    return 0;
  }
  if (float_const(fn, a, &d) && dtype_is_float(t) && isfinite(d))
    return ir_float(cx, fn, t, d);
  return 0;
}

// Reports whether f32 represents all values of an integer exactly.
static bool small(const Fn *fn, Ref a) {
  Fact f = ir_fact(fn, a);
  return f.lo >= -(1 << 24) && f.hi <= 1 << 24;
}

// Converts the i32 values x + constant and |x| to f32 by converting x first.
// Returns 0 for other values. Indices that differ by constants then share a
// conversion, which takes as long as 4 additions.
static Ref cvt_index(Ctx *cx, Fn *fn, Ref a) {
  Ins i = *ir_get(fn, a);
  int64_t k;
  if (i.op != OP_ABS && i.op != OP_ADD) return 0;
  if (!small(fn, a) || !small(fn, i.a[0])) return 0;
  if (i.op == OP_ABS)
    return ir_op1(cx, fn, OP_ABS, ir_cvt(cx, fn, DT_F32, i.a[0]));
  if (!ir_const(fn, i.a[1], &k) || !small(fn, i.a[1])) return 0;
  return ir_op2(cx, fn, OP_ADD, ir_cvt(cx, fn, DT_F32, i.a[0]),
                ir_float(cx, fn, DT_F32, (double)k));
}

Ref ir_cvt(Ctx *cx, Fn *fn, DType t, Ref a) {
  ir_use(cx, fn, a);
  DType s = ir_type(fn, a);
  if (s == t) return a;
  Ref r = cvt_const(cx, fn, t, a);
  if (!r && s == DT_I32 && t == DT_F32) r = cvt_index(cx, fn, a);
  if (r) return r;
  Fact f = fold_full(t);
  if (!dtype_is_float(s) && !dtype_is_float(t)) {
    Fact g = ir_fact(fn, a);
    if (g.lo >= f.lo && g.hi <= f.hi) f = g;
    // A power of two that divides the operand divides the result, even if the
    // result wraps.
    else if (g.div & -g.div) f.div = g.div & -g.div;
    if (t == DT_BOOL) f = fold_full(t);
  }
  Ins i = {.op = OP_CVT, .type = (uint8_t)t, .a = {a, 0, 0}};
  return ir_cons(cx, fn, i, f);
}

Ref ir_bitcast(Ctx *cx, Fn *fn, DType t, Ref a) {
  ir_use(cx, fn, a);
  DType s = ir_type(fn, a);
  if (s == t) return a;
  bool byte = (s == DT_U8 && dtype_bits(t) < 8) ||
              // A float narrower than a byte occupies the low bits of a u8.
              (t == DT_U8 && dtype_bits(s) < 8);
  if (dtype_bits(s) != dtype_bits(t) && !byte)
    ctx_fail(cx, ERR_TYPE, "bitcast of %s (%d bits) to %s (%d bits); equal "
             "widths are needed", dtype_name(s), dtype_bits(s), dtype_name(t),
             dtype_bits(t));
  Ins i = {.op = OP_BITCAST, .type = (uint8_t)t, .a = {a, 0, 0}};
  return ir_cons(cx, fn, i, fold_full(t));
}

Ref ir_index(Ctx *cx, Fn *fn, Op op, Ref a, Ref b) {
  DType ta = ir_type(fn, a), tb = ir_type(fn, b);
  DType t = ta == DT_I64 || tb == DT_I64 || ta == DT_U64 || tb == DT_U64
              ? DT_I64 : DT_I32;
  if (t == DT_I32 && is_linear(op)) {
    // Offsets into tensors of less than 2^31 elements always fit in i32. For
    // larger tensors, facts decide.
    Fact x = ir_fact(fn, a), y = ir_fact(fn, b);
    __int128 top = op == OP_MUL ? (__int128)x.hi * y.hi
                                : (__int128)x.hi + y.hi;
    if (fn->wide && top > INT32_MAX) t = DT_I64;
  }
  return ir_op2(cx, fn, op, ir_cvt(cx, fn, t, a), ir_cvt(cx, fn, t, b));
}
// SPDX-License-Identifier: MIT
