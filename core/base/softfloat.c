// Evaluates floating-point instructions of PTX with every rounding mode and
// modifier: computes the exact result and rounds it once.
#include "base/soft.h"

#include <math.h>

#include "base/approx.h"

#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#endif

typedef unsigned __int128 Wide;

// ---- formats ----

typedef struct Format {
  int p;         // number of bits of the significand, including the hidden one
  int least;     // the exponent of the smallest normal number
  int low;       // number of low bits of the code that are unused (tf32)
  // Code of infinity, without the `low` unused bits. For e4m3, which has no
  // infinity, the code after that of the largest number, 448.
  uint64_t top;
  uint64_t nan;  // the canonical NaN
} Format;

static Format format_of(DType t) {
  switch ((int)t) {
  case DT_F16: return (Format){11, -14, 0, 0x7c00, 0x7fff};
  case DT_BF16: return (Format){8, -126, 0, 0x7f80, 0x7fff};
  case DT_TF32: return (Format){11, -126, 13, 0x3fc00, 0x7fffe000};
  case DT_F64:
    return (Format){53, -1022, 0, (uint64_t)0x7ff << 52,
                    (uint64_t)0xfff8 << 48};
  case DT_E4M3: return (Format){4, -6, 0, 0x7f, 0x7f};
  case DT_E5M2: return (Format){3, -14, 0, 0x7c, 0x7f};
  default: return (Format){24, -126, 0, 0x7f800000, 0x7fffffff};
  }
}

// A number: sig * 2^exp, negated if `sign`. inf and nan mark infinities and
// NaNs.
typedef struct Num {
  bool sign, inf, nan;
  int exp;
  Wide sig;
} Num;

static uint64_t sign_bit(DType t) {
  return (uint64_t)1 << (dtype_bits(t) - 1);
}

static Num unpack(DType t, uint64_t u) {
  Format f = format_of(t);
  Num x = {.sign = (u & sign_bit(t)) != 0};
  uint64_t mag = (u & (sign_bit(t) - 1)) >> f.low;
  uint64_t hidden = (uint64_t)1 << (f.p - 1);
  if (t == DT_E4M3 ? mag == f.top : mag > f.top) x.nan = true;
  else if (mag == f.top) x.inf = true;
  uint64_t e = mag >> (f.p - 1);
  x.sig = e ? (mag & (hidden - 1)) | hidden : mag;
  x.exp = f.least - (f.p - 1) + (e ? (int)e - 1 : 0);
  return x;
}

static int top_bit(Wide v) {
  uint64_t hi = (uint64_t)(v >> 64);
  return hi ? 127 - __builtin_clzll(hi) : 63 - __builtin_clzll((uint64_t)v);
}

// Reports whether |x| is below the smallest normal number of t.
static bool is_small(DType t, const Num *x) {
  return x->sig && x->exp + top_bit(x->sig) < format_of(t).least;
}

// Returns v / 2^n, truncated. If nonzero bits were shifted out, sets the lowest
// bit of the result (a sticky bit for a later rounding).
static Wide jam(Wide v, int n) {
  if (n <= 0) return v;
  if (n > 127) return v != 0;
  return v >> n | ((v & (((Wide)1 << n) - 1)) != 0);
}

// ---- rounding ----

static bool rounds_up(int mode, bool sign, Wide kept, Wide rest, Wide half) {
  switch ((SoftRound)mode) {
  case SOFT_RN: return rest > half || (rest == half && (kept & 1));
  case SOFT_RZ: return false;
  case SOFT_RM: return sign && rest;
  case SOFT_RP: return !sign && rest;
  case SOFT_RNA: return rest >= half;
  }
  return false;
}

// Returns the code of the largest finite number, without the `low` unused bits.
static uint64_t largest(Format f) { return f.top - 1; }

// Rounds x, which is not NaN, to type t. `.ftz` makes x zero if it is subnormal
// before the rounding.
static uint64_t pack(DType t, int mode, int flags, const Num *x) {
  Format f = format_of(t);
  uint64_t sign = x->sign ? sign_bit(t) : 0, u = f.top;
  if (x->sig == 0 && !x->inf) return sign;
  if (!x->inf) {
    if (flags & SOFT_FTZ && is_small(t, x)) return sign;
    int e = x->exp + top_bit(x->sig);
    int last = (e > f.least ? e : f.least) - (f.p - 1), n = last - x->exp;
    Wide kept, rest = 0, half = 1;
    if (n <= 0) {
      kept = x->sig << -n;
    } else if (n > 127) {
      kept = 0;
      rest = 1;
      half = 2;
    } else {
      kept = x->sig >> n;
      rest = x->sig & (((Wide)1 << n) - 1);
      half = (Wide)1 << (n - 1);
    }
    if (rest && rounds_up(mode, x->sign, kept, rest, half)) kept++;
    uint64_t field = (uint64_t)(last + f.p - 1 - f.least);
    if (field >= (uint64_t)1 << 12) field = (uint64_t)1 << 11;
    u = (field << (f.p - 1)) + (uint64_t)kept;
    bool toward = mode == SOFT_RZ || mode == (x->sign ? SOFT_RP : SOFT_RM);
    if (u >= f.top) u = toward ? largest(f) : f.top;
  }
  if (u >= f.top && flags & SOFT_FINITE) u = largest(f);
  return sign | u << f.low;
}

// Applies the modifiers `.sat` and `.relu` in flags to a result u.
static uint64_t clamp(DType t, int flags, uint64_t u) {
  if (!(flags & (SOFT_SAT | SOFT_RELU))) return u;
  Num x = unpack(t, u);
  if (x.nan) return flags & SOFT_SAT ? 0 : format_of(t).nan;
  if (x.sign) return 0;
  if (!(flags & SOFT_SAT)) return u;
  Num one = {.sig = 1};
  uint64_t most = pack(t, SOFT_RN, 0, &one);
  return u > most ? most : u;
}

static uint64_t finish(Soft s, const Num *x) {
  DType t = (DType)s.type;
  return clamp(t, s.flags, pack(t, s.mode, s.flags, x));
}

// ---- NaNs ----

static bool is_nan(DType t, uint64_t u) { return unpack(t, u).nan; }

static uint64_t quiet(uint64_t u) { return u | (uint64_t)1 << 51; }

// Returns the result for a NaN operand or an invalid operation: the canonical
// NaN. For f64, a NaN operand is returned instead, made quiet.
static uint64_t nan_of(Soft s, uint64_t a, uint64_t b, uint64_t c) {
  DType t = (DType)s.type;
  uint64_t u = format_of(t).nan;
  if (t == DT_F64) {
    u = is_nan(t, a) ? quiet(a) : is_nan(t, b) ? quiet(b)
        : is_nan(t, c) ? quiet(c) : u;
  }
  return clamp(t, s.flags, u);
}

// ---- arithmetic ----

static Num flushed(Soft s, uint64_t u) {
  Num x = unpack((DType)s.type, u);
  if (s.flags & SOFT_FTZ && is_small((DType)s.type, &x)) x.sig = 0;
  return x;
}

// Returns a + b. Both numbers are finite and have at most 106 bits.
static Num sum(Num a, Num b, int mode) {
  if (!a.sig || !b.sig) {
    Num r = a.sig ? a : b;
    if (!a.sig && !b.sig && a.sign != b.sign) r.sign = mode == SOFT_RM;
    return r;
  }
  int up = 125 - top_bit(a.sig);
  a.sig <<= up;
  a.exp -= up;
  up = 125 - top_bit(b.sig);
  b.sig <<= up;
  b.exp -= up;
  if (a.exp < b.exp) {
    Num c = a;
    a = b;
    b = c;
  }
  b.sig = jam(b.sig, a.exp - b.exp);
  if (a.sign == b.sign) {
    a.sig += b.sig;
  } else if (a.sig >= b.sig) {
    a.sig -= b.sig;
  } else {
    a.sig = b.sig - a.sig;
    a.sign = b.sign;
  }
  if (a.sig == 0) a.sign = mode == SOFT_RM;
  return a;
}

static uint64_t add(Soft s, uint64_t u, uint64_t v, bool minus) {
  Num a = flushed(s, u), b = flushed(s, v);
  if (a.nan || b.nan) return nan_of(s, v, u, 0);
  if (minus) b.sign = !b.sign;
  if (a.inf && b.inf && a.sign != b.sign) return nan_of(s, 0, 0, 0);
  Num r = a.inf ? a : b.inf ? b : sum(a, b, s.mode);
  return finish(s, &r);
}

// Reports whether raw bits are the f16 or bf16 NaN that `.oob` instructions
// read as "out of bounds".
static bool is_outside(uint64_t u) { return (u & 0x7fff) == 0x7ff7; }

static uint64_t fused(Soft s, const uint64_t x[3], bool adds) {
  if (s.flags & SOFT_OOB && (is_outside(x[0]) || is_outside(x[1]))) return 0;
  Num a = flushed(s, x[0]), b = flushed(s, x[1]);
  Num c = adds ? flushed(s, x[2]) : (Num){.sig = 0};
  if (a.nan || b.nan || c.nan) {
    return adds ? nan_of(s, x[1], x[2], x[0]) : nan_of(s, x[1], x[0], 0);
  }
  bool sign = a.sign != b.sign;
  if ((a.inf && !b.sig) || (b.inf && !a.sig)) return nan_of(s, 0, 0, 0);
  if (a.inf || b.inf) {
    if (c.inf && c.sign != sign) return nan_of(s, 0, 0, 0);
    Num r = {.sign = sign, .inf = true};
    return finish(s, &r);
  }
  if (c.inf) return finish(s, &c);
  Num p = {.sign = sign, .exp = a.exp + b.exp, .sig = a.sig * b.sig};
  if (adds) p = sum(p, c, s.mode);
  return finish(s, &p);
}

static uint64_t quotient(Soft s, Num a, Num b, uint64_t u, uint64_t v) {
  if (a.nan || b.nan) return nan_of(s, u, v, 0);
  bool zero = !b.sig && !b.inf;
  if ((a.inf && b.inf) || (zero && !a.sig && !a.inf)) {
    return nan_of(s, 0, 0, 0);
  }
  Num r = {.sign = a.sign != b.sign, .inf = a.inf || zero};
  if (!r.inf && a.sig && !b.inf) {
    int up = 125 - top_bit(a.sig);
    Wide n = a.sig << up;
    r.sig = n / b.sig << 1 | (n % b.sig != 0);
    r.exp = a.exp - up - b.exp - 1;
  }
  return finish(s, &r);
}

static uint64_t root(Soft s, uint64_t u) {
  Num a = flushed(s, u);
  if (a.nan) return nan_of(s, u, 0, 0);
  if (!a.sig) return finish(s, &a);
  if (a.sign) return nan_of(s, 0, 0, 0);
  if (a.inf) return finish(s, &a);
  int up = 124 - top_bit(a.sig);
  if ((a.exp - up) & 1) up++;
  Wide n = a.sig << up, r = 0;
  for (int k = 63; k >= 0; k--) {
    Wide t = r | (Wide)1 << k;
    if (t * t <= n) r = t;
  }
  Num x = {.exp = (a.exp - up) / 2 - 1, .sig = r << 1 | (r * r != n)};
  return finish(s, &x);
}

// Maps the bits of numbers to integers with the same order, where -0 is below
// +0.
static int64_t ordered(DType t, uint64_t u) {
  int64_t mag = (int64_t)(u & (sign_bit(t) - 1));
  return u & sign_bit(t) ? -mag - 1 : mag;
}

static uint64_t least(Soft s, uint64_t u, uint64_t v, bool max) {
  DType t = (DType)s.type;
  uint64_t bit = sign_bit(t), sign = 0;
  if (s.flags & SOFT_FTZ) {
    if (!flushed(s, u).sig) u &= bit;
    if (!flushed(s, v).sig) v &= bit;
  }
  if (s.flags & SOFT_XORSIGN) {
    sign = (u ^ v) & bit;
    u &= bit - 1;
    v &= bit - 1;
  }
  bool a = is_nan(t, u), b = is_nan(t, v);
  if ((a && b) || (s.flags & SOFT_NAN && (a || b))) return nan_of(s, v, u, 0);
  if (a || b) return (a ? v : u) | sign;
  return ((ordered(t, u) < ordered(t, v)) == max ? v : u) | sign;
}

// Computes neg or abs. The hardware computes both by an addition, so a NaN
// becomes the canonical NaN, except that an f64 NaN keeps its sign.
static uint64_t signed_op(Soft s, uint64_t u) {
  DType t = (DType)s.type;
  uint64_t bit = sign_bit(t);
  if (is_nan(t, u)) return nan_of(s, u, 0, 0);
  if (s.flags & SOFT_FTZ && !flushed(s, u).sig) u &= bit;
  return s.op == SOFT_NEG ? u ^ bit : u & ~bit;
}

// ---- conversions ----

// Rounds x to an integer. The result's exp is at least 0.
static Num integral(Num x, int mode) {
  if (x.exp >= 0 || !x.sig || x.inf) return x;
  int n = -x.exp;
  Wide kept = n > 127 ? 0 : x.sig >> n;
  Wide rest = n > 127 ? 1 : x.sig & (((Wide)1 << n) - 1);
  Wide half = n > 127 ? 2 : (Wide)1 << (n - 1);
  if (rest && rounds_up(mode, x.sign, kept, rest, half)) kept++;
  x.sig = kept;
  x.exp = 0;
  return x;
}

static uint64_t rint_of(Soft s, uint64_t u) {
  Num a = flushed(s, u);
  if (a.nan) return nan_of(s, u, 0, 0);
  a = integral(a, s.mode);
  return finish(s, &a);
}

// Converts a NaN u of type `from` to a NaN of type t with the same sign and
// leading payload bits.
static uint64_t carried(DType t, DType from, uint64_t u) {
  int p = format_of(t).p, q = format_of(from).p;
  uint64_t payload = u & (((uint64_t)1 << (q - 1)) - 1);
  payload = p > q ? payload << (p - q) : payload >> (q - p);
  uint64_t r = format_of(t).top | payload | (uint64_t)1 << (p - 2);
  return u & sign_bit(from) ? r | sign_bit(t) : r;
}

static uint64_t convert_nan(Soft s, uint64_t u) {
  DType t = (DType)s.type, from = (DType)s.from;
  bool keeps = from == DT_F64 || (t == DT_F64 && !(s.flags & SOFT_FTZ));
  uint64_t r = format_of(t).nan;
  if (t == DT_F64) r = carried(t, DT_F32, format_of(DT_F32).nan);
  if (keeps) r = carried(t, from, u);
  return clamp(t, s.flags, r);
}

// Converts f32 to tf32 as cvt.rna.tf32 does, by rounding the bits. Infinities
// and NaNs lose their low bits.
static uint64_t tf32_away(Soft s, uint64_t u) {
  bool special = (u & 0x7f800000u) == 0x7f800000u;
  uint64_t r = (special ? u : u + 0x1000) & 0xffffe000u;
  if (s.flags & SOFT_FINITE && (r & 0x7fffffff) >= 0x7f800000u) r -= 0x2000;
  return r;
}

static uint64_t to_float(Soft s, uint64_t u) {
  DType t = (DType)s.type, from = (DType)s.from;
  int other = t == DT_F16 || from == DT_F16;
  if (t == DT_TF32 && s.mode == SOFT_RNA) return tf32_away(s, u);
  // Conversions from and to f16 ignore .ftz.
  if (other) s.flags &= (uint8_t)~SOFT_FTZ;
  if (t == from && !s.flags) return t == DT_F16 || t == DT_BF16
    ? is_nan(t, u) ? format_of(t).nan : u : u;
  if (t == DT_F32 && from == DT_BF16 && !s.flags) return u << 16;
  Num x = unpack(from, u);
  if (x.nan) return convert_nan(s, u);
  bool late = from == DT_F64 && s.flags & SOFT_FTZ;
  if (s.flags & SOFT_FTZ && !late && is_small(from, &x)) x.sig = 0;
  int flags = late ? s.flags & ~SOFT_FTZ : s.flags;
  uint64_t r = pack(t, s.mode, flags, &x);
  // In conversions from f64, .ftz flushes results that are subnormal after
  // rounding.
  if (late) {
    Num y = unpack(t, r);
    if (is_small(t, &y)) r &= sign_bit(t);
  }
  return clamp(t, s.flags, r);
}

// Splits an integer of type t into sign and magnitude.
static Num whole(DType t, uint64_t u) {
  int n = dtype_bits(t);
  uint64_t v = n < 64 ? u & (((uint64_t)1 << n) - 1) : u;
  bool sign = dtype_class(t) == 'I' && v >> (n - 1) & 1;
  if (sign) v = 0 - v;
  if (n < 64) v &= ((uint64_t)1 << n) - 1;
  return (Num){.sign = sign, .sig = v};
}

// Returns x, an integer of any size, as an integer of type t. Out-of-range
// values become the nearest limit of t.
static uint64_t saturated(DType t, const Num *x) {
  int n = dtype_bits(t);
  bool is_signed = dtype_class(t) == 'I';
  Wide most = ((Wide)1 << (is_signed ? n - 1 : n)) - 1;
  Wide limit = x->sign ? (is_signed ? most + 1 : 0) : most, v = limit;
  if (!x->inf && !x->sig) {
    v = 0;
  } else if (!x->inf && x->exp + top_bit(x->sig) < 100) {
    Wide all = x->sig << x->exp;
    if (all < limit) v = all;
  }
  uint64_t r = (uint64_t)(x->sign ? 0 - v : v);
  return n < 64 ? r & (((uint64_t)1 << n) - 1) : r;
}

static uint64_t to_integer(Soft s, uint64_t u) {
  DType t = (DType)s.type, from = (DType)s.from;
  Num x = unpack(from, u);
  int n = dtype_bits(t);
  if (x.nan) {
    return from == DT_F64 || n == 64 ? (uint64_t)1 << (n - 1) : 0;
  }
  if (s.flags & SOFT_FTZ && is_small(from, &x)) x.sig = 0;
  x = integral(x, s.mode);
  return saturated(t, &x);
}

uint64_t soft_convert(Soft s, uint64_t u) {
  bool to = dtype_is_float((DType)s.type);
  if (dtype_is_float((DType)s.from)) {
    return to ? to_float(s, u) : to_integer(s, u);
  }
  Num x = whole((DType)s.from, u);
  return to ? finish(s, &x) : saturated((DType)s.type, &x);
}

// ---- approximate functions ----

static uint64_t approximate(Soft s, uint64_t u) {
  bool ftz = s.flags & SOFT_FTZ;
  DType t = (DType)s.type;
  uint32_t a = (uint32_t)u;
  if (t == DT_F64) {
    return s.mode == SOFT_A_RCP ? approx_rcp_f64(u) : approx_rsqrt_f64(u, ftz);
  }
  switch ((SoftApprox)s.mode) {
  case SOFT_EX2:
    return t == DT_F16 ? approx_ex2_f16(a) : t == DT_BF16 ? approx_ex2_bf16(a)
           : approx_ex2(a, ftz);
  case SOFT_LG2: return approx_lg2(a, ftz);
  case SOFT_A_RCP: return approx_rcp(a, ftz);
  case SOFT_A_SQRT: return approx_sqrt(a, ftz);
  case SOFT_RSQRT: return approx_rsqrt(a, ftz);
  case SOFT_SIN: return approx_sin(a);
  case SOFT_COS: return approx_cos(a);
  case SOFT_TANH:
    return t == DT_F16 ? approx_tanh_f16(a)
           : t == DT_BF16 ? approx_tanh_bf16(a) : approx_tanh(a);
  }
  return 0;
}

static bool is_tiny(uint64_t u) { return (u & 0x7fffffff) < 0x800000; }

static uint64_t times(uint64_t a, uint64_t b, int flags) {
  Soft s = {.op = SOFT_MUL, .type = DT_F32, .flags = (uint8_t)flags};
  uint64_t x[3] = {a, b, 0};
  return fused(s, x, false);
}

// Computes div.approx: multiplies a by the reciprocal of b from the special
// function unit, which is 0 for |b| above 2^126.
static uint64_t divide_approx(Soft s, uint64_t a, uint64_t b) {
  bool ftz = s.flags & SOFT_FTZ, tiny = is_tiny(b) && !ftz;
  if (tiny) {
    a = times(a, 0x4b800000, 0);  // 2^24
    b = times(b, 0x4b800000, 0);
  }
  return times(a, approx_rcp((uint32_t)b, true), s.flags & SOFT_FTZ);
}

static uint64_t divide_full(Soft s, uint64_t a, uint64_t b) {
  if (!(s.flags & SOFT_FTZ)) return approx_div((uint32_t)a, (uint32_t)b);
  bool large = (b & 0x7fffffff) > 0x7e800000;  // 2^126
  uint64_t scale = large ? 0x3e800000 : 0x3f800000;
  uint64_t r = approx_rcp((uint32_t)times(b, scale, SOFT_FTZ), true);
  return times(r, times(a, scale, SOFT_FTZ), SOFT_FTZ);
}

// ---- all floating-point operations ----

static float host_operand(uint64_t u, bool ftz) {
  bool zero = ftz && is_tiny(u);
  return bits_float((uint32_t)(zero ? u & 0x80000000u : u));
}

// Computes s with the host's f32 arithmetic. Returns false if the host's result
// might differ from PTX's. Supports only add, sub, mul and fma of f32, rounded
// to nearest. With .ftz, supports only results above the smallest normal
// number.
static bool by_host(Soft s, const uint64_t x[3], uint64_t *r) {
  bool ftz = s.flags & SOFT_FTZ;
  if (s.type != DT_F32 || s.mode != SOFT_RN || s.flags & ~SOFT_FTZ) {
    return false;
  }
  float a = host_operand(x[0], ftz), b = host_operand(x[1], ftz), d;
  if (s.op == SOFT_ADD) d = a + b;
  else if (s.op == SOFT_SUB) d = a - b;
  else if (s.op == SOFT_MUL) d = a * b;
  else if (s.op == SOFT_FMA) d = fmaf(a, b, host_operand(x[2], ftz));
  else return false;
  *r = float_result(d);
  return !ftz || (*r & 0x7fffffff) > 0x800000;
}

uint64_t soft_float(Soft s, const uint64_t x[3]) {
  Num one = {.sig = 1};
  uint64_t fast;
  if (by_host(s, x, &fast)) return fast;
  switch ((SoftOp)s.op) {
  case SOFT_ADD: return add(s, x[0], x[1], false);
  case SOFT_SUB: return add(s, x[0], x[1], true);
  case SOFT_MUL: return fused(s, x, false);
  case SOFT_FMA: return fused(s, x, true);
  case SOFT_DIV:
    return quotient(s, flushed(s, x[0]), flushed(s, x[1]), x[0], x[1]);
  case SOFT_RCP: return quotient(s, one, flushed(s, x[0]), 0, x[0]);
  case SOFT_SQRT: return root(s, x[0]);
  case SOFT_MIN: case SOFT_MAX:
    return least(s, x[0], x[1], s.op == SOFT_MAX);
  case SOFT_NEG: case SOFT_ABS: return signed_op(s, x[0]);
  case SOFT_RINT: return rint_of(s, x[0]);
  case SOFT_DIV_APPROX: return divide_approx(s, x[0], x[1]);
  case SOFT_DIV_FULL: return divide_full(s, x[0], x[1]);
  case SOFT_APPROX: return approximate(s, x[0]);
  case SOFT_CVT: case SOFT_PACK: case SOFT_DP4A: case SOFT_DP2A:
  case SOFT_BMSK: case SOFT_SZEXT: case SOFT_FNS: case SOFT_PRMT:
  case SOFT_MADHI_SAT: case SOFT_MAD24HI_SAT: case SOFT_COUNT:
    // soft_convert and soft_integer compute the other operations.
    break;
  }
  return 0;
}
// SPDX-License-Identifier: MIT
