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
  // smallest e of a sum: a smaller e is raised to it. 0 if there is none.
  int floor;
  // Exponents of the scale factors of each row of A and of B, or NULL: all
  // products of an element have the two factors 2^scale_a, 2^scale_b. A factor
  // may be SIM_SCALE_NAN.
  const int32_t *scale_a, *scale_b;
} SimRule;

enum { SIM_SCALE_NAN = 30000 };

#define SIM_TILE_K 64  // largest K of an MMA instruction on floats

// Returns c plus the sum of a[i] * b[i] * 2^scale for i < n, computed as one
// sum, term by term (mma.c).
float simmma_sum(const SimRule *r, int n, const float *a, const float *b,
                 int scale, float c);

// Returns the smallest exponent of a float format: that of its subnormals.
int simmma_least_exponent(DType t);

// Handles infinities and NaNs of c and n products: if there is one, sets *out
// to the sum and returns true.
bool simmma_special(int n, const float *a, const float *b, float c,
                    float *out);

// Converts sum * 2^exp to f32, rounding toward zero to `keep` fraction bits.
float simmma_round(int64_t sum, int exp, int keep);

// Computes D = A * B + C by the rule, as simmma_tile does. K is a multiple of
// r->step. With scale factors, K is r->step.
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
