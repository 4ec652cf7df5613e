// Computes tiles of an MMA with eight lanes, for AVX2.
#include "hardware/tile.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define LANES 8
#define FUNCTIONS tile_avx2
#define TARGET __attribute__((target("avx2")))
#define LOAD_QUAD(p) \
  ((VF)_mm256_broadcast_ps((const __m128 *)(const void *)(p)))
#define MAX_SHORTS(a, b) ((VI)_mm256_max_epi16((__m256i)(a), (__m256i)(b)))
#define ANY_NEGATIVE(v) (_mm256_movemask_ps((__m256)(v)) != 0)
#include "hardware/tilebody.h"
#endif
// SPDX-License-Identifier: MIT
