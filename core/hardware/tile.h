// Interface between mma.c, which has the numeric rules, sum.c, which computes a
// single element, and tile.c, tile8.c and tile16.c, which compute whole tiles.
#ifndef CUTE_HARDWARE_TILE_H
#define CUTE_HARDWARE_TILE_H

#include "hardware/mma.h"

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
  // minimum of e (mma.h) in a sum: a smaller e is raised to it; 0: no minimum
  int floor;
  // Exponents of the scale factor of each row of A and of B; NULL: no scale
  // factors. All products of an element are multiplied by 2^scale_a *
  // 2^scale_b. An exponent may be SIM_SCALE_NAN. Both arrays have a multiple of
  // 16 elements. With scale factors, K is `step`.
  const int32_t *scale_a, *scale_b;
} SimRule;

enum { SIM_SCALE_NAN = 30000 };

#define SIM_TILE_K 64  // largest K of an MMA instruction on floats
#define SIM_MOST_K 256  // largest K of an MMA instruction
#define SIM_NAN_BITS 0x7fffffffu  // the NaN that tensor cores return

// Returns the rules of an MMA on floats.
SimRule mma_rule(const SimMma *m);
// Computes D = A * B + C as mma_tile does, by rule r.
void mma_tile_by(const SimRule *r, int M, int N, int K, const float *A,
                 const float *B, const float *C, float *D);
// Returns c plus the sum of a[i] * b[i] * 2^scale for i < n. All terms are
// truncated and added as one sum (mma.h).
float mma_sum(const SimRule *r, int n, const float *a, const float *b,
              int scale, float c);

// Returns the minimum of e (mma.h) in sums of products of type t on Hopper and
// Blackwell: -133 for bf16 and tf32, otherwise 0 (no minimum).
int mma_floor(DType t);

// Returns the exponent of x in a format whose smallest exponent is emin.
int mma_exponent(float x, int emin);

// Returns c plus the terms value[i], whose exponents are exp[i]. Each term is
// truncated to a multiple of 2^(e-f), where e is the largest exponent.
float mma_scaled_sum(int n, const double *value, const int *exp, int f,
                     float c);

// Returns the smallest exponent of float format t, which is also that of its
// subnormal numbers.
int mma_least_exponent(DType t);

// Handles infinities and NaNs: if c or one of the n products is infinite or a
// NaN, sets *out to the sum and returns true.
bool mma_special(int n, const float *a, const float *b, float c,
                 float *out);

// Converts sum * 2^exp to f32, rounding toward zero to `keep` fraction bits.
float mma_round(int64_t sum, int exp, int keep);

// Functions of one kind of processor.
// - rows, columns: prepare A and B, as mma_rows and mma_columns do.
// - multiply: computes D = A * B + C, as mma_multiply does. K is a multiple
//   of r->step, which is a power of 2 from 4 to 64.
// - widen: converts n numbers of f16 (half) or bf16 to f32.
typedef struct SimTileFns {
  void (*rows)(const SimRule *r, int n, int K, const float *A, float *to);
  void (*columns)(const SimRule *r, int n, int K, const float *B, float *to);
  bool (*multiply)(const SimRule *r, int N, int K, const float *A,
                   const float *B, const float *C, float *D);
  void (*widen)(bool half, const void *src, size_t n, float *dst);
} SimTileFns;
extern const SimTileFns tile_base, tile_avx2, tile_avx512;

// Tables of functions that the host's processor can execute, fastest first.
// tile_known returns the table with index k, or NULL if there are at most k
// tables. tile_best returns the fastest table.
const SimTileFns *tile_known(int k);
const SimTileFns *tile_best(void);

#endif
// SPDX-License-Identifier: MIT
