// The table of intrinsics, their evaluation, and facts about their results.
#include "ir/intrin.h"

#include <fenv.h>
#include <math.h>
#include <string.h>

#include "base/approx.h"
#include "base/soft.h"
#include "ir/eval.h"
#include "ir/fold.h"

static const Intrin rows[IN_COUNT] = {
#define P INTRIN_P
#define K INTRIN_K
#define L INTRIN_L
#define A INTRIN_A
#define M INTRIN_M
#define IN(id, name, sig, class, how, sm, text) \
  {name, sig, text, class, sm, FI_##how},
  INTRINS(IN)
#undef IN
#undef M
#undef A
#undef K
#undef L
#undef P
};

const Intrin *intrin_row(IntrinId id) { return &rows[id]; }

// ---- operand types ----

static DType type_of(char c) {
  switch (c) {
    case 'p': return DT_BOOL;
    case 's': return DT_I16;
    case 'w': return DT_U16;
    case 'i': return DT_I32;
    case 'u': return DT_U32;
    case 'I': return DT_I64;
    case 'U': return DT_U64;
    default: return DT_F32;
  }
}

int intrin_arity(IntrinId id) { return (int)strlen(rows[id].sig) - 2; }

DType intrin_operand(IntrinId id, int k) {
  return type_of(rows[id].sig[2 + k]);
}

DType intrin_result(IntrinId id) {
  const char *s = rows[id].sig;
  return type_of(s[0] == '=' ? s[2] : s[0]);
}

static bool same_register(DType a, DType b) {
  return a == b || (dtype_is_int(a) && dtype_is_int(b) &&
                    dtype_bits(a) == dtype_bits(b));
}

bool intrin_fits(IntrinId id, const DType *t, int n, bool exact) {
  if (intrin_arity(id) != n) return false;
  for (int k = 0; k < n; k++) {
    DType want = intrin_operand(id, k);
    if (t[k] == DT_NONE || t[k] == want) continue;
    // Only the first operand must have the type that the row specifies. Other
    // operands that are integers, such as positions, masks and lanes, are
    // converted.
    if (k > 0 && want == DT_U32 && dtype_is_int(t[k])) continue;
    if (exact || !same_register(t[k], want)) return false;
  }
  return true;
}

// ---- arithmetic of one lane ----

// Extracts a bit field of `len` bits from position `pos`. The 32-bit
// instruction reads the low 8 bits of pos and len. The 64-bit instruction reads
// whole registers, as measured on an H100.
static uint64_t field(uint64_t a, uint64_t pos, uint64_t len, int bits,
                      bool sign) {
  uint64_t mask = bits == 32 ? 255 : UINT32_MAX;
  uint64_t p = pos & mask, n = len & mask, msb = (uint64_t)bits - 1, d = 0;
  uint64_t at = p + n - 1 < msb ? p + n - 1 : msb;
  uint64_t top = sign && n ? a >> at & 1 : 0;
  for (uint64_t i = 0; i <= msb; i++)
    d |= (i < n && p + i <= msb ? a >> (p + i) & 1 : top) << i;
  return d;
}

static uint64_t insert(uint64_t f, uint64_t base, uint64_t at, int bits) {
  uint64_t p = at & 255, n = at >> 8 & 255;
  for (uint64_t i = 0; i < n && p + i < (uint64_t)bits; i++)
    base = (base & ~((uint64_t)1 << (p + i))) | (f >> i & 1) << (p + i);
  return base;
}

static uint64_t reverse(uint64_t a, int bits) {
  uint64_t r = 0;
  for (int k = 0; k < bits; k++) r |= (a >> k & 1) << (bits - 1 - k);
  return r;
}

// Returns the position of a's highest set bit, or -1 as a 32-bit word if a is
// 0.
static uint64_t highest(uint64_t a) {
  return a ? (uint64_t)(63 - __builtin_clzll(a)) : 0xffffffffu;
}

static uint64_t permute(uint64_t a, uint64_t b, uint64_t sel) {
  uint64_t bytes = (b << 32) | (a & 0xffffffffu), d = 0;
  for (int k = 0; k < 4; k++) {
    uint64_t s = sel >> (4 * k) & 15, byte = bytes >> (8 * (s & 7)) & 255;
    if (s & 8) byte = byte & 128 ? 255 : 0;
    d |= byte << (8 * k);
  }
  return d;
}

static uint64_t lut3(uint64_t a, uint64_t b, uint64_t c, int64_t lut) {
  uint64_t d = 0;
  for (int k = 0; k < 32; k++) {
    int at = (int)((a >> k & 1) << 2 | (b >> k & 1) << 1 | (c >> k & 1));
    d |= (uint64_t)(lut >> at & 1) << k;
  }
  return d;
}

static uint64_t funnel(uint64_t lo, uint64_t hi, uint64_t n, bool left) {
  uint64_t x = hi << 32 | lo;
  return left ? (n == 32 ? lo : x << n >> 32) : x >> n;
}

static uint64_t clamp32(uint64_t n) { return n > 32 ? 32 : n; }
static int64_t s32(uint64_t a) { return (int32_t)a; }
static int64_t s24(uint64_t a) { return (int32_t)(a << 8) >> 8; }
static uint64_t u24(uint64_t a) { return a & 0xffffffu; }

// Returns s, saturated to 32 bits.
static uint64_t saturated(int64_t s) {
  return (uint64_t)(s > INT32_MAX ? INT32_MAX : s < INT32_MIN ? INT32_MIN : s);
}

static uint64_t mulhi64(uint64_t a, uint64_t b, bool sign) {
  if (!sign) return (uint64_t)((unsigned __int128)a * b >> 64);
  return (uint64_t)((__int128)(int64_t)a * (int64_t)b >> 64);
}


// Returns the minimum or maximum of two f32. With `nan`, a NaN operand gives a
// NaN. With `abs`, compares magnitudes and gives the result the sign of a times
// b.
static uint64_t pick(uint64_t a, uint64_t b, bool max, bool nan, bool abs) {
  uint64_t sign = abs ? (a ^ b) & 0x80000000u : 0;
  if (abs) a &= 0x7fffffffu, b &= 0x7fffffffu;
  bool na = (a & 0x7fffffffu) > 0x7f800000u;
  bool nb = (b & 0x7fffffffu) > 0x7f800000u;
  if ((na && nb) || (nan && (na || nb))) return 0x7fffffffu;
  if (na || nb) return (na ? b : a) | sign;
  // integers in the order of the floats, with -0 before +0
  int64_t x = a >> 31 ? -(int64_t)(a & 0x7fffffffu) - 1 : (int64_t)a;
  int64_t y = b >> 31 ? -(int64_t)(b & 0x7fffffffu) - 1 : (int64_t)b;
  return ((x < y) == max ? b : a) | sign;
}

// Rounds an f32 to tf32, ties away from zero. Infinities and NaNs lose their
// low bits, as in cvt.rna.tf32: the NaN 7f800001 becomes infinity.
static uint64_t tf32_away(uint64_t a) {
  bool special = (a & 0x7f800000u) == 0x7f800000u;
  return (special ? a : a + 0x1000u) & 0xffffe000u;
}

// Computes the intrinsics ADDRZ to RCPRM: six operations, each rounded toward
// zero, up and down. Changes the host's rounding mode around the operation.
// `volatile` prevents the compiler from moving the operation past a change of
// the mode.
static uint64_t directed(IntrinId id, uint64_t a, uint64_t b, uint64_t c) {
  static const int modes[] = {FE_TOWARDZERO, FE_UPWARD, FE_DOWNWARD};
  enum { KINDS = 6 };
  CONSECUTIVE(KINDS + 1, IN_ADDRZ, IN_ADDRP);
  CONSECUTIVE(3 * KINDS, IN_ADDRZ, IN_RCPRM);
  volatile float x = bits_float((uint32_t)a), y = bits_float((uint32_t)b);
  volatile float z = bits_float((uint32_t)c), r = 0;
  int keep = fegetround();
  fesetround(modes[(id - IN_ADDRZ) / KINDS]);
  switch ((int)((id - IN_ADDRZ) % KINDS + IN_ADDRZ)) {
    case IN_ADDRZ: r = x + y; break;
    case IN_MULRZ: r = x * y; break;
    case IN_DIVRZ: r = x / y; break;
    case IN_FMARZ: r = fmaf(x, y, z); break;
    case IN_SQRTRZ: r = sqrtf(x); break;
    default: r = 1 / x; break;
  }
  fesetround(keep);
  float f = r;
  return f != f ? 0x7fffffffu : float_bits(f);
}

// Applies an operation to both halves of 32-bit operands, which are elements of
// type t.
static uint64_t halves(Op op, DType t, uint64_t a, uint64_t b, uint64_t c) {
  int n = dtype_bits(t);
  uint64_t m = ((uint64_t)1 << n) - 1;
  return eval_scalar(op, t, a & m, b & m, c & m) |
         eval_scalar(op, t, a >> n & m, b >> n & m, c >> n & m) << n;
}

const char *intrin_modifiers(int64_t imm) {
  static const char *const names[] = {".rn", ".rz", ".rm", ".rp", ".rn.ftz",
                                      ".rz.ftz", ".rm.ftz", ".rp.ftz"};
  return names[imm & 7];
}

// Applies an operation to both f32 of 64-bit operands.
static uint64_t floats2(SoftOp op, int64_t imm, uint64_t a, uint64_t b,
                        uint64_t c) {
  Soft s = {.op = (uint8_t)op, .type = DT_F32, .from = DT_F32,
            .mode = (uint8_t)(imm & 3), .flags = imm & INTRIN_FTZ ? SOFT_FTZ
                                                                  : 0};
  uint64_t m = 0xffffffffu;
  return soft_eval(s, (uint64_t[3]){a & m, b & m, c & m}) |
         soft_eval(s, (uint64_t[3]){a >> 32, b >> 32, c >> 32}) << 32;
}

// Rounds two f32 to type t and packs them into one word.
static uint64_t rounded2(DType t, uint64_t lo, uint64_t hi) {
  return dtype_from_float(t, bits_float((uint32_t)lo)) |
         dtype_from_float(t, bits_float((uint32_t)hi)) << dtype_bits(t);
}

// Converts two packed elements of type s to type t.
static uint64_t converted2(DType t, DType s, uint64_t x) {
  int n = dtype_bits(s);
  uint64_t lo = x & (((uint64_t)1 << n) - 1), hi = x >> n;
  return rounded2(t, float_bits(dtype_to_float(s, lo)),
                  float_bits(dtype_to_float(s, hi)));
}

// Applies f to each 16-bit half of a word.
static uint64_t both(uint32_t (*f)(uint32_t x), uint64_t a) {
  return f((uint32_t)a & 0xffff) | (uint64_t)f((uint32_t)a >> 16) << 16;
}

static uint64_t low(IntrinId id, uint64_t u) {
  int n = dtype_bits(intrin_result(id));
  return n < 64 ? u & (((uint64_t)1 << n) - 1) : u;
}

static uint64_t compute(IntrinId id, int64_t imm, uint64_t a, uint64_t b,
                        uint64_t c) {
  switch (id) {
    case IN_POPC: case IN_POPC64: return (uint64_t)__builtin_popcountll(a);
    case IN_CLZ: return (uint64_t)(a ? __builtin_clzll(a) - 32 : 32);
    case IN_CLZ64: return (uint64_t)(a ? __builtin_clzll(a) : 64);
    case IN_BREV: return reverse(a, 32);
    case IN_BREV64: return reverse(a, 64);
    case IN_BFIND: case IN_BFIND64: return highest(a);
    case IN_BFINDS: return highest(a >> 31 ? ~a & 0xffffffffu : a);
    case IN_BFINDS64: return highest(a >> 63 ? ~a : a);
    case IN_BFE: return field(a, b, c, 32, false);
    case IN_BFES: return field(a, b, c, 32, true);
    case IN_BFE64: return field(a, b, c, 64, false);
    case IN_BFES64: return field(a, b, c, 64, true);
    case IN_BFI: return insert(a, b, c, 32);
    case IN_BFI64: return insert(a, b, c, 64);
    case IN_PRMT: return permute(a, b, c);
    case IN_LOP3: return lut3(a, b, c, imm);
    case IN_FUNNEL_L: return funnel(a, b, c & 31, true);
    case IN_FUNNEL_R: return funnel(a, b, c & 31, false);
    case IN_FUNNEL_LC: return funnel(a, b, clamp32(c), true);
    case IN_FUNNEL_RC: return funnel(a, b, clamp32(c), false);
    case IN_MULHI: return (uint64_t)(s32(a) * s32(b) >> 32);
    case IN_MULHIU: return a * b >> 32;
    case IN_MULHI64: return mulhi64(a, b, true);
    case IN_MULHIU64: return mulhi64(a, b, false);
    case IN_MULWIDE: return (uint64_t)(s32(a) * s32(b));
    case IN_MULWIDEU: case IN_MULWIDEU16: return a * b;
    case IN_MULWIDE16: return (uint64_t)((int64_t)(int16_t)a * (int16_t)b);
    case IN_MUL24: return (uint64_t)(s24(a) * s24(b));
    case IN_MUL24U: return u24(a) * u24(b);
    case IN_MUL24H: return (uint64_t)(s24(a) * s24(b) >> 16);
    case IN_MUL24HU: return u24(a) * u24(b) >> 16;
    case IN_MAD24: return (uint64_t)(s24(a) * s24(b)) + c;
    case IN_MAD24U: return u24(a) * u24(b) + c;
    case IN_MAD24H: return (uint64_t)(s24(a) * s24(b) >> 16) + c;
    case IN_MAD24HU: return (u24(a) * u24(b) >> 16) + c;
    case IN_ADDSAT: return saturated(s32(a) + s32(b));
    case IN_SUBSAT: return saturated(s32(a) - s32(b));
    case IN_FMAXN: return pick(a, b, true, true, false);
    case IN_FMINN: return pick(a, b, false, true, false);
    case IN_FMAXA: return pick(a, b, true, false, true);
    case IN_FMINA: return pick(a, b, false, false, true);
    case IN_FMAXNA: return pick(a, b, true, true, true);
    case IN_FMINNA: return pick(a, b, false, true, true);
    case IN_TF32RNA: return tf32_away(a);
    case IN_EX2FTZ: return approx_ex2((uint32_t)a, true);
    case IN_LG2FTZ: return approx_lg2((uint32_t)a, true);
    case IN_RCPFTZ: return approx_rcp((uint32_t)a, true);
    case IN_SQRTFTZ: return approx_sqrt((uint32_t)a, true);
    case IN_RSQRTFTZ: return approx_rsqrt((uint32_t)a, true);
    case IN_SINFTZ: return approx_sin((uint32_t)a);
    case IN_COSFTZ: return approx_cos((uint32_t)a);
    case IN_EX2H2: return both(approx_ex2_f16, a);
    case IN_EX2B2: return both(approx_ex2_bf16, a);
    case IN_TANHH2: return both(approx_tanh_f16, a);
    case IN_TANHB2: return both(approx_tanh_bf16, a);
    case IN_ADDRZ: case IN_MULRZ: case IN_DIVRZ: case IN_FMARZ: case IN_SQRTRZ:
    case IN_RCPRZ: case IN_ADDRP: case IN_MULRP: case IN_DIVRP: case IN_FMARP:
    case IN_SQRTRP: case IN_RCPRP: case IN_ADDRM: case IN_MULRM: case IN_DIVRM:
    case IN_FMARM: case IN_SQRTRM: case IN_RCPRM:
      return directed(id, a, b, c);
    case IN_ADDBF2: return halves(OP_ADD, DT_BF16, a, b, c);
    case IN_SUBBF2: return halves(OP_SUB, DT_BF16, a, b, c);
    case IN_MULBF2: return halves(OP_MUL, DT_BF16, a, b, c);
    case IN_MINBF2: return halves(OP_MIN, DT_BF16, a, b, c);
    case IN_MAXBF2: return halves(OP_MAX, DT_BF16, a, b, c);
    case IN_FMABF2: return halves(OP_FMA, DT_BF16, a, b, c);
    case IN_ADDF162: return halves(OP_ADD, DT_F16, a, b, c);
    case IN_SUBF162: return halves(OP_SUB, DT_F16, a, b, c);
    case IN_MULF162: return halves(OP_MUL, DT_F16, a, b, c);
    case IN_MINF162: return halves(OP_MIN, DT_F16, a, b, c);
    case IN_MAXF162: return halves(OP_MAX, DT_F16, a, b, c);
    case IN_FMAF162: return halves(OP_FMA, DT_F16, a, b, c);
    case IN_ADDF322: return floats2(SOFT_ADD, imm, a, b, c);
    case IN_SUBF322: return floats2(SOFT_SUB, imm, a, b, c);
    case IN_MULF322: return floats2(SOFT_MUL, imm, a, b, c);
    case IN_FMAF322: return floats2(SOFT_FMA, imm, a, b, c);
    case IN_CLCVALID: return b >> 32;
    case IN_CLCX: return (uint32_t)a;
    case IN_CLCY: return a >> 32;
    case IN_CLCZ: return (uint32_t)b;
    case IN_PACKBF2: return rounded2(DT_BF16, a, b);
    case IN_PACKF162: return rounded2(DT_F16, a, b);
    case IN_PACKE4M3: return rounded2(DT_E4M3, a, b);
    case IN_PACKE5M2: return rounded2(DT_E5M2, a, b);
    case IN_E4M3F16: return converted2(DT_F16, DT_E4M3, a);
    case IN_E2M1F16: return converted2(DT_F16, DT_E2M1, a & 0xff);
    case IN_E5M2F16: return converted2(DT_F16, DT_E5M2, a);
    case IN_F16E4M3: return converted2(DT_E4M3, DT_F16, a);
    case IN_F16E5M2: return converted2(DT_E5M2, DT_F16, a);
    case IN_SOFT: case IN_SOFT64:
      return soft_eval(soft_unpack(imm), (uint64_t[3]){a, b, c});
    case IN_COUNT:
#define IN(id, name, sig, class, how, sm, text) NOT_##class(id)
#define NOT_P(id)
#define NOT_K(id) case IN_##id:
#define NOT_L NOT_K
#define NOT_A NOT_K
#define NOT_M NOT_K
    INTRINS(IN)
#undef IN
      // Other intrinsics have no value here, because it depends on more than
      // their operands.
      break;
  }
  return 0;
}

uint64_t intrin_eval(IntrinId id, int64_t imm, const uint64_t x[3]) {
  return low(id, compute(id, imm, x[0], x[1], x[2]));
}

// ---- emission into the IR ----

static Fact fact_of(const Fn *fn, IntrinId id, const Ref *a) {
  int64_t n;
  switch ((int)id) {
    case IN_POPC: case IN_CLZ: return (Fact){0, 32, 1};
    case IN_POPC64: case IN_CLZ64: return (Fact){0, 64, 1};
    case IN_BFIND: case IN_BFINDS: return (Fact){-1, 31, 1};
    case IN_BFIND64: case IN_BFINDS64: return (Fact){-1, 63, 1};
    case IN_BFE: case IN_BFE64:
      if (!ir_const(fn, a[2], &n) || (n & 255) > 31) break;
      return (Fact){0, ((int64_t)1 << (n & 255)) - 1, 1};
    case IN_NSMID: case IN_NWARPID: case IN_DYNSMEM: case IN_TOTSMEM:
    case IN_AGGSMEM:
      return (Fact){0, INT32_MAX, 1};
    case IN_SHUFIDX: case IN_SHUFIDXI: case IN_SHUFUP: case IN_SHUFUPI:
    case IN_SHUFDOWN: case IN_SHUFDOWNI: case IN_SHUFBFLY: case IN_SHUFBFLYI:
      // A fact about the operand holds in all lanes, so it holds for the value
      // of another lane.
      return ir_fact(fn, a[0]);
    default: break;
  }
  return fold_full(intrin_result(id));
}

// Reads the raw bits of constant r, zero-extended. Returns false if r is not a
// constant.
static bool known(const Fn *fn, Ref r, uint64_t *v) {
  const Ins *i = ir_get(fn, r);
  int n = dtype_bits((DType)i->type);
  if (i->op != OP_CONST) return false;
  *v = n < 64 ? (uint64_t)i->imm & (((uint64_t)1 << n) - 1)
              : (uint64_t)i->imm;
  return true;
}

Ref intrin_emit(Ctx *cx, Fn *fn, IntrinId id, int64_t imm, const Ref a[3]) {
  DType t = intrin_result(id);
  int n = intrin_arity(id);
  uint64_t x[3] = {0, 0, 0};
  bool pure = intrin_pure(id), all = intrin_row(id)->class == INTRIN_P;
  Ins i = {.op = pure ? OP_INTRIN : OP_ASK, .type = (uint8_t)t,
           .imm = intrin_pack(id, imm)};
  for (int k = 0; k < n; k++) {
    ir_use(cx, fn, a[k]);
    i.a[k] = a[k];
    if (!known(fn, a[k], &x[k])) all = false;
  }
  if (!pure) {
    Ref r = ir_emit(cx, fn, i);
    ir_narrow(fn, r, fact_of(fn, id, a));
    return r;
  }
  if (all) {
    uint64_t u = intrin_eval(id, imm, x);
    if (!dtype_is_float(t)) return ir_int(cx, fn, t, (int64_t)u);
    Ins k = {.op = OP_CONST, .type = (uint8_t)t, .imm = (int64_t)u};
    return ir_cons(cx, fn, k, fold_full(t));
  }
  return ir_cons(cx, fn, i, fact_of(fn, id, a));
}

// ---- shuffles ----

Ref intrin_shuffled(const Fn *fn, const Ins *i, Ref *of) {
  for (int k = 0; k < 2; k++) {
    const Ins *s = ir_get(fn, i->a[k]);
    *of = i->a[1 - k];
    if (intrin_shuffles(s) && s->a[0] == *of) return i->a[k];
  }
  // a product plus its shuffle, contracted to an FMA
  const Ins *s = ir_get(fn, i->a[2]);
  if (i->op != OP_FMA || !intrin_shuffles(s)) return 0;
  *of = s->a[0];
  const Ins *m = ir_get(fn, *of);
  bool same = m->op == OP_MUL && m->a[0] == i->a[0] && m->a[1] == i->a[1];
  return same ? i->a[2] : 0;
}

bool intrin_source(ShuffleKind kind, int64_t imm, int l, int b, int *from) {
  int seg = intrin_segment(imm), clamp = intrin_clamp(imm);
  int least = l & seg, most = least | (clamp & ~seg), at = l;
  switch (kind) {
    case SH_UP: at = l - b; break;
    case SH_DOWN: at = l + b; break;
    case SH_BFLY: at = l ^ b; break;
    case SH_IDX: at = least | (b & ~seg); break;
  }
  bool in = kind == SH_UP ? at >= most : at <= most;
  *from = in ? at & 31 : l;
  return in;
}
// SPDX-License-Identifier: MIT
