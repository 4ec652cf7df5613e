// Interface between mma.c (the rules) and tile.c, tile16.c (whole tiles).
#ifndef CUTE_SIMTILE_H
#define CUTE_SIMTILE_H

#include "base/dtype.h"

// Numeric rules of an instruction; mma.h explains the terms.
typedef struct SimRule {
  int f;          // F: terms are truncated to multiples of 2^(e-f)
  int step;       // number of products added at once
  int keep;       // number of fraction bits of an f32 result
  int emin_a, emin_b;  // least exponents of the operands' formats
  bool half;      // the accumulator is f16
  bool emulated;  // fp8 mma.sync on Hopper, executed as two f16 instructions
} SimRule;

#define SIM_TILE_K 64  // largest K of a float instruction

// Returns c plus the sum of a[i] * b[i] for i < n. It is computed as one sum,
// term by term (mma.c).
float simmma_sum(const SimRule *r, int n, const float *a, const float *b,
                 float c);

// Computes D = A * B + C by the rule, like simmma_tile. K is a multiple of
// r->step.
typedef void SimTileFn(const SimRule *r, int M, int N, int K, const float *A,
                       const float *B, const float *C, float *D);
SimTileFn simtile_base, simtile_avx2, simtile_avx512;
typedef void SimWidenFn(bool half, const void *src, size_t n, float *dst);
SimWidenFn simtile_widen_base, simtile_widen_avx2;

// Return the best version for the processor of the host.
SimTileFn *simtile_best(void);
SimWidenFn *simtile_widen_best(void);

#endif
// SPDX-License-Identifier: MIT
