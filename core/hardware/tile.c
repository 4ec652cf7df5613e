// Computes tiles of an MMA with four lanes, for any processor, and selects the
// functions for the host's processor.
#include "hardware/tile.h"

#include <string.h>

#define LANES 4
#define FUNCTIONS tile_base
#define TARGET
#define LOAD_QUAD(p) load_quad(p)
#define MAX_SHORTS(a, b) larger(a, b)
#define ANY_NEGATIVE(v) any_negative(v)

typedef float Quad __attribute__((vector_size(16)));
typedef int32_t Words __attribute__((vector_size(16)));
typedef int16_t Shorts __attribute__((vector_size(16)));
typedef int64_t Longs __attribute__((vector_size(16)));

static inline Quad load_quad(const float *p) {
  Quad v;
  memcpy(&v, p, sizeof v);
  return v;
}

static inline Words larger(Words a, Words b) {
  Shorts x = (Shorts)a, y = (Shorts)b, more = x > y;
  return (Words)((x & more) | (y & ~more));
}

static inline bool any_negative(Words v) {
  Longs n = (Longs)(v >> 31);
  return (n[0] | n[1]) != 0;
}

#include "hardware/tilebody.h"

const SimTileFns *tile_known(int k) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512vl") && !k--)
    return &tile_avx512;
  if (__builtin_cpu_supports("avx2") && !k--) return &tile_avx2;
#endif
  return k ? NULL : &tile_base;
}

const SimTileFns *tile_best(void) { return tile_known(0); }
// SPDX-License-Identifier: MIT
