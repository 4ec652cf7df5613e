// Interface between mma.c (the rules) and tile.c, tile16.c (whole tiles).
#ifndef CUTE_SIMTILE_H
#define CUTE_SIMTILE_H

#include "base/dtype.h"

// Rules of addition of an instruction, in the terms of mma.h.
typedef struct SimRule {
  int f;          // F: terms are truncated to multiples of 2^(e-f)
  int step;       // products added at once
  int keep;       // fraction bits of an f32 result
  int emin_a, emin_b;  // least exponents of the operands' formats
  bool half;      // f16 accumulator
  bool emulated;  // fp8 mma.sync on Hopper: two f16 instructions
} SimRule;

#define SIM_TILE_K 64  // largest K of a float instruction

// Returns c + sum of a[i] * b[i], i < n, in one sum, term by term (mma.c).
float simmma_sum(const SimRule *r, int n, const float *a, const float *b,
                 float c);

// D = A * B + C by the rule, as simmma_tile; K is a multiple of r->step.
typedef void SimTileFn(const SimRule *r, int M, int N, int K, const float *A,
                       const float *B, const float *C, float *D);
SimTileFn simtile_base, simtile_avx2, simtile_avx512;
typedef void SimWidenFn(bool half, const void *src, size_t n, float *dst);
SimWidenFn simtile_widen_base, simtile_widen_avx2;

// Return the best version for this processor.
SimTileFn *simtile_best(void);
SimWidenFn *simtile_widen_best(void);

#endif
// SPDX-License-Identifier: MIT
