// Matrix products of cuBLAS and cublasLt, for verification and comparison:
// D[m,n] = alpha * sum over k of A[m,k] * B[n,k] + beta D[m,n].
#ifndef CUTE_CUBLAS_H
#define CUTE_CUBLAS_H

#include "gpu/memory.h"

typedef struct BlasSpec {
  int m, n, k;
  DType ta, tb, td;
  bool tf32;      // whether tensor cores round f32 operands to tf32
  bool m_major;   // whether M, not N, is contiguous in D
  bool a_m, b_n;  // whether M (not K) is contiguous in A, and N in B
  DevBuf *a, *b, *d;
  // Only for cublasLt with 8-bit floats. scale_a, scale_b: the f32 scale
  // factors of A and B, one each, or NULL. fast_accum: selects an accumulation
  // that is faster and less precise than f32.
  DevBuf *scale_a, *scale_b;
  bool fast_accum;
  double alpha, beta;  // floats only
  // For cublasLt and a D in which N is contiguous: a bias for each column, in
  // D's type, or NULL; and a cublasLtEpilogue_t (0: none).
  DevBuf *bias;
  int epilogue;
  // batches: number of products. step_*: for each operand, the distance in
  // elements between the matrices of consecutive products (0: all products use
  // the same matrix).
  int batches;
  int64_t step_a, step_b, step_d;
} BlasSpec;

// A matrix product prepared with one algorithm. blas_gemm_run runs it n times.
typedef struct BlasGemm {
  GpuOwned own;
  bool lt;
  BlasSpec spec;
  int compute, scale;  // cublasComputeType_t, cudaDataType
  union { float f; double d; int32_t i; } alpha, beta;
  // cublasLt only
  cublasLtMatmulDesc_t desc;
  cublasLtMatrixLayout_t la, lb, ld;
  cublasLtMatmulHeuristicResult_t algo;
  DevBuf *workspace;
} BlasGemm;

// Prepares a product with the default algorithm (cublasGemmEx).
bool blas_gemm_new(BlasGemm *g, Gpu *gpu, const BlasSpec *spec, Why *w);
// Functions for algorithms of cublasLt. blas_lt_algos finds algorithms that
// need at most `workspace` bytes. It writes at most `max` of them to `algos`,
// in the order in which the library's heuristic prefers them, and returns their
// number. The buffers in spec may be NULL. blas_lt_about describes an
// algorithm. blas_lt_new prepares a product with an algorithm.
int blas_lt_algos(Gpu *gpu, const BlasSpec *spec, size_t workspace,
                  cublasLtMatmulHeuristicResult_t *algos, int max, Why *w);
typedef struct BlasAlgo {
  int32_t id, tile, split, reduction;  // numbers that cublasLt assigns
} BlasAlgo;
bool blas_lt_about(Gpu *gpu, const cublasLtMatmulHeuristicResult_t *algo,
                   BlasAlgo *about, Why *w);
bool blas_lt_new(BlasGemm *g, Gpu *gpu, const BlasSpec *spec,
                 DevBuf *workspace,
                 const cublasLtMatmulHeuristicResult_t *algo, Why *w);
bool blas_gemm_run(BlasGemm *g, const GpuStream *s, int n, Why *w);
void blas_gemm_close(BlasGemm *g);

// Returns the library version, e.g. 130000.
bool blas_version(Gpu *gpu, int *version, Why *w);

#endif
// SPDX-License-Identifier: MIT
