// Computes whole tiles of an MMA, sixteen lanes at a time, for AVX-512.
#include "sim/tile.h"

#if defined(__x86_64__)
#include <string.h>

#define LANES 16
#include "sim/tilebody.h"

__attribute__((target("avx512f,avx512dq,avx512vl"))) void simtile_avx512(
  const SimRule *r, int M, int N, int K, const float *A, const float *B,
  const float *C, float *D) {
  tile_body(r, M, N, K, A, B, C, D);
}
#endif
// SPDX-License-Identifier: MIT
