// Runs blocks of emitted kernels on the host. Every thread is a coroutine. All
// threads of a block advance together to the next barrier, vote or shuffle,
// which all of them must reach. Besides cudahost.h, this file defines functions
// `ptx_...` for the few PTX instructions that emitted helper functions use;
// cudahost.lua writes their calls.
#include "cudahost.h"

#include <stdint.h>
#include <tuple>
#include <ucontext.h>
#include <utility>

// ---- threads ----

enum { MOST_THREADS = 256, STACK = 1 << 16 };

struct Thread {
  ucontext_t at;
  Index index;
  // the values that the thread offered in its last two calls of give()
  unsigned long long slot[2];
  int exchanges;
  bool done;
};
static Thread threads[MOST_THREADS];
static char stacks[MOST_THREADS][STACK];
static ucontext_t scheduler;
static int self, count;
alignas(1024) static unsigned char host_smem[1 << 18];

static void pass() {
  int me = self;
  swapcontext(&threads[me].at, &scheduler);
}
static inline void __syncthreads() { pass(); }
static inline void __syncwarp(unsigned = 0) { pass(); }

// Publishes x to the other threads. Returns when every thread of the block has
// published a value.
template <class T> static void give(T x) {
  Thread *t = &threads[self];
  unsigned long long u = 0;
  memcpy(&u, &x, sizeof x);
  t->slot[t->exchanges++ & 1] = u;
  pass();
}
template <class T> static T of_lane(int lane) {
  T x;
  memcpy(&x, &threads[(self & ~31) + lane].slot[~threads[self].exchanges & 1],
         sizeof x);
  return x;
}
// Returns the number of threads in this thread's warp.
static inline int lanes() {
  int left = count - (self & ~31);
  return left < 32 ? left : 32;
}

// ---- warp-wide operations ----

template <class T>
static T ptx_shfl(const char *kind, T x, int b, int c, unsigned) {
  give(x);
  int lane = self & 31, segment = c >> 8 & 31, clamp = c & 31;
  int most = (lane & segment) | (clamp & ~segment), least = lane & segment;
  int from = kind[0] == 'u' ? lane - b : kind[0] == 'd' ? lane + b
             : kind[0] == 'b' ? lane ^ b : least | (b & ~segment);
  bool in = kind[0] == 'u' ? from >= most : from <= most;
  return of_lane<T>(in ? from & 31 : lane);
}
#define SHFL(kind, first) \
  template <class T> static T ptx_shfl_sync_##kind##_b32(T x, unsigned b, \
                                                         int c, unsigned m) { \
    return ptx_shfl(#kind, x, (int)(b & 31), c, m); \
  } \
  template <class T> static T first(unsigned m, T x, int b, int w = 32) { \
    return ptx_shfl(#kind, x, b, (32 - w) << 8 | (#kind[0] == 'u' ? 0 : 31), \
                    m); \
  }
SHFL(idx, __shfl_sync)
SHFL(up, __shfl_up_sync)
SHFL(down, __shfl_down_sync)
SHFL(bfly, __shfl_xor_sync)

static inline unsigned __ballot_sync(unsigned, int p) {
  give(p != 0);
  unsigned u = 0;
  for (int l = 0; l < lanes(); l++) u |= (unsigned)of_lane<bool>(l) << l;
  return u;
}
static inline int __any_sync(unsigned m, int p) {
  return __ballot_sync(m, p) != 0;
}
static inline int __all_sync(unsigned m, int p) {
  return __ballot_sync(m, !p) == 0;
}
static inline int ptx_laneid() { return self & 31; }
static inline unsigned ptx_lanemask_lt() { return (1u << (self & 31)) - 1; }

// ---- memory ----

// Addresses of shared memory start at 1024, so that a small number, such as an
// index, is not an address.
enum { SMEM_AT = 1024 };
static inline size_t __cvta_generic_to_shared(const void *p) {
  return (size_t)((const unsigned char *)p - host_smem) + SMEM_AT;
}
static inline unsigned ptx_at(unsigned address, int n) {
  return address + (unsigned)n;
}
static inline const void *ptx_at(const void *p, int n) {
  return (const char *)p + n;
}
static inline unsigned char *shared(unsigned address, unsigned align) {
  if (address % align || address - SMEM_AT >= sizeof host_smem) exit(2);
  return host_smem + (address - SMEM_AT);
}

// cp.async copies at once here, so commits and waits do nothing.
static inline void ptx_cp_async_commit_group() {}
static inline void ptx_cp_async_wait_group(int) {}
static inline void copy_async(unsigned to, const void *from, int n, int own) {
  if ((size_t)from % (unsigned)n) exit(2);
  unsigned char *p = shared(to, (unsigned)n);
  memset(p, 0, (size_t)n);
  memcpy(p, from, (size_t)own);
}
static inline void ptx_cp_async_ca_shared_global(unsigned to, const void *from,
                                                 int n, int own) {
  copy_async(to, from, n, own);
}
static inline void ptx_cp_async_ca_shared_global(unsigned to, const void *from,
                                                 int n) {
  copy_async(to, from, n, n);
}

// Computes ldmatrix. Lane 8 k + r has the address of row r of matrix k. Lane l
// gets two elements of row l / 4. If `turned`, they are of column l / 4.
static void matrices(unsigned **r, int n, unsigned src, bool turned) {
  give(src);
  int l = self & 31;
  for (int k = 0; k < n; k++) {
    unsigned short x[2];
    for (int j = 0; j < 2; j++) {
      int row = turned ? l % 4 * 2 + j : l / 4;
      int column = turned ? l / 4 : l % 4 * 2 + j;
      memcpy(&x[j], shared(of_lane<unsigned>(8 * k + row), 16) + 2 * column, 2);
    }
    *r[k] = (unsigned)x[1] << 16 | x[0];
  }
}
#define LDMATRIX(name, turned) \
  static void ptx_ldmatrix_sync_aligned_m8n8_##name##shared_b16( \
      unsigned &a, unsigned &b, unsigned &c, unsigned &d, unsigned src) { \
    unsigned *r[] = {&a, &b, &c, &d}; \
    matrices(r, 4, src, turned); \
  }
LDMATRIX(x4_, false)
LDMATRIX(x4_trans_, true)

// Plain operations are atomic, because only one thread runs at a time.
template <class T, class U> static T atomicAdd(T *p, U x) {
  T old = *p;
  *p += (T)x;
  return old;
}

// ---- floats ----

// Returns the minimum as the hardware computes it. -0 is below 0. If one
// operand is a NaN, the result is the other one.
template <class F> static F host_min(F a, F b) {
  if (a == b) return signbit(a) ? a : b;
  return a != a ? b : b != b ? a : a < b ? a : b;
}
template <class F> static F host_max(F a, F b) {
  if (a == b) return signbit(a) ? b : a;
  return a != a ? b : b != b ? a : a > b ? a : b;
}
#define fminf host_min<float>
#define fmaxf host_max<float>
#define fmin host_min<double>
#define fmax host_max<double>
#define __fma_rn fma

// Rounds x to a mantissa of `bits` bits; numbers below 2^least are rounded like
// the subnormals of the format.
static double rounded(double x, int bits, int least) {
  if (x == 0 || x != x || isinf(x)) return x;
  int e = ilogb(x) < least ? least : ilogb(x);
  return ldexp(nearbyint(ldexp(x, bits - e)), e - bits);
}
static unsigned short half_bits(double x) {
  if (x != x) return 0x7fff;
  unsigned sign = signbit(x) ? 0x8000 : 0;
  double a = fabs(rounded(x, 10, -14));
  if (a > 65504) return (unsigned short)(sign | 0x7c00);
  if (a < ldexp(1, -14)) return (unsigned short)(sign | (unsigned)ldexp(a, 24));
  int e = ilogb(a);
  return (unsigned short)(sign | (unsigned)(e + 15) << 10 |
                          ((unsigned)ldexp(a, 10 - e) & 0x3ff));
}
static double half_value(unsigned short h) {
  int e = h >> 10 & 31, m = h & 0x3ff;
  double a = e == 31 ? (m ? NAN : INFINITY)
             : e ? ldexp(1024 + m, e - 25) : ldexp(m, -24);
  return h & 0x8000 ? -a : a;
}
static unsigned short bfloat_bits(double x) {
  if (x != x) return 0x7fff;
  // After this rounding, the conversion to float is exact or yields infinity.
  float f = (float)rounded(x, 7, -126);
  return (unsigned short)(__float_as_uint(f) >> 16);
}
static double bfloat_value(unsigned short h) {
  return __uint_as_float((unsigned)h << 16);
}
// Returns a * b + c, rounded to odd, for numbers of few bits.
static double fma_odd(double a, double b, double c) {
  double p = a * b, s = p + c, z = s - p, e = (p - (s - z)) + (c - z);
  if (e == 0 || isinf(s) || s != s) return s;
  uint64_t u;
  memcpy(&u, &s, 8);
  if (u & 1) return s;
  return nextafter(s, e > 0 ? INFINITY : -INFINITY);
}

typedef unsigned short half_t;
static inline float ptx_cvt_f32_f16(half_t x) { return (float)half_value(x); }
static inline half_t ptx_cvt_rn_f16_f32(float x) { return half_bits(x); }
static inline half_t ptx_cvt_rn_f16_f64(double x) { return half_bits(x); }
static inline half_t ptx_cvt_rn_bf16_f32(float x) { return bfloat_bits(x); }
static inline unsigned ptx_cvt_rn_f16x2_f32(float hi, float lo) {
  return (unsigned)half_bits(hi) << 16 | half_bits(lo);
}
static inline unsigned ptx_cvt_rn_bf16x2_f32(float hi, float lo) {
  return (unsigned)bfloat_bits(hi) << 16 | bfloat_bits(lo);
}
static inline float ptx_fma_rn_f32(float a, float b, float c) {
  return fmaf(a, b, c);
}
static inline half_t ptx_fma_rn_f16(half_t a, half_t b, half_t c) {
  return half_bits(fma_odd(half_value(a), half_value(b), half_value(c)));
}
static inline half_t ptx_fma_rn_bf16(half_t a, half_t b, half_t c) {
  return bfloat_bits(fma_odd(bfloat_value(a), bfloat_value(b),
                             bfloat_value(c)));
}

static inline float ptx_max_f32(float x, float y) { return fmaxf(x, y); }
static inline float ptx_min_f32(float x, float y) { return fminf(x, y); }
static inline double ptx_max_f64(double x, double y) { return fmax(x, y); }
static inline double ptx_min_f64(double x, double y) { return fmin(x, y); }

// Defines shifts that give PTX's results for counts that exceed the width.
#define SHIFTS(bits, U, S) \
  static inline U ptx_shl_b##bits(U x, unsigned n) { \
    return n < bits ? x << n : 0; \
  } \
  static inline U ptx_shr_u##bits(U x, unsigned n) { \
    return n < bits ? x >> n : 0; \
  } \
  static inline S ptx_shr_s##bits(S x, unsigned n) { \
    return x >> (n < bits ? n : bits - 1); \
  }
SHIFTS(32, unsigned, int)
SHIFTS(64, unsigned long long, long long)

// Kernels print to standard error, since standard output has the results.
#define printf(...) fprintf(stderr, __VA_ARGS__)

// PTX's div.full has an error of up to 2 ulp, which rounding to bf16 hides.
static inline float ptx_div_full_f32(float x, float y) { return x / y; }

// Applies a function to both halves of a word.
#define BOTH(t, value, bits, name, expression) \
  static inline unsigned ptx_##name##_##t##x2(unsigned a, unsigned b) { \
    unsigned r = 0; \
    for (int s = 0; s < 32; s += 16) { \
      double x = value((half_t)(a >> s)), y = value((half_t)(b >> s)); \
      r |= (unsigned)bits(expression) << s; \
    } \
    return r; \
  }
#define LESS(x, y) (x < y || (x == y && signbit(x)) || y != y)
#define PACKED(t, value, bits) \
  BOTH(t, value, bits, add_rn, x + y) BOTH(t, value, bits, sub_rn, x - y) \
  BOTH(t, value, bits, mul_rn, x * y) \
  BOTH(t, value, bits, min, LESS(x, y) ? x : y) \
  BOTH(t, value, bits, max, x != x || LESS(x, y) && y == y ? y : x) \
  static inline unsigned ptx_fma_rn_##t##x2(unsigned a, unsigned b, \
                                            unsigned c) { \
    return ptx_fma_rn_##t(a, b, c) | \
           (unsigned)ptx_fma_rn_##t(a >> 16, b >> 16, c >> 16) << 16; \
  }
PACKED(f16, half_value, half_bits) PACKED(bf16, bfloat_value, bfloat_bits)

// Decodes an 8-bit float with m bits of mantissa. quarter_bits() searches all
// codes to encode a number.
static double quarter_value(unsigned code, int m) {
  int bias = m == 3 ? 7 : 15, e = code >> m & (m == 3 ? 15 : 31);
  unsigned f = code & ((1u << m) - 1), c = code & 0x7f;
  double a = e ? ldexp((1 << m) + f, e - bias - m) : ldexp(f, 1 - bias - m);
  if (m == 3 ? c == 0x7f : c > 0x7c) a = NAN;
  if (m == 2 && c == 0x7c) a = INFINITY;
  return code & 0x80 ? -a : a;
}
static unsigned quarter_bits(double x, int m) {
  unsigned best = 0, most = m == 3 ? 0x7e : 0x7b;
  if (x != x) return 0x7f;
  for (unsigned c = 1; c <= most; c++) {
    double was = fabs(fabs(x) - quarter_value(best, m));
    double is = fabs(fabs(x) - quarter_value(c, m));
    if (is < was || (is == was && !(c & 1))) best = c;
  }
  if (fabs(x) > quarter_value(most, m)) best = most;
  return best | (signbit(x) ? 0x80 : 0);
}
#define QUARTER(t, m) \
  static inline unsigned ptx_cvt_rn_f16x2_##t##x2(half_t x) { \
    return half_bits(quarter_value(x & 255, m)) | \
           (unsigned)half_bits(quarter_value(x >> 8, m)) << 16; \
  } \
  static inline half_t ptx_cvt_rn_satfinite_##t##x2_f32(float hi, float lo) { \
    return quarter_bits(lo, m) | quarter_bits(hi, m) << 8; \
  } \
  static inline half_t ptx_cvt_rn_satfinite_##t##x2_f16x2(unsigned x) { \
    return ptx_cvt_rn_satfinite_##t##x2_f32( \
      (float)half_value((half_t)(x >> 16)), (float)half_value((half_t)x)); \
  }
QUARTER(e4m3, 3) QUARTER(e5m2, 2)

// ---- launching ----

// Converts the argument at address p for a parameter. A pointer parameter gets
// p itself, another parameter the scalar at p.
template <class T> static T argument(void *p) {
  if constexpr (std::is_pointer<T>::value) return (T)p;
  else return *(T *)p;
}
template <class... A, size_t... I>
static void call(void (*f)(A...), void **args, std::index_sequence<I...>) {
  f(argument<A>(args[I])...);
}

static void (*running)(void **);
static void **arguments;
static void enter() {
  running(arguments);
  threads[self].done = true;
  pass();
}

static void run_block(int n) {
  count = n;
  for (int t = 0; t < n; t++) {
    Thread *it = &threads[t];
    it->index = {t, 0, 0};
    it->exchanges = 0;
    it->done = false;
    getcontext(&it->at);
    it->at.uc_stack.ss_sp = stacks[t];
    it->at.uc_stack.ss_size = STACK;
    makecontext(&it->at, enter, 0);
  }
  for (int left = n; left;) {
    left = 0;
    for (self = 0; self < n; self++) {
      if (threads[self].done) continue;
      threadIdx = threads[self].index;
      swapcontext(&scheduler, &threads[self].at);
      left += !threads[self].done;
    }
  }
}

static void launch(void (*f)(void **), void **args, int grid, int block) {
  running = f;
  arguments = args;
  blockDim = {block, 1, 1};
  gridDim = {grid, 1, 1};
  for (int b = 0; b < grid; b++) {
    blockIdx = {b, 0, 0};
    run_block(block);
  }
}

// Reads `n` bytes of input into new memory. leave() writes this memory's
// contents to the output after the launch.
static void *take(size_t n) {
  void *p = aligned_alloc(256, (n + 511) / 256 * 256);
  if (fread(p, 1, n, stdin) != n) exit(1);
  return p;
}
static void leave(void *p, size_t n) {
  fwrite(p, 1, n, stdout);
  free(p);
}
// SPDX-License-Identifier: MIT
