// Interface between mma.c, which has the numeric rules, and tile.c and
// tile16.c, which compute whole tiles.
#ifndef CUTE_SIMTILE_H
#define CUTE_SIMTILE_H

#include "base/dtype.h"

// The numeric rules of an MMA instruction; mma.h explains the terms.
typedef struct SimRule {
  int f;          // F of mma.h: terms are truncated to multiples of 2^(e-f)
  int step;       // number of products that are added at once
  int keep;       // number of fraction bits of an f32 result
  int emin_a, emin_b;  // smallest exponents of the formats of A and B
  bool half;      // whether the accumulator is f16
  // whether the instruction is an fp8 mma.sync on Hopper, which two f16
  // instructions implement
  bool emulated;
} SimRule;

#define SIM_TILE_K 64  // largest K of an MMA instruction on floats

// Returns c plus the sum of a[i] * b[i] for i < n, computed as one sum, term by
// term (mma.c).
float simmma_sum(const SimRule *r, int n, const float *a, const float *b,
                 float c);

// Computes D = A * B + C by the rule, as simmma_tile does. K is a multiple of
// r->step.
typedef void SimTileFn(const SimRule *r, int M, int N, int K, const float *A,
                       const float *B, const float *C, float *D);
SimTileFn simtile_base, simtile_avx2, simtile_avx512;
typedef void SimWidenFn(bool half, const void *src, size_t n, float *dst);
SimWidenFn simtile_widen_base, simtile_widen_avx2;

// Return the best function for the host's processor.
SimTileFn *simtile_best(void);
SimWidenFn *simtile_widen_best(void);

#endif
// SPDX-License-Identifier: MIT
