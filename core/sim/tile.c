// Computes whole tiles of an MMA, eight lanes at a time. This file is compiled
// for any processor, and again for AVX2.
#include "sim/tile.h"

#include <string.h>

#define LANES 8
#include "sim/tilebody.h"

void simtile_base(const SimRule *r, int M, int N, int K, const float *A,
                  const float *B, const float *C, float *D) {
  tile_body(r, M, N, K, A, B, C, D);
}

// ---- f16 and bf16 to f32 ----

typedef uint16_t VH __attribute__((vector_size(2 * LANES)));

INLINE void widen_lanes(bool half, const VH *h, VF *to) {
  VI u = __builtin_convertvector(*h, VI);
  if (!half) {
    *to = (VF)(u << 16);
    return;
  }
  VI mag = u & 0x7fff, special = NEGATIVE(0x7bff - mag);
  VI x = (VI)((VF)(mag << 13) * 0x1p112f);
  *to = (VF)(x | (special & 0x7f800000) | ((u & 0x8000) << 16));
}

INLINE void widen_body(bool half, const char *src, size_t n, float *dst) {
  VH h;
  for (; n >= LANES; n -= LANES, src += sizeof h, dst += LANES) {
    memcpy(&h, src, sizeof h);
    VF x;
    widen_lanes(half, &h, &x);
    memcpy(dst, &x, sizeof x);
  }
  for (; n; n--, src += 2) {
    uint16_t u;
    memcpy(&u, src, 2);
    *dst++ = dtype_to_float(half ? DT_F16 : DT_BF16, u);
  }
}

void simtile_widen_base(bool half, const void *src, size_t n, float *dst) {
  if (half) widen_body(true, src, n, dst);
  else widen_body(false, src, n, dst);
}

// ---- selection by processor ----

#if defined(__x86_64__)
__attribute__((target("avx2"))) void simtile_avx2(
  const SimRule *r, int M, int N, int K, const float *A, const float *B,
  const float *C, float *D) {
  tile_body(r, M, N, K, A, B, C, D);
}

__attribute__((target("avx2"))) void simtile_widen_avx2(
  bool half, const void *src, size_t n, float *dst) {
  if (half) widen_body(true, src, n, dst);
  else widen_body(false, src, n, dst);
}

SimTileFn *simtile_best(void) {
  if (__builtin_cpu_supports("avx512f") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
    return simtile_avx512;
  return __builtin_cpu_supports("avx2") ? simtile_avx2 : simtile_base;
}

SimWidenFn *simtile_widen_best(void) {
  return __builtin_cpu_supports("avx2") ? simtile_widen_avx2
                                        : simtile_widen_base;
}
#else
SimTileFn *simtile_best(void) { return simtile_base; }
SimWidenFn *simtile_widen_best(void) { return simtile_widen_base; }
#endif
// SPDX-License-Identifier: MIT
