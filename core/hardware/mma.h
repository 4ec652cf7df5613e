// The arithmetic of the tensor cores, with the hardware's results in every bit.
//
// A matrix instruction adds all its products and the accumulator at once. The
// exponent of a product is the sum of its operands' exponents. The significand
// of a product is in [1,4) and is not normalized. A subnormal operand has the
// smallest exponent of its format. Zeros are ignored. Let e be the largest
// exponent of all terms; for bf16 and tf32 on Hopper and Blackwell, e is at
// least -133. Each term is truncated toward zero to a multiple of
// 2^(e-F). The truncated terms are added exactly, as integers, and the sum is
// converted once: to f32 toward zero, or to f16 to nearest even. The
// architecture determines F, and whether K is split into one or two such sums.
#ifndef CUTE_HARDWARE_MMA_H
#define CUTE_HARDWARE_MMA_H

#include "base/dtype.h"

typedef enum SimMmaOp {
  MMA_MUL,  // multiplies and adds
  MMA_XOR,  // b1: adds the population count of a ^ b
  MMA_AND   // b1: adds the population count of a & b
} SimMmaOp;

// The numeric description of an MMA instruction. It follows from the row `at`
// of the table of atoms: {.a = at->a_type, .b = at->b_type, .c = at->d_type, .k
// = at->k, ...}.
typedef struct SimMma {
  // operands: f16 bf16 tf32 e4m3 e5m2 e2m1 e2m3 e3m2 f32 f64, i8 u8 i4 u4, b1
  DType a, b;
  DType c;     // accumulator and result: f32 f16, f64, i32
  int k;       // the instruction's extent of K
  int arch;    // sm number of the target: 70 75 80 86 87 89 90 100 103 120
  // whether the instruction is a wgmma, whose fp8 results differ from
  // mma.sync's
  bool wgmma;
  bool sat;    // .satfinite: whether integer accumulators saturate
  SimMmaOp op;
} SimMma;

// Reports whether the functions below can compute m. Two combinations are plain
// FMAs, not tensor-core operations: a = b = c = f32, and a = b = c = f16 with k
// = 1 and arch = 0.
bool mma_known(const SimMma *m);

// Returns one element of the result. Operands, accumulator and result are raw
// bits, one element in the low bits of each word. This is the simple, slow
// version, which adds term by term in integers.
uint64_t mma_dot(const SimMma *m, const uint64_t *a, const uint64_t *b,
                 uint64_t c);

// A sum of n products, with block scale factors, or with operands that a sparse
// A selects. Scale factor k of A and of B applies to products k * per to k *
// per + per - 1. If per is 0, there are no scale factors. Scale factors are raw
// codes of `type`.
//
// The arithmetic of these sums follows the published model MMA-Sim and was not
// measured here. 8-bit kinds use the fused sum, with each product's exponent
// increased by the exponents of its scale factors. 4-bit kinds (n = 64) add 16
// products exactly and multiply them by the significands of their scale
// factors. The exponent of such a term is the exponent of its scale factors
// alone, and F is 35.
typedef struct SimScaled {
  const SimMma *m;
  int n, per;
  // type of the scale factors: ue8m0, or e4m3 with the sign ignored
  DType type;
  uint8_t sa[8], sb[8];
} SimScaled;
float mma_scaled(const SimScaled *q, const float *a, const float *b,
                 float c);

// Multiplies whole tiles with float operands and f32 or f16 accumulators: D = A
// * B + C. Operands are widened to f32 (dtype_to_float, mma_widen). A (M,K),
// B (N,K), C and D (M,N) are row-major. f16 accumulators are stored as f32 with
// f16 values. D may be C. This vectorized version has the same results as
// mma_dot in every bit. A NaN result is 0x7fffffff (dtype_from_float
// converts it to f16's 0x7fff).
void mma_tile(const SimMma *m, int M, int N, const float *A,
              const float *B, const float *C, float *D);

// Functions for tiles of MMA_ROWS rows whose accumulators are arranged as in
// the registers of m16n8 and of wgmma. mma_place returns the index of an
// element. mma_rows prepares A from n row-major rows; missing rows become
// zeros. mma_columns prepares B from n row-major rows of B (N,K), for n columns
// of D. Then mma_multiply computes D, which must not be C. N is a multiple of
// MMA_COLUMNS. mma_multiply returns whether an element of D is a NaN or an
// infinity.
enum { MMA_ROWS = 16, MMA_COLUMNS = 8 };
static inline int mma_place(int row, int column) {
  return column / 8 * 128 + (row / 8 * 2 + column % 2) * 32 + row % 8 * 4 +
         column % 8 / 2;
}
// Number of floats of a prepared A, and of a prepared B of n columns.
#define MMA_A_FLOATS(k) (MMA_ROWS * 6 * (k))
#define MMA_B_FLOATS(n, k) (((n) + 7) / 8 * 12 * (k))
void mma_rows(const SimMma *m, int n, const float *A, float *to);
void mma_columns(const SimMma *m, int n, const float *B, float *to);
bool mma_multiply(const SimMma *m, int N, const float *A, const float *B,
                  const float *C, float *D);

// Multiply whole tiles of f64, and of integers (i8 u8 i4 u4, stored as int16).
void mma_tile_f64(const SimMma *m, int M, int N, const double *A,
                  const double *B, const double *C, double *D);
void mma_tile_int(const SimMma *m, int M, int N, const int16_t *A,
                  const int16_t *B, const int32_t *C, int32_t *D);
// Multiplies whole tiles of b1. A (M,K/32) and B (N,K/32) are 32-bit words.
void mma_tile_bit(const SimMma *m, int M, int N, const uint32_t *A,
                  const uint32_t *B, const int32_t *C, int32_t *D);

// Widens n packed elements of type t to f32. An f16 or bf16 has 2 bytes, a tf32
// or f32 4, other types 1. Fast for f16, bf16 and tf32.
void mma_widen(DType t, const void *src, size_t n, float *dst);

#endif
// SPDX-License-Identifier: MIT
