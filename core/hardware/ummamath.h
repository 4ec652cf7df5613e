// The arithmetic of tcgen05.mma, with the results of a B200 in every bit.
//
// An element of D is a function of its row of A, its row of B (N,K), C and the
// scale factors. The instruction's shape, its CTAs and the placement of the
// operands do not change it. docs/blackwell.md lists the cases for which no
// B200 result is known.
//
// Kinds tf32, f16, f8f6f4 and mxf8f6f4 are sums of mma.h with F = 25. For tf32
// and bf16, e is at least -133. Scale factors add their exponents to those of
// the products.
//
// Kinds mxf4 and mxf4nvf4 add groups of products exactly: 16 products with
// ue8m0 scale factors, 4 products with ue4m3. Let R be the largest exponent of
// a product with its scale factors, S the largest exponent of the scale factors
// of a nonzero product, and E the exponent of C. The groups and C are truncated
// toward zero to multiples of 2^q, and added exactly; the sum is truncated to
// f32.
// - If E >= R, q is E - 35. With ue4m3, groups then have 16 products as well.
// - Otherwise q is S - 35. (R is at most S + 4.) With ue8m0, a group whose
//   products all have exponents of at most E is truncated to a multiple of
//   2^(E-35), if 2^(E-35) is larger than 2^q.
// - If a result with ue8m0 is subnormal, the sum is computed again. It then
//   omits groups whose scale factors are smaller than S and whose value is
//   below 2^max(q,-174).
#ifndef CUTE_HARDWARE_UMMAMATH_H
#define CUTE_HARDWARE_UMMAMATH_H

#include "base/dtype.h"
#include "base/umma.h"

typedef struct SimUmma {
  UmmaKind kind;
  DType a, b;   // types of the elements
  DType d;      // type of C and D: f32, f16, or i32
  DType scale;  // DT_NONE, ue8m0, or e4m3 for ue4m3 (sign ignored)
  int scales;   // number of scale factors of a row: 0, 1, 2, 4
  bool sparse;  // whether A is sparse
  bool sat;     // .satfinite of i8
} SimUmma;

// Reports whether the functions below can compute u.
bool ummamath_known(const SimUmma *u);

// Returns the instruction's extent of K. A row of a dense A stores all of these
// elements, and a row of a sparse A stores half of them.
static inline int ummamath_k(const SimUmma *u) {
  return umma_kind(u->kind)->k * (u->sparse ? 2 : 1);
}

// maximum numbers of rows and of columns of a tile
enum { SIM_UMMA_MOST = 256 };

// The operands of m rows and n columns, all row-major: A (m,k), B
// (n,ummamath_k), where k is the number of stored elements.
typedef struct SimUmmaTile {
  int m, n;
  const void *a, *b;  // float (mma_widen); kind i8: int16_t
  const uint8_t *sfa, *sfb;  // scale factors (m,scales), (n,scales)
  const uint32_t *meta;      // sparse: (m,umma_metadata_words)
  // C on entry, D on return. Elements are float (with f16 values if D is f16);
  // kind i8: int32_t
  void *d;
} SimUmmaTile;

// Computes D = A * B + C. A NaN is 0x7fffffff (dtype_from_float converts it to
// f16's 0x7fff).
void ummamath_tile(const SimUmma *u, const SimUmmaTile *t);

// Decodes the metadata of a row of a sparse A: writes to `at` the positions
// along K of the umma_kind(kind)->k elements that the row stores.
void ummamath_positions(UmmaKind kind, const uint32_t *meta, uint8_t *at);

#endif
// SPDX-License-Identifier: MIT
