// Matrix products of cuBLAS and cublasLt, for verification and comparison:
// D[m,n] = alpha * sum over k of A[m,k] * B[n,k] + beta D[m,n].
#ifndef CUTE_CUBLAS_H
#define CUTE_CUBLAS_H

#include "gpu/memory.h"

typedef struct BlasSpec {
  int m, n, k;
  DType ta, tb, td;
  bool tf32;      // tensor cores round f32 operands to tf32
  bool m_major;   // D has M contiguous (else N)
  bool a_m, b_n;  // A has M, B has N contiguous (else K)
  DevBuf *a, *b, *d;
  // cublasLt, 8-bit floats: an f32 factor each for A and B (or NULL), and fast
  // accumulation in the tensor cores, with less precision than f32
  DevBuf *scale_a, *scale_b;
  bool fast_accum;
  double alpha, beta;  // floats only
  // cublasLt, D with N contiguous: a bias for each column (or NULL), in D's
  // type, and an epilogue (cublasLtEpilogue_t; 0: none)
  DevBuf *bias;
  int epilogue;
  // batch size, and elements between matrices (0: the same matrix for all)
  int batches;
  int64_t step_a, step_b, step_d;
} BlasSpec;

// A product with one algorithm; blas_gemm_run makes n library calls.
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
// cublasLt: writes up to max algorithms to algos, the heuristic's best first,
// given a workspace size (buffers are not needed). blas_lt_about describes an
// algorithm; blas_lt_new prepares a product with it.
int blas_lt_algos(Gpu *gpu, const BlasSpec *spec, size_t workspace,
                  cublasLtMatmulHeuristicResult_t *algos, int max, Why *w);
typedef struct BlasAlgo {
  int32_t id, tile, split, reduction;  // values as cublasLt defines them
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
