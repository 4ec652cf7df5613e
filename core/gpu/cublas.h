// Matrix products of cuBLAS and cublasLt, to verify against and to be
// compared with: D[m,n] = alpha * sum over k of A[m,k] * B[n,k] + beta D[m,n].
#ifndef CUTE_CUBLAS_H
#define CUTE_CUBLAS_H

#include "gpu/memory.h"

typedef struct BlasSpec {
  int m, n, k;
  DType ta, tb, td;
  bool tf32;      // f32 operands rounded to tf32 by the tensor cores
  bool m_major;   // D has M contiguous (else N)
  bool a_m, b_n;  // A has M, B has N contiguous (else K)
  DevBuf *a, *b, *d;
  // cublasLt, 8-bit floats: one f32 that A, that B is multiplied by (or NULL);
  // sums are left to the tensor cores, which keep fewer bits than f32 has
  DevBuf *scale_a, *scale_b;
  bool fast_accum;
  double alpha, beta;  // of floats
  // cublasLt, D with N contiguous: what is added to each column (or NULL), of
  // D's type, and what follows (0: nothing; cublasLtEpilogue_t)
  DevBuf *bias;
  int epilogue;
  // Matrices of a batch, and elements from one to the next (0: all are one)
  int batches;
  int64_t step_a, step_b, step_d;
} BlasSpec;

// One product with one algorithm; gemm_run is one call into the library.
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

// The default algorithm (cublasGemmEx).
bool blas_gemm_new(BlasGemm *g, Gpu *gpu, const BlasSpec *spec, Why *w);
// cublasLt: up to max algorithms by its heuristics with a workspace of so many
// bytes, best first, into algos (no buffers are asked for); what one of them
// is; a product with one of them.
int blas_lt_algos(Gpu *gpu, const BlasSpec *spec, size_t workspace,
                  cublasLtMatmulHeuristicResult_t *algos, int max, Why *w);
typedef struct BlasAlgo {
  int32_t id, tile, split, reduction;  // as cublasLt counts them
} BlasAlgo;
bool blas_lt_about(Gpu *gpu, const cublasLtMatmulHeuristicResult_t *algo,
                   BlasAlgo *about, Why *w);
bool blas_lt_new(BlasGemm *g, Gpu *gpu, const BlasSpec *spec,
                 DevBuf *workspace,
                 const cublasLtMatmulHeuristicResult_t *algo, Why *w);
bool blas_gemm_run(BlasGemm *g, const GpuStream *s, int n, Why *w);
void blas_gemm_close(BlasGemm *g);

// Library version, e.g. 130000.
bool blas_version(Gpu *gpu, int *version, Why *w);

#endif
