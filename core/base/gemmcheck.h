// Checks each element of D = alpha A B^T + beta C0 within the bound of
// rounding.
//
// A sum of K products with n roundings of unit u, in any order, has an error of
// at most gamma_n sum_k |a_k b_k|, where gamma_n = n u / (1 - n u) (Higham,
// Accuracy and Stability of Numerical Algorithms, 2nd ed., sections 3.1 and
// 3.5). By Cauchy-Schwarz that sum is at most |a_i| |b_j|, the product of the
// Euclidean norms of a row of A and a row of B. alpha and beta add three
// roundings, and the conversion to D's type adds one:
//   e     = gamma_(K+3) (|alpha| |a_i| |b_j| + |beta c0|) + (K+3) least
//   bound = e + u_D (|d| + e) + least_D / 2
// `least` is the smallest positive number of a type.
//
// A NaN in A, B or C0 must appear in D, and an infinity must be the same
// infinity. D may contain no others, except where a partial sum (|a_i| |b_j|
// exceeds its type) or the result may overflow.
#ifndef CUTE_GEMMCHECK_H
#define CUTE_GEMMCHECK_H

#include "base/bulk.h"

typedef struct GemmCheck {
  const BulkMat *a, *b, *d;  // (M,K) (N,K) (M,N); d: f16 bf16 f32 f64, integer
  const BulkMat *ref;   // (M,N) A B^T summed in f64, or NULL
  size_t samples;       // without ref: random elements to check
  uint64_t seed;
  const BulkMat *c0;    // (M,N), or NULL: 0
  size_t m, n, k;
  double alpha, beta;
  DType sums;           // accumulator type: f32, f64, or an integer (no
                        // rounding)
  double unit;          // unit roundoff u of acc
} GemmCheck;

typedef struct GemmVerdict {
  size_t count, wrong;  // elements checked, elements beyond their bound
  size_t nans;          // unexpected NaNs
  size_t row, col;      // position of the largest error relative to its bound
  double got, want, bound;
  double frobenius;     // |D - sum| / |sum| over all finite elements; infinite
                        // if a NaN or infinity is wrong
} GemmVerdict;

// Returns false when memory is exhausted. D's type must be one that
// gemmcheck_type accepts.
bool gemmcheck_run(const GemmCheck *g, GemmVerdict *v);
bool gemmcheck_type(DType t);

#endif
// SPDX-License-Identifier: MIT
