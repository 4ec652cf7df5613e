// cuBLAS and cublasLt that multiply nothing and print their calls on standard
// error. Specs build them as libcublas.so.13 and libcublasLt.so.13, next to
// fakecuda.c.
//   FAKE_ALGOS  how many algorithms the heuristics find (1); 0: not supported
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/cudaapi.h"

static int say(const char *format, ...) {
  va_list args;
  va_start(args, format);
  vfprintf(stderr, format, args);
  va_end(args);
  return CUBLAS_STATUS_SUCCESS;
}

static double factor(int compute, const void *p) {
  return compute == CUBLAS_COMPUTE_32I ? *(const int *)p
       : compute == CUBLAS_COMPUTE_64F ? *(const double *)p
                                       : (double)*(const float *)p;
}

// Prints the factors alpha and beta of D = alpha A B + beta D, unless they are
// 1 and 0.
static int say_factors(int compute, const void *alpha, const void *beta) {
  double x = factor(compute, alpha), y = factor(compute, beta);
  if (x != 1) say(" by %g", x);
  return y != 0 ? say(" and %g D\n", y) : say("\n");
}

static int some;  // the object that every handle of this library points to

// ---- cuBLAS ----

int cublasCreate_v2(cublasHandle_t *h) {
  *h = (cublasHandle_t)(void *)&some;
  return 0;
}
int cublasDestroy_v2(cublasHandle_t h) { return h ? 0 : 1; }
int cublasGetVersion_v2(cublasHandle_t h, int *v) { return *v = 1, h ? 0 : 1; }
int cublasSetStream_v2(cublasHandle_t h, cudaStream_t s) {
  return (void)s, h ? 0 : 1;
}
const char *cublasGetStatusName(int r) {
  return r == CUBLAS_STATUS_NOT_SUPPORTED ? "CUBLAS_STATUS_NOT_SUPPORTED"
                                          : "CUBLAS_STATUS_OTHER";
}

int cublasGemmEx(cublasHandle_t h, int opa, int opb, int m, int n, int k,
                 const void *alpha, const void *a, int ta, int lda,
                 const void *b, int tb, int ldb, const void *beta, void *d,
                 int td, int ldd, int compute, int algo) {
  (void)h, (void)a, (void)b, (void)d, (void)algo;
  if (opa == CUBLAS_OP_N && ta == CUDA_R_8I)
    return CUBLAS_STATUS_NOT_SUPPORTED;
  say("gemm %d%d %dx%dx%d types %d %d %d leading %d %d %d sums %d", opa, opb,
      m, n, k, ta, tb, td, lda, ldb, ldd, compute);
  return say_factors(compute, alpha, beta);
}

int cublasGemmStridedBatchedEx(
    cublasHandle_t h, int opa, int opb, int m, int n, int k,
    const void *alpha, const void *a, int ta, int lda, long long sa,
    const void *b, int tb, int ldb, long long sb, const void *beta, void *d,
    int td, int ldd, long long sd, int batches, int compute, int algo) {
  say("%d times, %lld %lld %lld apart: ", batches, sa, sb, sd);
  return cublasGemmEx(h, opa, opb, m, n, k, alpha, a, ta, lda, b, tb, ldb,
                      beta, d, td, ldd, compute, algo);
}

// ---- cublasLt ----

int cublasLtCreate(cublasLtHandle_t *h) {
  *h = (cublasLtHandle_t)(void *)&some;
  return 0;
}
int cublasLtDestroy(cublasLtHandle_t h) { return h ? 0 : 1; }

int cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *d, int compute, int scale) {
  *d = malloc(1);
  return say("product sums %d factors %d\n", compute, scale);
}
int cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t d) { return free(d), 0; }

// An attribute of 8 bytes is a pointer to a float, which the host can read: the
// fake driver keeps device memory on the host.
int cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t d, int name,
                                   const void *p, size_t n) {
  (void)d;
  if (n == 8) {
    float *scale;
    memcpy(&scale, p, sizeof scale);
    return say("  attribute %d = the float %g\n", name, (double)*scale);
  }
  int v = *(const signed char *)p;
  if (n == 4) memcpy(&v, p, sizeof v);
  return say("  attribute %d = %d\n", name, v);
}

int cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *l, int type,
                               uint64_t rows, uint64_t columns, int64_t lead) {
  *l = malloc(1);
  return say("  type %d %dx%d leading %d\n", type, (int)rows, (int)columns,
             (int)lead);
}
int cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t l) {
  return free(l), 0;
}
int cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t l, int name,
                                     const void *p, size_t n) {
  int64_t v = *(const int *)p;
  if (n == 8) memcpy(&v, p, sizeof v);
  return say("  layout's %d = %lld\n", name, (long long)v) || !l;
}
int cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *p) {
  *p = malloc(1);
  return 0;
}
int cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t p) {
  return free(p), 0;
}
int cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t p,
                                         int name, const void *v, size_t n) {
  (void)name, (void)v, (void)n;
  return p ? 0 : 1;
}

int cublasLtMatmulAlgoGetHeuristic(
    cublasLtHandle_t h, cublasLtMatmulDesc_t d, cublasLtMatrixLayout_t a,
    cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c,
    cublasLtMatrixLayout_t out, cublasLtMatmulPreference_t p, int max,
    cublasLtMatmulHeuristicResult_t *results, int *found) {
  (void)h, (void)d, (void)a, (void)b, (void)c, (void)out, (void)p;
  const char *some_of = getenv("FAKE_ALGOS");
  *found = some_of ? atoi(some_of) : 1;
  if (*found > max) *found = max;
  if (*found == 0) return CUBLAS_STATUS_NOT_SUPPORTED;
  memset(results, 0, (size_t)*found * sizeof *results);
  return 0;
}

// The values of an algorithm's attributes are 100, 101, ...
int cublasLtMatmulAlgoConfigGetAttribute(const cublasLtMatmulAlgo_t *algo,
                                         int name, void *p, size_t n,
                                         size_t *written) {
  int v = 100 + name;
  memcpy(p, &v, n);
  return *written = n, algo ? 0 : 1;
}

int cublasLtMatmul(cublasLtHandle_t h, cublasLtMatmulDesc_t desc,
                   const void *alpha, const void *a, cublasLtMatrixLayout_t la,
                   const void *b, cublasLtMatrixLayout_t lb, const void *beta,
                   const void *c, cublasLtMatrixLayout_t lc, void *d,
                   cublasLtMatrixLayout_t ld, const cublasLtMatmulAlgo_t *algo,
                   void *workspace, size_t bytes, cudaStream_t stream) {
  (void)h, (void)desc, (void)alpha, (void)a, (void)la, (void)b, (void)lb;
  (void)beta, (void)c, (void)lc, (void)d, (void)ld, (void)algo;
  (void)workspace, (void)bytes, (void)stream;
  return say("multiplied\n");
}
// SPDX-License-Identifier: MIT
