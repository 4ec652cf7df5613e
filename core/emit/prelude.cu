// Helper functions of emitted kernels, in CUDA C: arithmetic and conversions.
// preludemem.cu has those of memory and synchronization. A line `//: name`
// starts a block, which ends at an empty line. tools/embed.lua makes H_NAME
// from it. helper.c copies the blocks that a kernel needs, and the blocks that
// these call, in this order. It evaluates `#if __CUDA_ARCH__ >= N` itself, so
// no kernel's text contains such lines.

// Text outside blocks is only for compilers and editors that read this file.
// sm_90a defines these macros, but has no conversions of 4 and 6 bits.
#if __CUDA_ARCH__ < 1000
#undef __CUDA_ARCH_SPECIFIC__
#undef __CUDA_ARCH_FAMILY_SPECIFIC__
#endif

// ---- 16 bits and more ----

//: fma_to
// A sum that grows by a product: compilers are done with it sooner than with
// fmaf, of which kernels without tensor cores have a thousand.
#define FMA_TO(d, a, b) \
  asm("fma.rn.f32 %0, %1, %2, %0;" : "+f"(d) : "f"(a), "f"(b))

//: f16_to_f32
static __device__ __forceinline__ float f16_to_f32(unsigned short x) {
  float r;
  asm("cvt.f32.f16 %0, %1;" : "=f"(r) : "h"(x));
  return r;
}

//: f32_to_f16
static __device__ __forceinline__ unsigned short f32_to_f16(float x) {
  unsigned short r;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(r) : "f"(x));
  return r;
}

//: bf16_to_f32
static __device__ __forceinline__ float bf16_to_f32(unsigned short x) {
  return __uint_as_float((unsigned)x << 16);
}

// On sm_90, the instruction that converts a pair takes a third of the time of
// the one that converts a single value. ptxas merges two conversions by
// f32_to_bf16_half whose results form a word into the one for a pair.
//: f32_to_bf16
#if __CUDA_ARCH__ >= 800
static __device__ __forceinline__ unsigned short f32_to_bf16(float x) {
  unsigned r;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(0.0f), "f"(x));
  return r;
}
#else
static __device__ __forceinline__ unsigned short f32_to_bf16(float x) {
  unsigned u = __float_as_uint(x);
  if ((u & 0x7fffffffu) > 0x7f800000u) return 0x7fff;
  return (u + 0x7fffu + (u >> 16 & 1u)) >> 16;
}
#endif

//: f32_to_bf16_half
static __device__ __forceinline__ unsigned short f32_to_bf16_half(float x) {
  unsigned short r;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(r) : "f"(x));
  return r;
}

//: f64_to_f16
static __device__ __forceinline__ unsigned short f64_to_f16(double x) {
  unsigned short r;
  asm("cvt.rn.f16.f64 %0, %1;" : "=h"(r) : "d"(x));
  return r;
}

//: f64_to_odd
// Round to odd: rounding the result again is rounding once.
static __device__ __forceinline__ float f64_to_odd(double x) {
  float r = __double2float_rz(x);
  bool inexact = (double)r != x && x == x;
  return inexact ? __uint_as_float(__float_as_uint(r) | 1u) : r;
}

//: i64_to_odd
static __device__ __forceinline__ float i64_to_odd(long long x) {
  float r = __ll2float_rz(x);
  return (long long)r != x ? __uint_as_float(__float_as_uint(r) | 1u) : r;
}

//: u64_to_odd
static __device__ __forceinline__ float u64_to_odd(unsigned long long x) {
  float r = __ull2float_rz(x);
  bool inexact = (unsigned long long)r != x;
  return inexact ? __uint_as_float(__float_as_uint(r) | 1u) : r;
}

//: pack_f16
#if __CUDA_ARCH__ >= 800
static __device__ __forceinline__ unsigned pack_f16(float lo, float hi) {
  unsigned r;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;"
      : "=r"(r) : "f"(hi), "f"(lo));
  return r;
}
#else
static __device__ __forceinline__ unsigned pack_f16(float lo, float hi) {
  return f32_to_f16(lo) | (unsigned)f32_to_f16(hi) << 16;
}
#endif

//: pack_bf16
#if __CUDA_ARCH__ >= 800
static __device__ __forceinline__ unsigned pack_bf16(float lo, float hi) {
  unsigned r;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;"
      : "=r"(r) : "f"(hi), "f"(lo));
  return r;
}
#else
static __device__ __forceinline__ unsigned pack_bf16(float lo, float hi) {
  return f32_to_bf16(lo) | (unsigned)f32_to_bf16(hi) << 16;
}
#endif

//: add_bf16x2
static __device__ __forceinline__ unsigned add_bf16x2(unsigned a, unsigned b) {
  unsigned r;
#if __CUDA_ARCH__ >= 900
  asm("add.rn.bf16x2 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
#else
  // a * 1 + b: the product is exact
  asm("fma.rn.bf16x2 %0, %1, %2, %3;"
      : "=r"(r) : "r"(a), "r"(0x3f803f80u), "r"(b));
#endif
  return r;
}

//: sub_bf16x2
static __device__ __forceinline__ unsigned sub_bf16x2(unsigned a, unsigned b) {
  unsigned r;
#if __CUDA_ARCH__ >= 900
  asm("sub.rn.bf16x2 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
#else
  asm("fma.rn.bf16x2 %0, %1, %2, %3;"
      : "=r"(r) : "r"(b), "r"(0xbf80bf80u), "r"(a));
#endif
  return r;
}

//: mul_bf16x2
static __device__ __forceinline__ unsigned mul_bf16x2(unsigned a, unsigned b) {
  unsigned r;
#if __CUDA_ARCH__ >= 900
  asm("mul.rn.bf16x2 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
#else
  asm("fma.rn.bf16x2 %0, %1, %2, %3;"
      : "=r"(r) : "r"(a), "r"(b), "r"(0x80008000u));
#endif
  return r;
}

//: f32_to_tf32
static __device__ __forceinline__ unsigned f32_to_tf32(float x) {
  unsigned u = __float_as_uint(x), a = u & 0x7fffffffu;
  if (a > 0x7f800000u) return 0x7fffffffu;
  return (u + 0xfffu + (u >> 13 & 1u)) & 0xffffe000u;
}

//: tf32_to_f32
static __device__ __forceinline__ float tf32_to_f32(unsigned x) {
  return __uint_as_float(x & 0xffffe000u);
}

// ---- registers at a traced index ----
//
// For few registers, selects choose register i of n. More registers are in
// local memory. A part is an element of `bits` bits of a register word.

//: pick_register
template <class T>
static __device__ __forceinline__ T pick_register(const T *r, int n, int i) {
  T x = r[0];
#pragma unroll
  for (int k = 1; k < n; k++) x = i == k ? r[k] : x;
  return x;
}

//: put_register
template <class T, class U>
static __device__ __forceinline__ void put_register(T *r, int n, int i, U x) {
#pragma unroll
  for (int k = 0; k < n; k++) r[k] = i == k ? x : r[k];
}

//: local_register
template <class T>
static __device__ __forceinline__ T local_register(const T *r, int i) {
  return r[i];
}

//: put_local
template <class T, class U>
static __device__ __forceinline__ void put_local(T *r, int i, U x) {
  r[i] = x;
}

//: pick_part
static __device__ __forceinline__ unsigned pick_part(
    const unsigned *r, int n, int i, unsigned bits) {
  unsigned per = 32 / bits, x = pick_register(r, n, (int)(i / per));
  return x >> i % per * bits & ((1u << bits) - 1u);
}

//: put_part
static __device__ __forceinline__ void put_part(
    unsigned *r, int n, int i, unsigned bits, unsigned x) {
  unsigned per = 32 / bits, s = i % per * bits, m = (1u << bits) - 1u;
  unsigned w = pick_register(r, n, (int)(i / per));
  put_register(r, n, (int)(i / per), (w & ~(m << s)) | (x & m) << s);
}

//: local_part
static __device__ __forceinline__ unsigned local_part(
    const unsigned *r, int i, unsigned bits) {
  unsigned per = 32 / bits;
  return r[i / per] >> i % per * bits & ((1u << bits) - 1u);
}

//: put_local_part
static __device__ __forceinline__ void put_local_part(
    unsigned *r, int i, unsigned bits, unsigned x) {
  unsigned per = 32 / bits, s = i % per * bits, m = (1u << bits) - 1u;
  r[i / per] = (r[i / per] & ~(m << s)) | (x & m) << s;
}

// ---- 8-bit floats ----
//
// Conversions in C for targets whose cvt lacks these types. To f32: the code's
// bits, placed in an f32, are the value times a power of two. From f32: rounds
// the bits to nearest even (subnormals by an addition) and saturates.

//: e4m3_to_f32
#if __CUDA_ARCH__ >= 890
static __device__ __forceinline__ float e4m3_to_f32(unsigned char x) {
  unsigned h;
  float r;
  asm("cvt.rn.f16x2.e4m3x2 %0, %1;"
      : "=r"(h) : "h"((unsigned short)x));
  asm("cvt.f32.f16 %0, %1;" : "=f"(r) : "h"((unsigned short)h));
  return r;
}
#else
static __device__ __forceinline__ float e4m3_to_f32(unsigned char x) {
  unsigned s = (x & 0x80u) << 24, c = x & 0x7fu;
  if (c == 0x7fu) return __uint_as_float(0x7fffffffu);
  float f = __uint_as_float(c << 20) * __uint_as_float(0x7b800000u);
  return __uint_as_float(s | __float_as_uint(f));
}
#endif

//: f32_to_e4m3
#if __CUDA_ARCH__ >= 890
static __device__ __forceinline__ unsigned char f32_to_e4m3(float x) {
  unsigned short r;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;"
      : "=h"(r) : "f"(0.0f), "f"(x));
  return r;
}
#else
static __device__ __forceinline__ unsigned char f32_to_e4m3(float x) {
  unsigned u = __float_as_uint(x), s = u >> 24 & 0x80u;
  unsigned a = u & 0x7fffffffu, c;
  if (a > 0x7f800000u) return 0x7f;
  if (a < 0x3c800000u)
    c = __float_as_uint(__uint_as_float(a) + 16384.0f) -
        __float_as_uint(16384.0f);
  else
    c = (a + 0x7ffffu + (a >> 20 & 1u) - 0x3c000000u) >> 20;
  return s | min(c, 0x7eu);
}
#endif

//: e5m2_to_f32
#if __CUDA_ARCH__ >= 890
static __device__ __forceinline__ float e5m2_to_f32(unsigned char x) {
  unsigned h;
  float r;
  asm("cvt.rn.f16x2.e5m2x2 %0, %1;"
      : "=r"(h) : "h"((unsigned short)x));
  asm("cvt.f32.f16 %0, %1;" : "=f"(r) : "h"((unsigned short)h));
  return r;
}
#else
static __device__ __forceinline__ float e5m2_to_f32(unsigned char x) {
  unsigned s = (x & 0x80u) << 24, c = x & 0x7fu;
  if (c > 0x7cu) return __uint_as_float(0x7fffffffu);
  if (c == 0x7cu) return __uint_as_float(s | 0x7f800000u);
  float f = __uint_as_float(c << 21) * __uint_as_float(0x77800000u);
  return __uint_as_float(s | __float_as_uint(f));
}
#endif

//: f32_to_e5m2
#if __CUDA_ARCH__ >= 890
static __device__ __forceinline__ unsigned char f32_to_e5m2(float x) {
  unsigned short r;
  asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;"
      : "=h"(r) : "f"(0.0f), "f"(x));
  return r;
}
#else
static __device__ __forceinline__ unsigned char f32_to_e5m2(float x) {
  unsigned u = __float_as_uint(x), s = u >> 24 & 0x80u;
  unsigned a = u & 0x7fffffffu, c;
  if (a > 0x7f800000u) return 0x7f;
  if (a < 0x38800000u)
    c = __float_as_uint(__uint_as_float(a) + 128.0f) -
        __float_as_uint(128.0f);
  else
    c = (a + 0xfffffu + (a >> 21 & 1u) - 0x38000000u) >> 21;
  return s | min(c, 0x7bu);
}
#endif

// ---- 4 and 6-bit floats, the same way; scales; nibbles ----

//: e2m1_to_f32
static __device__ __forceinline__ float e2m1_to_f32(unsigned char x) {
#if defined(__CUDA_ARCH_SPECIFIC__) || defined(__CUDA_ARCH_FAMILY_SPECIFIC__)
  unsigned h;
  float r;
  asm("{ .reg .b8 b; cvt.u8.u16 b, %1; cvt.rn.f16x2.e2m1x2 %0, b; }"
      : "=r"(h) : "h"((unsigned short)x));
  asm("cvt.f32.f16 %0, %1;" : "=f"(r) : "h"((unsigned short)h));
  return r;
#else
  unsigned s = (x & 0x8u) << 28, c = x & (0x8u - 1);
  float f = __uint_as_float(c << 22) * __uint_as_float(0x7e800000u);
  return __uint_as_float(s | __float_as_uint(f));
#endif
}

//: e2m1x2_to_f16x2
// The code's bits, placed in an f16, are the value divided by 2^14.
static __device__ __forceinline__ unsigned e2m1x2_to_f16x2(unsigned x) {
  unsigned r;
#if defined(__CUDA_ARCH_SPECIFIC__) || defined(__CUDA_ARCH_FAMILY_SPECIFIC__)
  asm("{ .reg .b8 b; cvt.u8.u32 b, %1; cvt.rn.f16x2.e2m1x2 %0, b; }"
      : "=r"(r) : "r"(x));
#else
  unsigned p = (x & 0xfu) | (x & 0xf0u) << 12;
  unsigned h = (p & 0x80008u) << 12 | (p & 0x70007u) << 9;
  asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(r) : "r"(h), "r"(0x74007400u));
#endif
  return r;
}

//: f32_to_e2m1
static __device__ __forceinline__ unsigned char f32_to_e2m1(float x) {
#if defined(__CUDA_ARCH_SPECIFIC__) || defined(__CUDA_ARCH_FAMILY_SPECIFIC__)
  unsigned short r;
  asm("{ .reg .b8 b; cvt.rn.satfinite.e2m1x2.f32 b, %1, %2; "
      "cvt.u16.u8 %0, b; }"
      : "=h"(r) : "f"(0.0f), "f"(x));
  return r;
#else
  unsigned u = __float_as_uint(x), s = u >> 28 & 0x8u;
  unsigned a = u & 0x7fffffffu, c;
  if (a > 0x7f800000u) return 0x7;
  if (a < 0x3f800000u)
    c = __float_as_uint(__uint_as_float(a) + 4194304.0f) -
        __float_as_uint(4194304.0f);
  else
    c = (a + 0x1fffffu + (a >> 22 & 1u) - 0x3f000000u) >> 22;
  return s | min(c, 0x7u);
#endif
}

//: e2m3_to_f32
static __device__ __forceinline__ float e2m3_to_f32(unsigned char x) {
#if defined(__CUDA_ARCH_SPECIFIC__) || defined(__CUDA_ARCH_FAMILY_SPECIFIC__)
  unsigned h;
  float r;
  asm("cvt.rn.f16x2.e2m3x2 %0, %1;"
      : "=r"(h) : "h"((unsigned short)x));
  asm("cvt.f32.f16 %0, %1;" : "=f"(r) : "h"((unsigned short)h));
  return r;
#else
  unsigned s = (x & 0x20u) << 26, c = x & (0x20u - 1);
  float f = __uint_as_float(c << 20) * __uint_as_float(0x7e800000u);
  return __uint_as_float(s | __float_as_uint(f));
#endif
}

//: f32_to_e2m3
static __device__ __forceinline__ unsigned char f32_to_e2m3(float x) {
#if defined(__CUDA_ARCH_SPECIFIC__) || defined(__CUDA_ARCH_FAMILY_SPECIFIC__)
  unsigned short r;
  asm("cvt.rn.satfinite.e2m3x2.f32 %0, %1, %2;"
      : "=h"(r) : "f"(0.0f), "f"(x));
  return r;
#else
  unsigned u = __float_as_uint(x), s = u >> 26 & 0x20u;
  unsigned a = u & 0x7fffffffu, c;
  if (a > 0x7f800000u) return 0x1f;
  if (a < 0x3f800000u)
    c = __float_as_uint(__uint_as_float(a) + 1048576.0f) -
        __float_as_uint(1048576.0f);
  else
    c = (a + 0x7ffffu + (a >> 20 & 1u) - 0x3f000000u) >> 20;
  return s | min(c, 0x1fu);
#endif
}

//: e3m2_to_f32
static __device__ __forceinline__ float e3m2_to_f32(unsigned char x) {
#if defined(__CUDA_ARCH_SPECIFIC__) || defined(__CUDA_ARCH_FAMILY_SPECIFIC__)
  unsigned h;
  float r;
  asm("cvt.rn.f16x2.e3m2x2 %0, %1;"
      : "=r"(h) : "h"((unsigned short)x));
  asm("cvt.f32.f16 %0, %1;" : "=f"(r) : "h"((unsigned short)h));
  return r;
#else
  unsigned s = (x & 0x20u) << 26, c = x & (0x20u - 1);
  float f = __uint_as_float(c << 21) * __uint_as_float(0x7d800000u);
  return __uint_as_float(s | __float_as_uint(f));
#endif
}

//: f32_to_e3m2
static __device__ __forceinline__ unsigned char f32_to_e3m2(float x) {
#if defined(__CUDA_ARCH_SPECIFIC__) || defined(__CUDA_ARCH_FAMILY_SPECIFIC__)
  unsigned short r;
  asm("cvt.rn.satfinite.e3m2x2.f32 %0, %1, %2;"
      : "=h"(r) : "f"(0.0f), "f"(x));
  return r;
#else
  unsigned u = __float_as_uint(x), s = u >> 26 & 0x20u;
  unsigned a = u & 0x7fffffffu, c;
  if (a > 0x7f800000u) return 0x1f;
  if (a < 0x3e800000u)
    c = __float_as_uint(__uint_as_float(a) + 524288.0f) -
        __float_as_uint(524288.0f);
  else
    c = (a + 0xfffffu + (a >> 21 & 1u) - 0x3e000000u) >> 21;
  return s | min(c, 0x1fu);
#endif
}

//: ue8m0_to_f32
static __device__ __forceinline__ float ue8m0_to_f32(unsigned char x) {
  unsigned u = (unsigned)x << 23;
  return __uint_as_float(x == 255 ? 0x7fffffffu : x ? u : 0x400000u);
}

//: f32_to_ue8m0
// The nearest power of two; of two equally near the larger.
static __device__ __forceinline__ unsigned char f32_to_ue8m0(float x) {
  unsigned a = __float_as_uint(x) & 0x7fffffffu;
  if (a > 0x7f800000u) return 0xff;
  if (a < 0x800000u) return a >= 0x600000u;
  return min((a + 0x400000u) >> 23, 0xfeu);
}

//: i4_to_int
static __device__ __forceinline__ int i4_to_int(unsigned char x) {
  return (int)((unsigned)x << 28) >> 28;
}

// ---- memory ----

//: ld_bits
static __device__ __forceinline__ unsigned char ld_bits(
    const unsigned char *p, long long bit, int n) {
  unsigned s = bit & 7, u = (unsigned)p[bit >> 3] >> s;
  if (s + n > 8) u |= (unsigned)p[(bit >> 3) + 1] << (8 - s);
  return u & ((1u << n) - 1);
}

//: st_bits
// Other threads may store the other bits of the same word.
static __device__ __forceinline__ void st_bits(
    unsigned char *p, long long bit, int n, unsigned x) {
  unsigned long long a = (unsigned long long)p & 3;
  unsigned *w = (unsigned *)(p - a) + ((bit + a * 8) >> 5);
  unsigned s = (bit + a * 8) & 31, m = (1u << n) - 1;
  atomicAnd(w, ~(m << s));
  atomicOr(w, (x & m) << s);
  if (s + n <= 32) return;
  atomicAnd(w + 1, ~(m >> (32 - s)));
  atomicOr(w + 1, (x & m) >> (32 - s));
}

//: ld_256
#if __CUDA_ARCH__ >= 1000
static __device__ __forceinline__ void ld_256(unsigned *r, const void *p) {
  asm volatile("ld.global.L1::no_allocate.v8.b32 "
      "{%0, %1, %2, %3, %4, %5, %6, %7}, [%8];"
      : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]),
        "=r"(r[4]), "=r"(r[5]), "=r"(r[6]), "=r"(r[7])
      : "l"(p) : "memory");
}
#endif

//: st_256
#if __CUDA_ARCH__ >= 1000
static __device__ __forceinline__ void st_256(void *p, const unsigned *r) {
  asm volatile("st.global.L1::no_allocate.v8.b32 [%8], "
      "{%0, %1, %2, %3, %4, %5, %6, %7};"
      :: "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]),
        "r"(r[4]), "r"(r[5]), "r"(r[6]), "r"(r[7]), "l"(p) : "memory");
}
#endif

// ---- arithmetic ----

//: fma_f16
static __device__ __forceinline__ unsigned short fma_f16(
    unsigned short a, unsigned short b, unsigned short c) {
  unsigned short r;
  asm("fma.rn.f16 %0, %1, %2, %3;"
      : "=h"(r) : "h"(a), "h"(b), "h"(c));
  return r;
}

//: fma_bf16
static __device__ __forceinline__ unsigned short fma_bf16(
    unsigned short a, unsigned short b, unsigned short c) {
  unsigned short r;
  asm("fma.rn.bf16 %0, %1, %2, %3;"
      : "=h"(r) : "h"(a), "h"(b), "h"(c));
  return r;
}

//: floor_div_i32
static __device__ __forceinline__ int floor_div(int a, int b) {
  int q = a / b;
  return q * b != a && (a ^ b) < 0 ? q - 1 : q;
}

//: floor_mod_i32
static __device__ __forceinline__ int floor_mod(int a, int b) {
  int r = a % b;
  return r != 0 && (r ^ b) < 0 ? r + b : r;
}

//: floor_div_i64
static __device__ __forceinline__ long long floor_div(
    long long a, long long b) {
  long long q = a / b;
  return q * b != a && (a ^ b) < 0 ? q - 1 : q;
}

//: floor_mod_i64
static __device__ __forceinline__ long long floor_mod(
    long long a, long long b) {
  long long r = a % b;
  return r != 0 && (r ^ b) < 0 ? r + b : r;
}

//: lua_mod_f32
static __device__ __forceinline__ float lua_mod(float a, float b) {
  float r = fmodf(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

//: lua_mod_f64
static __device__ __forceinline__ double lua_mod(double a, double b) {
  double r = fmod(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

//: at_run_time
// x, of which the compiler knows nothing: the bit is 0 in every lane.
static __device__ __forceinline__ float at_run_time(float x) {
  unsigned lower;
  asm("mov.u32 %0, %%lanemask_lt;" : "=r"(lower));
  return __uint_as_float(__float_as_uint(x) ^ (lower & 0x80000000u));
}

//: max_f32
static __device__ __forceinline__ float max_f32(float x, float y) {
  float r;
  asm("max.f32 %0, %1, %2;" : "=f"(r) : "f"(x), "f"(y));
  return r;
}

//: min_f32
static __device__ __forceinline__ float min_f32(float x, float y) {
  float r;
  asm("min.f32 %0, %1, %2;" : "=f"(r) : "f"(x), "f"(y));
  return r;
}

//: max_f64
static __device__ __forceinline__ double max_f64(double x, double y) {
  double r;
  asm("max.f64 %0, %1, %2;" : "=d"(r) : "d"(x), "d"(y));
  return r;
}

//: min_f64
static __device__ __forceinline__ double min_f64(double x, double y) {
  double r;
  asm("min.f64 %0, %1, %2;" : "=d"(r) : "d"(x), "d"(y));
  return r;
}

//: shl_b32
static __device__ __forceinline__ unsigned shl_b32(unsigned x, unsigned n) {
  unsigned r;
  asm("shl.b32 %0, %1, %2;" : "=r"(r) : "r"(x), "r"(n));
  return r;
}

//: shr_u32
static __device__ __forceinline__ unsigned shr_u32(unsigned x, unsigned n) {
  unsigned r;
  asm("shr.u32 %0, %1, %2;" : "=r"(r) : "r"(x), "r"(n));
  return r;
}

//: shr_s32
static __device__ __forceinline__ int shr_s32(int x, unsigned n) {
  int r;
  asm("shr.s32 %0, %1, %2;" : "=r"(r) : "r"(x), "r"(n));
  return r;
}

//: shl_b64
static __device__ __forceinline__ unsigned long long shl_b64(
    unsigned long long x, unsigned n) {
  unsigned long long r;
  asm("shl.b64 %0, %1, %2;" : "=l"(r) : "l"(x), "r"(n));
  return r;
}

//: shr_u64
static __device__ __forceinline__ unsigned long long shr_u64(
    unsigned long long x, unsigned n) {
  unsigned long long r;
  asm("shr.u64 %0, %1, %2;" : "=l"(r) : "l"(x), "r"(n));
  return r;
}

//: shr_s64
static __device__ __forceinline__ long long shr_s64(long long x, unsigned n) {
  long long r;
  asm("shr.s64 %0, %1, %2;" : "=l"(r) : "l"(x), "r"(n));
  return r;
}

//: ex2_approx
static __device__ __forceinline__ float ex2_approx(float x) {
  float r;
  asm("ex2.approx.f32 %0, %1;" : "=f"(r) : "f"(x));
  return r;
}

//: tanh_approx
static __device__ __forceinline__ float tanh_approx(float x) {
  float r;
  asm("tanh.approx.f32 %0, %1;" : "=f"(r) : "f"(x));
  return r;
}

//: rcp_approx
static __device__ __forceinline__ float rcp_approx(float x) {
  float r;
  asm("rcp.approx.f32 %0, %1;" : "=f"(r) : "f"(x));
  return r;
}

//: sin_approx
static __device__ __forceinline__ float sin_approx(float x) {
  float r;
  asm("sin.approx.f32 %0, %1;" : "=f"(r) : "f"(x));
  return r;
}

//: cos_approx
static __device__ __forceinline__ float cos_approx(float x) {
  float r;
  asm("cos.approx.f32 %0, %1;" : "=f"(r) : "f"(x));
  return r;
}

//: lg2_approx
static __device__ __forceinline__ float lg2_approx(float x) {
  float r;
  asm("lg2.approx.f32 %0, %1;" : "=f"(r) : "f"(x));
  return r;
}

//: sqrt_approx
static __device__ __forceinline__ float sqrt_approx(float x) {
  float r;
  asm("sqrt.approx.f32 %0, %1;" : "=f"(r) : "f"(x));
  return r;
}

//: rsqrt_approx
static __device__ __forceinline__ float rsqrt_approx(float x) {
  float r;
  asm("rsqrt.approx.f32 %0, %1;" : "=f"(r) : "f"(x));
  return r;
}

//: div_full
static __device__ __forceinline__ float div_full(float x, float y) {
  float r;
  asm("div.full.f32 %0, %1, %2;" : "=f"(r) : "f"(x), "f"(y));
  return r;
}
