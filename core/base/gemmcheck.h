// Is D = alpha A B^T + beta C0, element by element, as far as rounding goes?
//
// A sum of K products that takes n roundings of unit u, in any order, errs by
// at most gamma_n sum_k |a_k b_k|, gamma_n = n u / (1 - n u) (Higham, Accuracy
// and Stability of Numerical Algorithms, 2nd ed., sections 3.1 and 3.5), and
// that sum by Cauchy and Schwarz is at most |a_i| |b_j|, the Euclidean norms
// of a row of A and a row of B. alpha and beta take three more roundings, and
// D's type one of its own:
//   e     = gamma_(K+3) (|alpha| |a_i| |b_j| + |beta c0|) + K+3 least numbers
//   bound = e + u_D (|d| + e) + half of D's least number
//
// What is no number in A, B or C0 has to be none in D, an infinity the same
// infinity, and D has none else, but where partial sums may overflow (|a_i|
// |b_j| beyond their type) or the result does.
#ifndef CUTE_GEMMCHECK_H
#define CUTE_GEMMCHECK_H

#include "base/bulk.h"

typedef struct GemmCheck {
  const BulkMat *a, *b, *d;  // (M,K) (N,K) (M,N); d: f16 bf16 f32 f64, integer
  const BulkMat *ref;   // (M,N) A B^T summed in f64; NULL: summed here for
  size_t samples;       // so many random elements
  uint64_t seed;
  const BulkMat *c0;    // (M,N), or NULL: 0
  size_t m, n, k;
  double alpha, beta;
  DType sums;           // f32, f64, or an integer type: no rounding
  double unit;          // u
} GemmCheck;

typedef struct GemmVerdict {
  size_t count, wrong;  // elements looked at, beyond their bounds
  size_t nans;          // that should be no number
  size_t row, col;      // of the worst: the largest error by its bound
  double got, want, bound;
  double frobenius;     // |D - sum| / |sum| of all that are numbers; infinite
                        // where what is no number is wrong
} GemmVerdict;

// False when memory ran out. d's type must be one of the above.
bool gemmcheck_run(const GemmCheck *g, GemmVerdict *v);
bool gemmcheck_type(DType t);

#endif
