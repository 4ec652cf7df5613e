// Defines enough names of CUDA C for a host C++ compiler to compile and run
// emitted kernels, one thread after the other. Specs compare the simulator with
// these runs, which share no code with it. Kernels with inline PTX or shared
// memory are not supported.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define __device__
#define __global__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __builtin_assume(...)
#define __align__(n) __attribute__((aligned(n)))

struct uint2 { unsigned x, y; } __attribute__((aligned(8)));
struct uint4 { unsigned x, y, z, w; } __attribute__((aligned(16)));
static inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
static inline uint4 make_uint4(unsigned x, unsigned y, unsigned z,
                               unsigned w) {
  return {x, y, z, w};
}
#define VECTOR4(T) \
  struct T##4 { T x, y, z, w; } __attribute__((aligned(16))); \
  static inline T##4 make_##T##4(T x, T y, T z, T w) { return {x, y, z, w}; }
#define VECTOR2(name, T) \
  struct name { T x, y; } __attribute__((aligned(2 * sizeof(T)))); \
  static inline name make_##name(T x, T y) { return {x, y}; }
VECTOR4(int) VECTOR4(float)
VECTOR2(int2, int) VECTOR2(float2, float) VECTOR2(double2, double)
VECTOR2(longlong2, long long) VECTOR2(ulonglong2, unsigned long long)
struct Index { int x, y, z; };
static Index threadIdx, blockIdx, blockDim, gridDim;

#define PAIR(T) \
  static inline T min(T a, T b) { return a < b ? a : b; } \
  static inline T max(T a, T b) { return a > b ? a : b; }
PAIR(int) PAIR(unsigned) PAIR(long long) PAIR(unsigned long long)

#define BITS(name, To, From) \
  static inline To name(From x) { \
    To y; \
    memcpy(&y, &x, sizeof y); \
    return y; \
  }
BITS(__float_as_uint, unsigned, float)
BITS(__float_as_int, int, float)
BITS(__uint_as_float, float, unsigned)
BITS(__int_as_float, float, int)
BITS(__double_as_longlong, long long, double)
BITS(__longlong_as_double, double, long long)

// Converts toward zero and saturates; a NaN gives `nan`, as on hardware.
#define TO_INT(name, From, To, lo, hi, nan) \
  static inline To name(From x) { \
    if (x != x) return nan; \
    if (x >= (From)(hi)) return (hi); \
    return x <= (From)(lo) ? (lo) : (To)x; \
  }
TO_INT(__float2int_rz, float, int, -2147483647 - 1, 2147483647, 0)
TO_INT(__float2uint_rz, float, unsigned, 0u, 4294967295u, 0u)
TO_INT(__double2int_rz, double, int, -2147483647 - 1, 2147483647,
       -2147483647 - 1)
TO_INT(__double2uint_rz, double, unsigned, 0u, 4294967295u, 0x80000000u)
TO_INT(__float2ll_rz, float, long long, -9223372036854775807ll - 1,
       9223372036854775807ll, -9223372036854775807ll - 1)
TO_INT(__double2ll_rz, double, long long, -9223372036854775807ll - 1,
       9223372036854775807ll, -9223372036854775807ll - 1)
TO_INT(__float2ull_rz, float, unsigned long long, 0ull,
       18446744073709551615ull, 0x8000000000000000ull)
TO_INT(__double2ull_rz, double, unsigned long long, 0ull,
       18446744073709551615ull, 0x8000000000000000ull)

static inline float __double2float_rz(double x) {
  float f = (float)x;
  bool past = (f > x && x > 0) || (f < x && x < 0);
  return past ? nextafterf(f, 0) : f;
}

#define TO_FLOAT(name, from) \
  static inline float name(from x) { \
    float f = (float)x; \
    bool past = (x > 0) == ((long double)f > (long double)x); \
    return (long double)f != (long double)x && past ? nextafterf(f, 0) : f; \
  }
TO_FLOAT(__ll2float_rz, long long)
TO_FLOAT(__ull2float_rz, unsigned long long)

static inline int __popc(unsigned x) { return __builtin_popcount(x); }
static inline int __clz(unsigned x) { return x ? __builtin_clz(x) : 32; }
static inline int __ffs(int x) { return __builtin_ffs(x); }

// Plain operations are atomic, because only one thread runs at a time.
static inline unsigned atomicAnd(unsigned *p, unsigned x) {
  unsigned old = *p;
  *p &= x;
  return old;
}
static inline unsigned atomicOr(unsigned *p, unsigned x) {
  unsigned old = *p;
  *p |= x;
  return old;
}
static inline int atomicCAS(int *p, int compare, int x) {
  int old = *p;
  if (old == compare) *p = x;
  return old;
}

#ifdef KERNEL
// The element type of integer tensors.
#ifndef INT_ARG
#define INT_ARG int
#endif
extern "C" void KERNEL(const INT_ARG *, const float *, INT_ARG *, float *);

// Reads N ints and N floats, runs THREADS threads, and writes M ints and M
// floats.
int main() {
  int *i = (int *)malloc(4 * N), *o = (int *)calloc(M, 4);
  float *f = (float *)malloc(4 * N), *g = (float *)calloc(M, 4);
  if (fread(i, 4, N, stdin) != N || fread(f, 4, N, stdin) != N) return 1;
  blockDim = {THREADS, 1, 1};
  gridDim = {1, 1, 1};
  for (int t = 0; t < THREADS; t++) {
    threadIdx.x = t;
    KERNEL((INT_ARG *)i, f, (INT_ARG *)o, g);
  }
  fwrite(o, 4, M, stdout);
  fwrite(g, 4, M, stdout);
  return 0;
}
#endif
// SPDX-License-Identifier: MIT
