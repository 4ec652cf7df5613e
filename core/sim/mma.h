// The arithmetic of the tensor cores, bit for bit.
//
// A matrix instruction adds all its products and the accumulator at once.
// The exponent of a product is the sum of its operands' exponents (its
// significand, in [1,4), is not normalised; a subnormal operand has the
// format's least exponent; zeros do not count). With e the largest exponent
// of all terms, each term is cut toward zero to a multiple of 2^(e-F), the
// integers are added exactly, and the sum is converted once: to f32 toward
// zero, to f16 to nearest even. F, and whether K is done in one or two such
// sums, is the architecture's.
#ifndef CUTE_SIMMMA_H
#define CUTE_SIMMMA_H

#include "base/dtype.h"

typedef enum SimMmaOp {
  SIMMMA_MUL,  // multiply and add
  SIMMMA_XOR,  // b1: population count of a ^ b
  SIMMMA_AND   // b1: population count of a & b
} SimMmaOp;

// One instruction as far as its numbers go; from an atom's row:
// {.a = at->a_type, .b = at->b_type, .c = at->d_type, .k = at->k, ...}.
typedef struct SimMma {
  DType a, b;  // operands: f16 bf16 tf32 e4m3 e5m2 e2m1 e2m3 e3m2 f32 f64,
               // i8 u8 i4 u4, b1
  DType c;     // accumulator and result: f32 f16, f64, i32
  int k;       // K of the instruction
  int arch;    // sm number of the target: 70 75 80 86 87 89 90 100 103 120
  bool wgmma;  // a warpgroup instruction (fp8 differs from mma.sync)
  bool sat;    // .satfinite of integer accumulators: clamp, not wrap
  SimMmaOp op;
} SimMma;

// True when m is a combination that the functions below compute. a = b = c =
// f32 (or f16 f16 f16 with k = 1 on sm_0) is not a tensor core's: plain FMAs.
bool simmma_known(const SimMma *m);

// One output: K operands and the accumulator as raw bits (one element in the
// low bits of each word), the result as raw bits. The plain version: slow,
// term by term in integers.
uint64_t simmma_dot(const SimMma *m, const uint64_t *a, const uint64_t *b,
                    uint64_t c);

// A block-scaled sum, or one with operands picked by a sparse A: n products,
// scale k of each side for `per` of them (0: none), raw codes of `type`.
//
// After the published model of MMA-Sim, unmeasured here. 8-bit kinds: the
// fused sum, each product's exponent raised by those of its scales. 4-bit
// kinds (n = 64): 16 products are added exactly and multiplied by their
// scales' significands; the exponent of such a term is that of its scales
// alone; F = 35.
typedef struct SimScaled {
  const SimMma *m;
  int n, per;
  DType type;          // ue8m0, or e4m3 whose sign does not count
  uint8_t sa[8], sb[8];
} SimScaled;
float simmma_scaled(const SimScaled *q, const float *a, const float *b,
                    float c);

// A whole tile of a float kind with f32 or f16 accumulators, the operands
// widened to f32 (dtype_to_float, simmma_widen): A (M,K) and B (N,K)
// row-major, C and D (M,N) row-major; an f16 accumulator's values are f16
// values held as f32. D may be C. Vectorised; bit for bit simmma_dot.
// A NaN result is 0x7fffffff (dtype_from_float makes f16's 0x7fff of it).
void simmma_tile(const SimMma *m, int M, int N, const float *A,
                 const float *B, const float *C, float *D);

// The same for f64, and for integers (i8 u8 i4 u4 as values in int16).
void simmma_tile_f64(const SimMma *m, int M, int N, const double *A,
                     const double *B, const double *C, double *D);
void simmma_tile_int(const SimMma *m, int M, int N, const int16_t *A,
                     const int16_t *B, const int32_t *C, int32_t *D);
// b1: A (M,K/32) and B (N,K/32) words of 32 bits each.
void simmma_tile_bit(const SimMma *m, int M, int N, const uint32_t *A,
                     const uint32_t *B, const int32_t *C, int32_t *D);

// n packed elements of t (f16, bf16: 2 bytes; tf32, f32: 4; 8-bit types: 1)
// widened to f32; fast for f16, bf16 and tf32.
void simmma_widen(DType t, const void *src, size_t n, float *dst);

#endif
