// The small functions that emitted kernels carry in front, as CUDA C. A block
// is a line `//: name` and what follows up to an empty line; tools/embed.lua
// makes H_NAME of it, and helper.c copies the blocks that a kernel needs and
// those that they call, in this order. It decides `#if __CUDA_ARCH__ >= N`
// itself: such lines are in no kernel's text.

// What stands in no block is for compilers and editors, which see the whole:
// sm_90a is specific, too, but has no conversions of 4 and 6 bits.
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

//: f32_to_bf16
#if __CUDA_ARCH__ >= 800
static __device__ __forceinline__ unsigned short f32_to_bf16(float x) {
  unsigned short r;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(r) : "f"(x));
  return r;
}
#else
static __device__ __forceinline__ unsigned short f32_to_bf16(float x) {
  unsigned u = __float_as_uint(x);
  if ((u & 0x7fffffffu) > 0x7f800000u) return 0x7fff;
  return (u + 0x7fffu + (u >> 16 & 1u)) >> 16;
}
#endif

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
// Of few, by selects: i is one of n. Of more, in memory of the thread. Parts
// have so many bits of a word.

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
// In C where the target has no cvt for them. To f32: the code's bits placed as
// an f32 are the value times a power of two. From f32: round to nearest even on
// the bits, subnormals by an addition, saturate.

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
// The nearest power of two; of two equally near the even code.
static __device__ __forceinline__ unsigned char f32_to_ue8m0(float x) {
  unsigned a = __float_as_uint(x) & 0x7fffffffu;
  if (a > 0x7f800000u) return 0xff;
  if (a < 0x800000u) return a > 0x600000u;
  return min((a + 0x3fffffu + (a >> 23 & 1u)) >> 23, 0xfeu);
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

// ---- atomics and places ----

//: atomic_add_f16
static __device__ __forceinline__ unsigned short atomic_add_f16(
    unsigned short *p, unsigned short x) {
  unsigned short r;
  asm volatile("atom.add.noftz.f16 %0, [%1], %2;"
      : "=h"(r) : "l"(p), "h"(x) : "memory");
  return r;
}

//: atomic_add_bf16
#if __CUDA_ARCH__ >= 900
static __device__ __forceinline__ unsigned short atomic_add_bf16(
    unsigned short *p, unsigned short x) {
  unsigned short r;
  asm volatile("atom.add.noftz.bf16 %0, [%1], %2;"
      : "=h"(r) : "l"(p), "h"(x) : "memory");
  return r;
}
#endif

//: atomic_min
static __device__ __forceinline__ float atomic_min(float *p, float x) {
  int old = *(volatile int *)p, seen;
  do {
    seen = old;
    old = atomicCAS((int *)p, seen,
        __float_as_int(fminf(__int_as_float(seen), x)));
  } while (old != seen);
  return __int_as_float(old);
}

//: atomic_max
static __device__ __forceinline__ float atomic_max(float *p, float x) {
  int old = *(volatile int *)p, seen;
  do {
    seen = old;
    old = atomicCAS((int *)p, seen,
        __float_as_int(fmaxf(__int_as_float(seen), x)));
  } while (old != seen);
  return __int_as_float(old);
}

//: lane_id
static __device__ __forceinline__ int lane_id() {
  int r;
  asm("mov.u32 %0, %%laneid;" : "=r"(r));
  return r;
}

//: warp_id
static __device__ __forceinline__ int warp_id() {
  return (threadIdx.x + blockDim.x *
      (threadIdx.y + blockDim.y * threadIdx.z)) / 32;
}

//: sm_id
static __device__ __forceinline__ int sm_id() {
  int r;
  asm("mov.u32 %0, %%smid;" : "=r"(r));
  return r;
}

// ---- what comes to L2 with a load ----

//: ld_l2
template <int bytes, typename T>  // so many of memory come to L2 with it
static __device__ __forceinline__ T ld_l2(const T *p) {
  T x;
  if constexpr (sizeof(T) == 16) {
    uint4 &v = *(uint4 *)&x;
    asm volatile("ld.global.L2::%5B.v4.u32 {%0, %1, %2, %3}, [%4];"
        : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
        : "l"(p), "n"(bytes) : "memory");
  } else if constexpr (sizeof(T) == 8) {
    uint2 &v = *(uint2 *)&x;
    asm volatile("ld.global.L2::%3B.v2.u32 {%0, %1}, [%2];"
        : "=r"(v.x), "=r"(v.y) : "l"(p), "n"(bytes) : "memory");
  } else if constexpr (sizeof(T) == 4) {
    asm volatile("ld.global.L2::%2B.u32 %0, [%1];"
        : "=r"(*(unsigned *)&x) : "l"(p), "n"(bytes) : "memory");
  } else if constexpr (sizeof(T) == 2) {
    asm volatile("ld.global.L2::%2B.u16 %0, [%1];"
        : "=h"(*(unsigned short *)&x) : "l"(p), "n"(bytes) : "memory");
  } else {
    unsigned v;
    asm volatile("ld.global.L2::%2B.u8 %0, [%1];"
        : "=r"(v) : "l"(p), "n"(bytes) : "memory");
    *(unsigned char *)&x = (unsigned char)v;
  }
  return x;
}

// ---- cp.async ----

//: cp_async_ca4
template <int to = 0, int from = 0>  // bytes beyond dst and src
static __device__ __forceinline__ void cp_async_ca4(
    unsigned dst, const void *src) {
  asm volatile("cp.async.ca.shared.global [%0 + %2], [%1 + %3], 4;"
      :: "r"(dst), "l"(src), "n"(to), "n"(from) : "memory");
}

//: cp_async_ca8
template <int to = 0, int from = 0>  // bytes beyond dst and src
static __device__ __forceinline__ void cp_async_ca8(
    unsigned dst, const void *src) {
  asm volatile("cp.async.ca.shared.global [%0 + %2], [%1 + %3], 8;"
      :: "r"(dst), "l"(src), "n"(to), "n"(from) : "memory");
}

//: cp_async_ca16
template <int to = 0, int from = 0>  // bytes beyond dst and src
static __device__ __forceinline__ void cp_async_ca16(
    unsigned dst, const void *src) {
  asm volatile("cp.async.ca.shared.global [%0 + %2], [%1 + %3], 16;"
      :: "r"(dst), "l"(src), "n"(to), "n"(from) : "memory");
}

//: cp_async_cg16
template <int to = 0, int from = 0>  // bytes beyond dst and src
static __device__ __forceinline__ void cp_async_cg16(
    unsigned dst, const void *src) {
  asm volatile("cp.async.cg.shared.global [%0 + %2], [%1 + %3], 16;"
      :: "r"(dst), "l"(src), "n"(to), "n"(from) : "memory");
}

//: cp_async_ca4_zfill
template <int to = 0, int from = 0>  // bytes beyond dst and src
static __device__ __forceinline__ void cp_async_ca4_zfill(
    unsigned dst, const void *src, bool p) {
  asm volatile("cp.async.ca.shared.global [%0 + %3], [%1 + %4], 4, %2;"
      :: "r"(dst), "l"(src), "r"(p ? 4 : 0), "n"(to), "n"(from) : "memory");
}

//: cp_async_ca8_zfill
template <int to = 0, int from = 0>  // bytes beyond dst and src
static __device__ __forceinline__ void cp_async_ca8_zfill(
    unsigned dst, const void *src, bool p) {
  asm volatile("cp.async.ca.shared.global [%0 + %3], [%1 + %4], 8, %2;"
      :: "r"(dst), "l"(src), "r"(p ? 8 : 0), "n"(to), "n"(from) : "memory");
}

//: cp_async_ca16_zfill
template <int to = 0, int from = 0>  // bytes beyond dst and src
static __device__ __forceinline__ void cp_async_ca16_zfill(
    unsigned dst, const void *src, bool p) {
  asm volatile("cp.async.ca.shared.global [%0 + %3], [%1 + %4], 16, %2;"
      :: "r"(dst), "l"(src), "r"(p ? 16 : 0), "n"(to), "n"(from) : "memory");
}

//: cp_async_cg16_zfill
template <int to = 0, int from = 0>  // bytes beyond dst and src
static __device__ __forceinline__ void cp_async_cg16_zfill(
    unsigned dst, const void *src, bool p) {
  asm volatile("cp.async.cg.shared.global [%0 + %3], [%1 + %4], 16, %2;"
      :: "r"(dst), "l"(src), "r"(p ? 16 : 0), "n"(to), "n"(from) : "memory");
}

//: cp_async_ca_l2
template <int l2, int n, int to = 0, int from = 0>  // l2: bytes that come there
static __device__ __forceinline__ void cp_async_ca_l2(
    unsigned dst, const void *src, bool p = true) {
  asm volatile("cp.async.ca.shared.global.L2::%5B [%0 + %3], [%1 + %4], %6, %2;"
      :: "r"(dst), "l"(src), "r"(p ? n : 0), "n"(to), "n"(from), "n"(l2), "n"(n)
      : "memory");
}

//: cp_async_cg_l2
template <int l2, int n, int to = 0, int from = 0>  // l2: bytes that come there
static __device__ __forceinline__ void cp_async_cg_l2(
    unsigned dst, const void *src, bool p = true) {
  asm volatile("cp.async.cg.shared.global.L2::%5B [%0 + %3], [%1 + %4], %6, %2;"
      :: "r"(dst), "l"(src), "r"(p ? n : 0), "n"(to), "n"(from), "n"(l2), "n"(n)
      : "memory");
}

// ---- mbarriers ----

//: map_copy
static __device__ __forceinline__ void map_copy(void *dst, const void *map) {
  for (int k = 0; k < 16; ++k)
    ((unsigned long long *)dst)[k] = ((const unsigned long long *)map)[k];
}

//: map_address
#if __CUDA_ARCH__ == 900
static __device__ __forceinline__ void map_address(
    void *map, const void *tensor) {
  asm volatile("tensormap.replace.tile.global_address.b1024.b64 [%0], %1;"
      :: "l"(map), "l"(tensor) : "memory");
}
#endif

//: map_extent
#if __CUDA_ARCH__ == 900
template <int mode>
static __device__ __forceinline__ void map_extent(void *map, unsigned n) {
  asm volatile("tensormap.replace.tile.global_dim.b1024.b32 [%0], %2, %1;"
      :: "l"(map), "r"(n), "n"(mode) : "memory");
}
#endif

//: map_stride
#if __CUDA_ARCH__ == 900
template <int mode>
static __device__ __forceinline__ void map_stride(
    void *map, unsigned long long bytes) {
  asm volatile("tensormap.replace.tile.global_stride.b1024.b64 [%0], %2, %1;"
      :: "l"(map), "l"(bytes), "n"(mode - 1) : "memory");
}
#endif

//: map_acquire
#if __CUDA_ARCH__ >= 900
static __device__ __forceinline__ void map_acquire(const void *map) {
  asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;"
      :: "l"(map) : "memory");
}
#endif

//: map_publish
#if __CUDA_ARCH__ >= 900
static __device__ __forceinline__ void map_publish(
    void *dst, const void *src) {
  unsigned long long from;
  asm("cvta.to.shared.u64 %0, %1;" : "=l"(from) : "l"(src));
  asm volatile("tensormap.cp_fenceproxy.global.shared::cta"
      ".tensormap::generic.release.gpu.sync.aligned [%0], [%1], 128;"
      :: "l"(dst), "r"((unsigned)from) : "memory");
}
#endif

//: mbar_init
#if __CUDA_ARCH__ >= 800
static __device__ __forceinline__ void mbar_init(
    unsigned bar, unsigned count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;"
      :: "r"(bar), "r"(count) : "memory");
}
#endif

//: mbar_inval
#if __CUDA_ARCH__ >= 800
static __device__ __forceinline__ void mbar_inval(unsigned bar) {
  asm volatile("mbarrier.inval.shared::cta.b64 [%0];"
      :: "r"(bar) : "memory");
}
#endif

//: mbar_cp_async
#if __CUDA_ARCH__ >= 800
static __device__ __forceinline__ void mbar_cp_async(unsigned bar) {
  asm volatile("cp.async.mbarrier.arrive.shared::cta.b64 [%0];"
      :: "r"(bar) : "memory");
}
#endif

//: mbar_cp_async_noinc
#if __CUDA_ARCH__ >= 800
static __device__ __forceinline__ void mbar_cp_async_noinc(unsigned bar) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];"
      :: "r"(bar) : "memory");
}
#endif

//: map_shared
// Where another CTA of the cluster has what this one has at p.
#if __CUDA_ARCH__ >= 900
static __device__ __forceinline__ void *map_shared(const void *p, int rank) {
  void *r;
  asm("mapa.u64 %0, %1, %2;" : "=l"(r) : "l"(p), "r"(rank));
  return r;
}
#endif

// ---- warpgroups ----

//: smem_desc
// What lies at a shared address as wgmma reads it: 16 bytes are one.
static __device__ __forceinline__ unsigned long long smem_desc(
    unsigned addr, unsigned long long bits) {
  return bits | (addr & 0x3ffffu) >> 4;
}
