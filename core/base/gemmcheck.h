// Checks each element of D = alpha A B^T + beta C0 against a bound of the
// rounding error.
//
// A sum of K products with n roundings of unit u, in any order, has an error of
// at most gamma_n sum_k |a_k b_k|, where gamma_n = n u / (1 - n u) (Higham,
// Accuracy and Stability of Numerical Algorithms, 2nd ed., sections 3.1 and
// 3.5). By Cauchy-Schwarz, sum_k |a_k b_k| is at most |a_i| |b_j|, the product
// of the Euclidean norms of row i of A and row j of B. alpha and beta add three
// roundings, and the conversion to D's type adds one:
//   e     = gamma_(K+3) (|alpha| |a_i| |b_j| + |beta c0|) + (K+3) least
//   bound = e + u_D (|d| + e) + least_D / 2
// `least` is the smallest positive number of a type.
//
// A NaN in A, B or C0 must appear in D, and so must an infinity with its sign.
// D may contain no other NaN or infinity, except where the result or a partial
// sum may overflow. A partial sum may overflow if |a_i| |b_j| exceeds the
// largest number of the accumulators' type.
#ifndef CUTE_GEMMCHECK_H
#define CUTE_GEMMCHECK_H

#include "base/bulk.h"

typedef struct GemmCheck {
  // The matrices A (M,K), B (N,K) and D (M,N). D is f16, bf16, f32, f64 or an
  // integer.
  const BulkMat *a, *b, *d;
  // The product A B^T, an (M,N) matrix of f64. If it is NULL, only a random
  // sample of the elements is computed and checked.
  const BulkMat *ref;
  size_t samples;       // without ref: number of random elements to check
  uint64_t seed;
  const BulkMat *c0;    // C before the product, (M,N); NULL: zeros
  size_t m, n, k;
  double alpha, beta;
  // Type of the accumulators: f32, f64, or an integer (no rounding).
  DType sums;
  double unit;          // unit roundoff u of the accumulators
} GemmCheck;

typedef struct GemmVerdict {
  // Number of checked elements, and number of elements whose error exceeds the
  // bound.
  size_t count, wrong;
  size_t nans;          // unexpected NaNs
  size_t row, col;      // position of the largest error relative to its bound
  double got, want, bound;
  // |D - X| / |X| in the Frobenius norm over the finite elements, where X is
  // the expected result. It is infinite if a NaN or infinity is wrong.
  double frobenius;
} GemmVerdict;

// Returns false when memory is exhausted. D's type must be one that
// gemmcheck_type accepts.
bool gemmcheck_run(const GemmCheck *g, GemmVerdict *v);
bool gemmcheck_type(DType t);

#endif
// SPDX-License-Identifier: MIT
