// Helper functions of the emitted text: only those that a kernel uses are
// printed, in front of it.
#include <inttypes.h>
#include <string.h>

#include "atoms/atom.h"
#include "emit/inside.h"

#define FN "static __device__ __forceinline__ "
#define BIT(h) ((uint64_t)1 << (h))

typedef struct Row {
  const char *name;
  uint64_t needs;
  int sm;            // `text` from this architecture on, `old` below
  const char *text, *old;
} Row;

// One conversion through PTX.
#define CVT(name, to, ty, out, from, in, ptx) \
  FN to " " name "(" from " x) {\n  " ty " r;\n" \
  "  asm(\"" ptx "\" : \"" out "\"(r) : \"" in "\"(x));\n  return r;\n}\n"

#define FLOOR(T) \
  FN T " floor_div(" T " a, " T " b) {\n" \
  "  " T " q = a / b;\n  return q * b != a && (a ^ b) < 0 ? q - 1 : q;\n}\n"
#define FLOORMOD(T) \
  FN T " floor_mod(" T " a, " T " b) {\n" \
  "  " T " r = a % b;\n  return r != 0 && (r ^ b) < 0 ? r + b : r;\n}\n"
#define LUAMOD(T, f) \
  FN T " lua_mod(" T " a, " T " b) {\n" \
  "  " T " r = " f "(a, b);\n  return r * b < 0 ? r + b : r;\n}\n"
#define APPROX(name, ptx) \
  FN "float " name "(float x) {\n  float r;\n" \
  "  asm(\"" ptx " %0, %1;\" : \"=f\"(r) : \"f\"(x));\n  return r;\n}\n"
#define PACK(t) \
  FN "unsigned pack_" t "(float lo, float hi) {\n  unsigned r;\n" \
  "  asm(\"cvt.rn." t "x2.f32 %0, %1, %2;\"\n" \
  "      : \"=r\"(r) : \"f\"(hi), \"f\"(lo));\n  return r;\n}\n"
#define FMA16(t) \
  FN "unsigned short fma_" t "(unsigned short a, unsigned short b,\n" \
  "                                                   unsigned short c) {\n" \
  "  unsigned short r;\n" \
  "  asm(\"fma.rn." t " %0, %1, %2, %3;\"\n" \
  "      : \"=h\"(r) : \"h\"(a), \"h\"(b), \"h\"(c));\n  return r;\n}\n"
#define ATOM16(t) \
  FN "unsigned short atomic_add_" t "(unsigned short *p,\n" \
  "    unsigned short x) {\n  unsigned short r;\n" \
  "  asm volatile(\"atom.add.noftz." t " %0, [%1], %2;\"\n" \
  "      : \"=h\"(r) : \"l\"(p), \"h\"(x) : \"memory\");\n  return r;\n}\n"
#define ATOMF(name, f) \
  FN "float " name "(float *p, float x) {\n" \
  "  int old = *(volatile int *)p, seen;\n  do {\n    seen = old;\n" \
  "    old = atomicCAS((int *)p, seen,\n" \
  "        __float_as_int(" f "(__int_as_float(seen), x)));\n" \
  "  } while (old != seen);\n  return __int_as_float(old);\n}\n"
#define SPECIAL(name, reg) \
  FN "int " name "() {\n  int r;\n" \
  "  asm(\"mov.u32 %0, %%" reg ";\" : \"=r\"(r));\n  return r;\n}\n"

// 8-bit floats on what has no cvt for them. To f32: the code's bits placed
// as an f32 are the value times a power of two. From f32: round to nearest
// even on the bits, subnormals by an addition, saturate.
#define FROM8(name, nan, shift, scale) \
  FN "float " name "(unsigned char x) {\n" \
  "  unsigned s = (x & 0x80u) << 24, c = x & 0x7fu;\n" nan \
  "  float f = __uint_as_float(c << " shift ") * " scale ";\n" \
  "  return __uint_as_float(s | __float_as_uint(f));\n}\n"
#define TO8(name, low, magic, half, shift, bias, top) \
  FN "unsigned char " name "(float x) {\n" \
  "  unsigned u = __float_as_uint(x), s = u >> 24 & 0x80u;\n" \
  "  unsigned a = u & 0x7fffffffu, c;\n" \
  "  if (a > 0x7f800000u) return 0x7f;\n" \
  "  if (a < " low ")\n" \
  "    c = __float_as_uint(__uint_as_float(a) + " magic ") -\n" \
  "        __float_as_uint(" magic ");\n" \
  "  else\n    c = (a + " half " + (a >> " shift " & 1u) - " bias ") >> " \
  shift ";\n  return s | min(c, " top "u);\n}\n"
#define CVT8_FROM(t) \
  FN "float " t "_to_f32(unsigned char x) {\n  unsigned h;\n  float r;\n" \
  "  asm(\"cvt.rn.f16x2." t "x2 %0, %1;\"\n" \
  "      : \"=r\"(h) : \"h\"((unsigned short)x));\n" \
  "  asm(\"cvt.f32.f16 %0, %1;\" : \"=f\"(r) : \"h\"((unsigned short)h));\n" \
  "  return r;\n}\n"
#define CVT8_TO(t) \
  FN "unsigned char f32_to_" t "(float x) {\n  unsigned short r;\n" \
  "  asm(\"cvt.rn.satfinite." t "x2.f32 %0, %1, %2;\"\n" \
  "      : \"=h\"(r) : \"f\"(0.0f), \"f\"(x));\n  return r;\n}\n"

// 4- and 6-bit floats, the same way; chips that have a cvt for them use it.
#define FAMILY \
  "#if defined(__CUDA_ARCH_SPECIFIC__) || " \
  "defined(__CUDA_ARCH_FAMILY_SPECIFIC__)\n"
#define FROM6_C(sign, up, shift, scale) \
  "  unsigned s = (x & " sign "u) << " up ", c = x & (" sign "u - 1);\n" \
  "  float f = __uint_as_float(c << " shift ") * __uint_as_float(" scale \
  "u);\n  return __uint_as_float(s | __float_as_uint(f));\n"
#define TO6_C(sign, up, low, magic, half, shift, bias, top) \
  "  unsigned u = __float_as_uint(x), s = u >> " up " & " sign "u;\n" \
  "  unsigned a = u & 0x7fffffffu, c;\n" \
  "  if (a > 0x7f800000u) return " top ";\n" \
  "  if (a < " low ")\n" \
  "    c = __float_as_uint(__uint_as_float(a) + " magic ") -\n" \
  "        __float_as_uint(" magic ");\n" \
  "  else\n    c = (a + " half " + (a >> " shift " & 1u) - " bias ") >> " \
  shift ";\n  return s | min(c, " top "u);\n"
#define FROM6_HEAD(t) FN "float " t "_to_f32(unsigned char x) {\n"
#define TO6_HEAD(t) FN "unsigned char f32_to_" t "(float x) {\n"
#define HALF_OF "  asm(\"cvt.f32.f16 %0, %1;\" : \"=f\"(r) : " \
  "\"h\"((unsigned short)h));\n  return r;\n"
#define FROM6_CVT(t) \
  "  unsigned h;\n  float r;\n  asm(\"cvt.rn.f16x2." t "x2 %0, %1;\"\n" \
  "      : \"=r\"(h) : \"h\"((unsigned short)x));\n" HALF_OF
#define FROM4_CVT(t) \
  "  unsigned h;\n  float r;\n" \
  "  asm(\"{ .reg .b8 b; cvt.u8.u16 b, %1; cvt.rn.f16x2." t \
  "x2 %0, b; }\"\n" \
  "      : \"=r\"(h) : \"h\"((unsigned short)x));\n" HALF_OF
#define TO6_CVT(t) \
  "  unsigned short r;\n" \
  "  asm(\"cvt.rn.satfinite." t "x2.f32 %0, %1, %2;\"\n" \
  "      : \"=h\"(r) : \"f\"(0.0f), \"f\"(x));\n  return r;\n"
#define TO4_CVT(t) \
  "  unsigned short r;\n" \
  "  asm(\"{ .reg .b8 b; cvt.rn.satfinite." t "x2.f32 b, %1, %2; \"\n" \
  "      \"cvt.u16.u8 %0, b; }\"\n" \
  "      : \"=h\"(r) : \"f\"(0.0f), \"f\"(x));\n  return r;\n"
#define ROW6(name, head, c, cvt) \
  {name, 0, 100, head FAMILY cvt "#else\n" c "#endif\n}\n", head c "}\n"}
#define ROWS6(t, from, to, from_cvt, to_cvt) \
  [H_##t##_F32] = ROW6(from "_to_f32", FROM6_HEAD(from), FROM_##t, \
                       from_cvt(from)), \
  [H_F32_##t] = ROW6("f32_to_" to, TO6_HEAD(to), TO_##t, to_cvt(to))
#define FROM_E2M1 FROM6_C("0x8", "28", "22", "0x7e800000")
#define TO_E2M1 TO6_C("0x8", "28", "0x3f800000u", "4194304.0f", \
                      "0x1fffffu", "22", "0x3f000000u", "0x7")
#define FROM_E2M3 FROM6_C("0x20", "26", "20", "0x7e800000")
#define TO_E2M3 TO6_C("0x20", "26", "0x3f800000u", "1048576.0f", \
                      "0x7ffffu", "20", "0x3f000000u", "0x1f")
#define FROM_E3M2 FROM6_C("0x20", "26", "21", "0x7d800000")
#define TO_E3M2 TO6_C("0x20", "26", "0x3e800000u", "524288.0f", \
                      "0xfffffu", "21", "0x3e000000u", "0x1f")

// 256 bits at once, past L1.
#define EIGHT(x, sep) x "0" sep x "1" sep x "2" sep x "3" sep x "4" sep x "5" \
  sep x "6" sep x "7"
#define WORDS(m) \
  "\"" m "\"(r[0]), \"" m "\"(r[1]), \"" m "\"(r[2]), \"" m "\"(r[3]),\n" \
  "        \"" m "\"(r[4]), \"" m "\"(r[5]), \"" m "\"(r[6]), \"" m \
  "\"(r[7])"

static const Row rows[H_COUNT] = {
  [H_F16_F32] = {"f16_to_f32", 0, 0,
    CVT("f16_to_f32", "float", "float", "=f", "unsigned short", "h",
        "cvt.f32.f16 %0, %1;"), NULL},
  [H_F32_F16] = {"f32_to_f16", 0, 0,
    CVT("f32_to_f16", "unsigned short", "unsigned short", "=h", "float", "f",
        "cvt.rn.f16.f32 %0, %1;"), NULL},
  [H_BF16_F32] = {"bf16_to_f32", 0, 0,
    FN "float bf16_to_f32(unsigned short x) {\n"
    "  return __uint_as_float((unsigned)x << 16);\n}\n", NULL},
  [H_F32_BF16] = {"f32_to_bf16", 0, 80,
    CVT("f32_to_bf16", "unsigned short", "unsigned short", "=h", "float",
        "f", "cvt.rn.bf16.f32 %0, %1;"),
    FN "unsigned short f32_to_bf16(float x) {\n"
    "  unsigned u = __float_as_uint(x);\n"
    "  if ((u & 0x7fffffffu) > 0x7f800000u) return 0x7fff;\n"
    "  return (u + 0x7fffu + (u >> 16 & 1u)) >> 16;\n}\n"},
  [H_F64_F16] = {"f64_to_f16", 0, 0,
    CVT("f64_to_f16", "unsigned short", "unsigned short", "=h", "double",
        "d", "cvt.rn.f16.f64 %0, %1;"), NULL},
  [H_F64_ODD] = {"f64_to_odd", 0, 0,
    "// Round to odd: rounding the result again is rounding once.\n"
    FN "float f64_to_odd(double x) {\n  float r = __double2float_rz(x);\n"
    "  bool inexact = (double)r != x && x == x;\n"
    "  return inexact ? __uint_as_float(__float_as_uint(r) | 1u) : r;\n}\n",
    NULL},
  [H_PACK_F16] = {"pack_f16", 0, 80, PACK("f16"),
    FN "unsigned pack_f16(float lo, float hi) {\n"
    "  return f32_to_f16(lo) | (unsigned)f32_to_f16(hi) << 16;\n}\n"},
  [H_PACK_BF16] = {"pack_bf16", 0, 80, PACK("bf16"),
    FN "unsigned pack_bf16(float lo, float hi) {\n"
    "  return f32_to_bf16(lo) | (unsigned)f32_to_bf16(hi) << 16;\n}\n"},
  [H_F32_TF32] = {"f32_to_tf32", 0, 0,
    FN "unsigned f32_to_tf32(float x) {\n"
    "  unsigned u = __float_as_uint(x), a = u & 0x7fffffffu;\n"
    "  if (a > 0x7f800000u) return 0x7fffffffu;\n"
    "  return (u + 0xfffu + (u >> 13 & 1u)) & 0xffffe000u;\n}\n", NULL},
  [H_TF32_F32] = {"tf32_to_f32", 0, 0,
    FN "float tf32_to_f32(unsigned x) {\n"
    "  return __uint_as_float(x & 0xffffe000u);\n}\n", NULL},
  [H_E4M3_F32] = {"e4m3_to_f32", 0, 89, CVT8_FROM("e4m3"),
    FROM8("e4m3_to_f32",
          "  if (c == 0x7fu) return __uint_as_float(0x7fffffffu);\n", "20",
          "__uint_as_float(0x7b800000u)")},
  [H_E5M2_F32] = {"e5m2_to_f32", 0, 89, CVT8_FROM("e5m2"),
    FROM8("e5m2_to_f32",
          "  if (c > 0x7cu) return __uint_as_float(0x7fffffffu);\n"
          "  if (c == 0x7cu) return __uint_as_float(s | 0x7f800000u);\n",
          "21", "__uint_as_float(0x77800000u)")},
  [H_F32_E4M3] = {"f32_to_e4m3", 0, 89, CVT8_TO("e4m3"),
    TO8("f32_to_e4m3", "0x3c800000u", "16384.0f", "0x7ffffu", "20",
        "0x3c000000u", "0x7e")},
  [H_F32_E5M2] = {"f32_to_e5m2", 0, 89, CVT8_TO("e5m2"),
    TO8("f32_to_e5m2", "0x38800000u", "128.0f", "0xfffffu", "21",
        "0x38000000u", "0x7b")},
  [H_FMA_F16] = {"fma_f16", 0, 0, FMA16("f16"), NULL},
  [H_FMA_BF16] = {"fma_bf16", 0, 0, FMA16("bf16"), NULL},
  [H_DIV_I32] = {"floor_div", 0, 0, FLOOR("int"), NULL},
  [H_MOD_I32] = {"floor_mod", 0, 0, FLOORMOD("int"), NULL},
  [H_DIV_I64] = {"floor_div", 0, 0, FLOOR("long long"), NULL},
  [H_MOD_I64] = {"floor_mod", 0, 0, FLOORMOD("long long"), NULL},
  [H_MOD_F32] = {"lua_mod", 0, 0, LUAMOD("float", "fmodf"), NULL},
  [H_MOD_F64] = {"lua_mod", 0, 0, LUAMOD("double", "fmod"), NULL},
  [H_EX2] = {"ex2_approx", 0, 0, APPROX("ex2_approx", "ex2.approx.f32"),
    NULL},
  [H_TANH] = {"tanh_approx", 0, 0, APPROX("tanh_approx", "tanh.approx.f32"),
    NULL},
  [H_RCP] = {"rcp_approx", 0, 0, APPROX("rcp_approx", "rcp.approx.f32"),
    NULL},
  [H_SIN] = {"sin_approx", 0, 0, APPROX("sin_approx", "sin.approx.f32"),
    NULL},
  [H_COS] = {"cos_approx", 0, 0, APPROX("cos_approx", "cos.approx.f32"),
    NULL},
  [H_LG2] = {"lg2_approx", 0, 0, APPROX("lg2_approx", "lg2.approx.f32"),
    NULL},
  [H_SQRT] = {"sqrt_approx", 0, 0, APPROX("sqrt_approx", "sqrt.approx.f32"),
    NULL},
  [H_RSQRT] = {"rsqrt_approx", 0, 0,
    APPROX("rsqrt_approx", "rsqrt.approx.f32"), NULL},
  [H_DIVFULL] = {"div_full", 0, 0,
    FN "float div_full(float x, float y) {\n  float r;\n"
    "  asm(\"div.full.f32 %0, %1, %2;\" : \"=f\"(r) : \"f\"(x), \"f\"(y));\n"
    "  return r;\n}\n", NULL},
  [H_ATOMIC_F16] = {"atomic_add_f16", 0, 0, ATOM16("f16"), NULL},
  [H_ATOMIC_BF16] = {"atomic_add_bf16", 0, 0, ATOM16("bf16"), NULL},
  [H_ATOMIC_MIN_F32] = {"atomic_min", 0, 0, ATOMF("atomic_min", "fminf"),
    NULL},
  [H_ATOMIC_MAX_F32] = {"atomic_max", 0, 0, ATOMF("atomic_max", "fmaxf"),
    NULL},
  ROWS6(E2M1, "e2m1", "e2m1", FROM4_CVT, TO4_CVT),
  ROWS6(E2M3, "e2m3", "e2m3", FROM6_CVT, TO6_CVT),
  ROWS6(E3M2, "e3m2", "e3m2", FROM6_CVT, TO6_CVT),
  [H_UE8M0_F32] = {"ue8m0_to_f32", 0, 0,
    FN "float ue8m0_to_f32(unsigned char x) {\n"
    "  unsigned u = (unsigned)x << 23;\n"
    "  return __uint_as_float(x == 255 ? 0x7fffffffu : x ? u : 0x400000u);\n"
    "}\n", NULL},
  [H_F32_UE8M0] = {"f32_to_ue8m0", 0, 0,
    "// The nearest power of two; of two equally near the even code.\n"
    FN "unsigned char f32_to_ue8m0(float x) {\n"
    "  unsigned a = __float_as_uint(x) & 0x7fffffffu;\n"
    "  if (a > 0x7f800000u) return 0xff;\n"
    "  if (a < 0x800000u) return a > 0x600000u;\n"
    "  return min((a + 0x3fffffu + (a >> 23 & 1u)) >> 23, 0xfeu);\n}\n",
    NULL},
  [H_I4] = {"i4_to_int", 0, 0,
    FN "int i4_to_int(unsigned char x) {\n"
    "  return (int)((unsigned)x << 28) >> 28;\n}\n", NULL},
  [H_LD_BITS] = {"ld_bits", 0, 0,
    FN "unsigned char ld_bits(\n    const unsigned char *p, long long bit, "
    "int n) {\n  unsigned s = bit & 7, u = (unsigned)p[bit >> 3] >> s;\n"
    "  if (s + n > 8) u |= (unsigned)p[(bit >> 3) + 1] << (8 - s);\n"
    "  return u & ((1u << n) - 1);\n}\n", NULL},
  [H_ST_BITS] = {"st_bits", 0, 0,
    "// Other threads may store the other bits of the same word.\n"
    FN "void st_bits(\n    unsigned char *p, long long bit, int n, "
    "unsigned x) {\n"
    "  unsigned long long a = (unsigned long long)p & 3;\n"
    "  unsigned *w = (unsigned *)(p - a) + ((bit + a * 8) >> 5);\n"
    "  unsigned s = (bit + a * 8) & 31, m = (1u << n) - 1;\n"
    "  atomicAnd(w, ~(m << s));\n  atomicOr(w, (x & m) << s);\n"
    "  if (s + n <= 32) return;\n"
    "  atomicAnd(w + 1, ~(m >> (32 - s)));\n"
    "  atomicOr(w + 1, (x & m) >> (32 - s));\n}\n", NULL},
  [H_LD256] = {"ld_256", 0, 0,
    FN "void ld_256(unsigned *r, const void *p) {\n"
    "  asm volatile(\"ld.global.L1::no_allocate.v8.b32 \"\n      \"{"
    EIGHT("%", ", ") "}, [%8];\"\n      : " WORDS("=r")
    "\n      : \"l\"(p) : \"memory\");\n}\n", NULL},
  [H_ST256] = {"st_256", 0, 0,
    FN "void st_256(void *p, const unsigned *r) {\n"
    "  asm volatile(\"st.global.L1::no_allocate.v8.b32 [%8], \"\n      \"{"
    EIGHT("%", ", ") "};\"\n      :: " WORDS("r")
    ", \"l\"(p) : \"memory\");\n}\n", NULL},
  [H_LANE] = {"lane_id", 0, 0, SPECIAL("lane_id", "laneid"), NULL},
  [H_WARP] = {"warp_id", 0, 0,
    FN "int warp_id() {\n"
    "  return (threadIdx.x + blockDim.x *\n"
    "      (threadIdx.y + blockDim.y * threadIdx.z)) / 32;\n}\n", NULL},
  [H_SMID] = {"sm_id", 0, 0, SPECIAL("sm_id", "smid"), NULL},
};

const char *helper_name(Helper h) { return rows[h].name; }

void helper_need(Emit *e, Helper h) {
  e->helpers |= BIT(h);
  if (e->sm < 80 && h == H_PACK_F16) e->helpers |= BIT(H_F32_F16);
  if (e->sm < 80 && h == H_PACK_BF16) e->helpers |= BIT(H_F32_BF16);
}

// ---- cp.async ----

enum { ASYNC_KINDS = 4, ASYNC_WIDTHS = 3 };  // kinds: .ca .cg, zfill or not
static const int async_bytes[ASYNC_WIDTHS] = {4, 8, 16};

static const char *const async_names[ASYNC_KINDS][ASYNC_WIDTHS] = {
  {"cp_async_ca4", "cp_async_ca8", "cp_async_ca16"},
  {"cp_async_cg4", "cp_async_cg8", "cp_async_cg16"},
  {"cp_async_ca4_zfill", "cp_async_ca8_zfill", "cp_async_ca16_zfill"},
  {"cp_async_cg4_zfill", "cp_async_cg8_zfill", "cp_async_cg16_zfill"}};

const char *helper_async(Emit *e, int64_t bits, unsigned flags, bool pred) {
  int w = bits == 32 ? 0 : bits == 64 ? 1 : 2;
  if (e->sm < 80)
    ctx_fail(e->cx, ERR_ARCH, "cp.async needs sm_80, the target is sm_%d",
             e->sm);
  if (bits != 32 && bits != 64 && bits != 128)
    ctx_fail(e->cx, ERR_ARG, "cp.async moves 32, 64 or 128 bits, not %" PRId64,
             bits);
  if (flags & CPF_GLOBAL && w < 2)
    ctx_fail(e->cx, ERR_ARG, "cp.async.cg (CACHEGLOBAL) moves 128 bits, not %"
             PRId64, bits);
  int k = (flags & CPF_GLOBAL ? 1 : 0) + (flags & CPF_ZFILL && pred ? 2 : 0);
  e->async |= 1u << (k * ASYNC_WIDTHS + w);
  return async_names[k][w];
}

static void print_async(Emit *e) {
  for (int k = 0; k < ASYNC_KINDS * ASYNC_WIDTHS; k++) {
    if (!(e->async >> k & 1)) continue;
    int kind = k / ASYNC_WIDTHS, bytes = async_bytes[k % ASYNC_WIDTHS];
    const char *cache = kind & 1 ? "cg" : "ca";
    expr_printf(e, FN "void %s(\n    unsigned dst, const void *src%s) {\n",
                async_names[kind][k % ASYNC_WIDTHS],
                kind & 2 ? ", bool p" : "");
    expr_printf(e, "  asm volatile(\"cp.async.%s.shared.global [%%0], [%%1], "
                "%d%s;\"\n", cache, bytes, kind & 2 ? ", %2" : "");
    expr_printf(e, "      :: \"r\"(dst), \"l\"(src)");
    if (kind & 2) expr_printf(e, ", \"r\"(p ? %d : 0)", bytes);
    expr_puts(e, " : \"memory\");\n}\n");
  }
}

// ---- all ----

static const char *const reserved[] = {
  "alignas", "alignof", "and", "and_eq", "asm", "auto", "bitand", "bitor",
  "bool", "break", "case", "catch", "char", "class", "compl", "concept",
  "const", "consteval", "constexpr", "constinit", "const_cast", "continue",
  "co_await", "co_return", "co_yield", "decltype", "default", "delete", "do",
  "double", "dynamic_cast", "else", "enum", "explicit", "export", "extern",
  "false", "float", "for", "friend", "goto", "if", "inline", "int", "long",
  "mutable", "namespace", "new", "noexcept", "not", "not_eq", "nullptr",
  "operator", "or", "or_eq", "private", "protected", "public", "register",
  "reinterpret_cast", "requires", "return", "short", "signed", "sizeof",
  "static", "static_assert", "static_cast", "struct", "switch", "template",
  "this", "thread_local", "throw", "true", "try", "typedef", "typeid",
  "typename", "union", "unsigned", "using", "virtual", "void", "volatile",
  "wchar_t", "while", "xor", "xor_eq", "restrict", "threadIdx", "blockIdx",
  "blockDim", "gridDim", "warpSize", "min", "max", "abs", "llabs", "printf",
  "clock", "NULL", "smem", "smem_addr", "uint2", "uint4", "double2",
  "longlong2", "ulonglong2", "make_int2", "make_int4", "make_float2",
  "make_float4", "make_longlong2", "make_ulonglong2", "NV_IF_TARGET",
  "NV_IF_ELSE_TARGET", "NV_DISPATCH_TARGET", "NV_TARGET_MINIMUM_SM_INTEGER",
  "NV_TARGET_MINIMUM_SM_SELECTOR", "CUDARTAPI", "CUDARTAPI_CDECL",
  "CUDART_DEVICE", "CUDART_VERSION", "NOMINMAX", "char8_t", "char16_t",
  "char32_t", "va_start", "va_end", "va_arg", "va_copy", "va_list",
  "size_t", "fminf", "fmaxf", "fmin", "fmax", "fmaf", "fma", "fabs", "fabsf",
  "fmod", "fmodf", "unix", "linux", "assert", "make_uint2", "make_uint4",
  "make_double2", "char1", "char2", "char3", "char4", "short2", "int1",
  "int2", "int3", "int4", "float1", "float2", "float3", "float4", "dim3",
  "std", "main", "atomicAdd", "atomicMin", "atomicMax", "atomicAnd",
  "atomicOr", "atomicXor", "atomicExch", "atomicCAS"};

void helper_reserve(Emit *e) {
  for (size_t k = 0; k < sizeof reserved / sizeof *reserved; k++)
    expr_reserve(e, reserved[k]);
  for (int h = 0; h < H_COUNT; h++) expr_reserve(e, rows[h].name);
  for (int f = 0; f < MF_COUNT; f++) {
    const char *m = math_name((MathFn)f);
    if (strchr(m, '.')) continue;
    expr_reserve(e, m);
    expr_reserve(e, arena_printf(e->cx, &e->cx->scratch, "%sf", m));
  }
  for (int k = 0; k < ASYNC_KINDS * ASYNC_WIDTHS; k++)
    expr_reserve(e, async_names[k / ASYNC_WIDTHS][k % ASYNC_WIDTHS]);
  ptx_reserve(e);
  for (size_t k = 0; k < e->natom; k++) {
    const char *name = atomtext_name(e, e->atom[k].mma, e->atom[k].id);
    expr_reserve(e, name);
    expr_reserve(e, arena_printf(e->cx, &e->cx->scratch, "%s_dabc", name));
  }
}

void helper_print(Emit *e) {
  for (int h = 0; h < H_COUNT; h++) {
    const Row *r = &rows[h];
    if (!(e->helpers >> h & 1)) continue;
    expr_puts(e, e->sm >= r->sm ? r->text : r->old);
  }
  print_async(e);
  ptx_print(e);
  for (size_t k = 0; k < e->natom; k++) atomtext_print(e, &e->atom[k]);
}
