// Computes tiles of an MMA with sixteen lanes, for AVX-512.
#include "hardware/tile.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define LANES 16
#define FUNCTIONS tile_avx512
#define TARGET \
  __attribute__((target("avx512f,avx512dq,avx512bw,avx512vl")))
#define LOAD_QUAD(p) ((VF)_mm512_broadcast_f32x4(_mm_loadu_ps(p)))
#define MAX_SHORTS(a, b) ((VI)_mm512_max_epi16((__m512i)(a), (__m512i)(b)))
#define ANY_NEGATIVE(v) (_mm512_movepi32_mask((__m512i)(v)) != 0)
#define TRUNCATED(v) \
  _mm512_cvt_roundepi32_ps((__m512i)(v), \
                           _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC)
#include "hardware/tilebody.h"
#endif
// SPDX-License-Identifier: MIT
