// Runs matrix products of cuBLAS and cublasLt. A product is prepared once and
// can run many times.
#define _POSIX_C_SOURCE 200809L
#include "gpu/cublas.h"

#include <string.h>

#include "gpu/dl.h"
#include "gpu/inside.h"
#include "base/signals.h"

// ---- status and handles ----

static bool check(Gpu *g, cublasStatus_t r, const char *what, Why *w) {
  if (r == CUBLAS_STATUS_SUCCESS) return true;
  const char *name = NULL;
  if (g->blas_api && g->blas_api->cublasGetStatusName)
    name = g->blas_api->cublasGetStatusName(r);
  return name ? why(w, ERR_DRIVER, "%s: %s", what, name)
              : why(w, ERR_DRIVER, "%s: cuBLAS status %d", what, r);
}

static bool blas_use(Gpu *g, Why *w) {
  if (!gpu_use(g, w)) return false;
  if (!g->blas_api) g->blas_api = dl_cublas(w);
  if (!g->blas_api) return false;
  if (g->blas) return true;
  SigHold hold;
  signals_hold(&hold);
  cublasStatus_t r = g->blas_api->cublasCreate_v2(&g->blas);
  signals_release(&hold);
  return check(g, r, "cublasCreate", w);
}

static bool lt_use(Gpu *g, Why *w) {
  if (!gpu_use(g, w)) return false;
  // Also open cuBLAS, because check() needs its function for the names of
  // status codes.
  if (!g->blas_api) g->blas_api = dl_cublas(w);
  if (!g->lt_api) g->lt_api = dl_cublaslt(w);
  if (!g->lt_api) return false;
  if (g->lt) return true;
  SigHold hold;
  signals_hold(&hold);
  cublasStatus_t r = g->lt_api->cublasLtCreate(&g->lt);
  signals_release(&hold);
  return check(g, r, "cublasLtCreate", w);
}

bool blas_version(Gpu *g, int *version, Why *w) {
  return blas_use(g, w) &&
         check(g, g->blas_api->cublasGetVersion_v2(g->blas, version),
               "cublasGetVersion", w);
}

// ---- types ----

static int data_type(DType t) {
  switch ((int)t) {
    case DT_F16: return CUDA_R_16F;
    case DT_BF16: return CUDA_R_16BF;
    case DT_F32: case DT_TF32: return CUDA_R_32F;
    case DT_F64: return CUDA_R_64F;
    case DT_I8: return CUDA_R_8I;
    case DT_I32: return CUDA_R_32I;
    case DT_E4M3: return CUDA_R_8F_E4M3;
    case DT_E5M2: return CUDA_R_8F_E5M2;
    default: return -1;
  }
}

// Stores in w that cuBLAS (if `lt` is set: cublasLt) does not support product
// p. Returns false.
static bool no_such(const BlasSpec *p, bool lt, Why *w) {
  char layout[] = {p->a_m ? 'n' : 't', p->b_n ? 't' : 'n', 0};
  const char *more = "";
  if (!lt && (dtype_is_float8(p->ta) || dtype_is_float8(p->tb)))
    more = ": only cublasLt supports 8-bit floats";
  else if (dtype_bits(p->ta) == 8)
    more = ": 8-bit types need layout tn and rows of a multiple of 16 bytes";
  return why(w, ERR_DRIVER,
             "%s has no algorithm for %s (%d,%d)%s = %s (%d,%d) times %s "
             "(%d,%d) transposed, layout %s%s",
             lt ? "cublasLt" : "cublasGemmEx", dtype_name(p->td), p->m, p->n,
             p->m_major ? ", M contiguous," : "", dtype_name(p->ta), p->m,
             p->k, dtype_name(p->tb), p->n, p->k, layout, more);
}

static bool fill_in(BlasGemm *g, Gpu *gpu, const BlasSpec *s, Why *w) {
  DType bad = data_type(s->ta) < 0 ? s->ta : data_type(s->tb) < 0 ? s->tb
            : data_type(s->td) < 0 ? s->td : DT_NONE;
  if (bad != DT_NONE)
    return why(w, ERR_TYPE, "cuBLAS cannot multiply elements of %s",
               dtype_name(bad));
  memset(g, 0, sizeof *g);
  g->own = (GpuOwned){gpu, gpu->epoch, false};
  g->spec = *s;
  if (s->ta == DT_F64) {
    g->compute = CUBLAS_COMPUTE_64F;
    g->scale = CUDA_R_64F;
    g->alpha.d = s->alpha;
    g->beta.d = s->beta;
  } else if (s->td == DT_I32) {
    g->compute = CUBLAS_COMPUTE_32I;
    g->scale = CUDA_R_32I;
    g->alpha.i = 1;
  } else {
    bool tf32 = s->tf32 || s->ta == DT_TF32;
    g->compute = tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
    g->scale = CUDA_R_32F;
    g->alpha.f = (float)s->alpha;
    g->beta.f = (float)s->beta;
  }
  return true;
}

// The operands as cuBLAS expects them. cuBLAS uses column-major matrices: an
// operand in which K is contiguous is a K x M or K x N matrix for cuBLAS. A
// left operand is transposed if K is contiguous, and a right operand if K is
// not contiguous. If N is contiguous in D, cuBLAS computes D's transpose, so A
// and B are exchanged.
typedef struct Operands {
  const DevBuf *a, *b, *scale_a, *scale_b;
  DType ta, tb;
  int m, n;
  // am: whether M is contiguous in a; bn: whether N is contiguous in b
  bool am, bn;
  int64_t step_a, step_b;
} Operands;

static Operands operands(const BlasSpec *s) {
  if (s->m_major)
    return (Operands){s->a, s->b, s->scale_a, s->scale_b, s->ta, s->tb,
                      s->m, s->n, s->a_m, s->b_n, s->step_a, s->step_b};
  return (Operands){s->b, s->a, s->scale_b, s->scale_a, s->tb, s->ta,
                    s->n, s->m, s->b_n, s->a_m, s->step_b, s->step_a};
}

// ---- cublasGemmEx ----

bool blas_gemm_new(BlasGemm *g, Gpu *gpu, const BlasSpec *spec, Why *w) {
  if (dtype_is_float8(spec->ta) || dtype_is_float8(spec->tb))
    return no_such(spec, false, w);
  return fill_in(g, gpu, spec, w) && blas_use(gpu, w);
}

static const void *at(const DevBuf *b) {
  return (const void *)(uintptr_t)b->ptr;
}

static cublasStatus_t run_gemm(BlasGemm *g, CUstream s) {
  const CublasApi *api = g->own.gpu->blas_api;
  const BlasSpec *p = &g->spec;
  Operands o = operands(p);
  cublasStatus_t r = api->cublasSetStream_v2(g->own.gpu->blas, s);
  if (r != CUBLAS_STATUS_SUCCESS) return r;
  if (p->batches > 1)
    return api->cublasGemmStridedBatchedEx(
      g->own.gpu->blas, o.am ? CUBLAS_OP_N : CUBLAS_OP_T,
      o.bn ? CUBLAS_OP_T : CUBLAS_OP_N, o.m, o.n, p->k, &g->alpha, at(o.a),
      data_type(o.ta), o.am ? o.m : p->k, o.step_a, at(o.b), data_type(o.tb),
      o.bn ? o.n : p->k, o.step_b, &g->beta,
      (void *)(uintptr_t)p->d->ptr, data_type(p->td), o.m, p->step_d,
      p->batches, g->compute, CUBLAS_GEMM_DEFAULT);
  return api->cublasGemmEx(
    g->own.gpu->blas, o.am ? CUBLAS_OP_N : CUBLAS_OP_T,
    o.bn ? CUBLAS_OP_T : CUBLAS_OP_N, o.m, o.n, p->k, &g->alpha, at(o.a),
    data_type(o.ta), o.am ? o.m : p->k, at(o.b), data_type(o.tb),
    o.bn ? o.n : p->k, &g->beta,
    (void *)(uintptr_t)p->d->ptr, data_type(p->td), o.m, g->compute,
    CUBLAS_GEMM_DEFAULT);
}

// ---- cublasLt ----

static bool lt_attribute(BlasGemm *g, cublasLtMatmulDescAttributes_t name,
                         const void *p, size_t n, Why *w) {
  Gpu *gpu = g->own.gpu;
  return check(gpu, gpu->lt_api->cublasLtMatmulDescSetAttribute(g->desc, name,
               p, n), "cublasLtMatmulDescSetAttribute", w);
}

static bool lt_pointer(BlasGemm *g, cublasLtMatmulDescAttributes_t name,
                       const DevBuf *b, Why *w) {
  const void *p = b ? at(b) : NULL;
  return !b || lt_attribute(g, name, &p, sizeof p, w);
}

static bool lt_batches(BlasGemm *g, cublasLtMatrixLayout_t l, int64_t step,
                       Why *w) {
  Gpu *gpu = g->own.gpu;
  const CublasLtApi *api = gpu->lt_api;
  int32_t n = g->spec.batches;
  return n == 1 ||
         (check(gpu, api->cublasLtMatrixLayoutSetAttribute(
                  l, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &n, sizeof n),
                "cublasLtMatrixLayoutSetAttribute", w) &&
          check(gpu, api->cublasLtMatrixLayoutSetAttribute(
                  l, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &step,
                  sizeof step),
                "cublasLtMatrixLayoutSetAttribute", w));
}

static bool lt_describe(BlasGemm *g, Why *w) {
  Gpu *gpu = g->own.gpu;
  const CublasLtApi *api = gpu->lt_api;
  const BlasSpec *p = &g->spec;
  Operands o = operands(p);
  int32_t opa = o.am ? CUBLAS_OP_N : CUBLAS_OP_T;
  int32_t opb = o.bn ? CUBLAS_OP_T : CUBLAS_OP_N;
  int8_t fast = 1;
  int32_t epilogue = p->epilogue | (p->bias ? CUBLASLT_EPILOGUE_BIAS : 0);
  if (!epilogue) epilogue = CUBLASLT_EPILOGUE_DEFAULT;
#define LT(f, args) check(gpu, api->f args, #f, w)
  uint64_t k = (uint64_t)p->k, m = (uint64_t)o.m, n = (uint64_t)o.n;
  return LT(cublasLtMatmulDescCreate, (&g->desc, g->compute, g->scale)) &&
         lt_attribute(g, CUBLASLT_MATMUL_DESC_TRANSA, &opa, sizeof opa, w) &&
         lt_attribute(g, CUBLASLT_MATMUL_DESC_TRANSB, &opb, sizeof opb, w) &&
         lt_pointer(g, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, o.scale_a, w) &&
         lt_pointer(g, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, o.scale_b, w) &&
         (epilogue == CUBLASLT_EPILOGUE_DEFAULT ||
          lt_attribute(g, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue,
                       sizeof epilogue, w)) &&
         lt_pointer(g, CUBLASLT_MATMUL_DESC_BIAS_POINTER, p->bias, w) &&
         (!p->fast_accum || lt_attribute(g, CUBLASLT_MATMUL_DESC_FAST_ACCUM,
                                         &fast, sizeof fast, w)) &&
         LT(cublasLtMatrixLayoutCreate,
            (&g->la, data_type(o.ta), o.am ? m : k, o.am ? k : m,
             o.am ? o.m : p->k)) &&
         LT(cublasLtMatrixLayoutCreate,
            (&g->lb, data_type(o.tb), o.bn ? n : k, o.bn ? k : n,
             o.bn ? o.n : p->k)) &&
         LT(cublasLtMatrixLayoutCreate,
            (&g->ld, data_type(p->td), m, n, o.m)) &&
         lt_batches(g, g->la, o.step_a, w) &&
         lt_batches(g, g->lb, o.step_b, w) &&
         lt_batches(g, g->ld, p->step_d, w);
}

static void lt_forget(BlasGemm *g) {
  const CublasLtApi *api = g->own.gpu->lt_api;
  if (g->la) api->cublasLtMatrixLayoutDestroy(g->la);
  if (g->lb) api->cublasLtMatrixLayoutDestroy(g->lb);
  if (g->ld) api->cublasLtMatrixLayoutDestroy(g->ld);
  if (g->desc) api->cublasLtMatmulDescDestroy(g->desc);
  g->la = g->lb = g->ld = NULL;
  g->desc = NULL;
}

int blas_lt_algos(Gpu *gpu, const BlasSpec *spec, size_t workspace,
                  cublasLtMatmulHeuristicResult_t *algos, int max, Why *w) {
  BlasGemm g;
  if (!fill_in(&g, gpu, spec, w) || !lt_use(gpu, w)) return -1;
  const CublasLtApi *api = gpu->lt_api;
  cublasLtMatmulPreference_t pref = NULL;
  uint64_t bytes = workspace;
  int found = 0;
  bool ok = lt_describe(&g, w) &&
            LT(cublasLtMatmulPreferenceCreate, (&pref)) &&
            LT(cublasLtMatmulPreferenceSetAttribute,
               (pref, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &bytes,
                sizeof bytes));
  if (ok) {
    cublasStatus_t r = api->cublasLtMatmulAlgoGetHeuristic(
      gpu->lt, g.desc, g.la, g.lb, g.ld, g.ld, pref, max, algos, &found);
    bool none = r == CUBLAS_STATUS_NOT_SUPPORTED || (r == 0 && found == 0);
    ok = none ? no_such(spec, true, w)
              : check(gpu, r, "cublasLtMatmulAlgoGetHeuristic", w);
  }
  if (pref) api->cublasLtMatmulPreferenceDestroy(pref);
  lt_forget(&g);
  return ok ? found : -1;
}

bool blas_lt_about(Gpu *gpu, const cublasLtMatmulHeuristicResult_t *algo,
                   BlasAlgo *about, Why *w) {
  const CublasLtApi *api = gpu->lt_api;
  const struct { cublasLtMatmulAlgoConfigAttributes_t name; int32_t *at; } all[]
    = {{CUBLASLT_ALGO_CONFIG_ID, &about->id},
       {CUBLASLT_ALGO_CONFIG_TILE_ID, &about->tile},
       {CUBLASLT_ALGO_CONFIG_SPLITK_NUM, &about->split},
       {CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME, &about->reduction}};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    size_t n;
    if (!LT(cublasLtMatmulAlgoConfigGetAttribute,
            (&algo->algo, all[i].name, all[i].at, sizeof *all[i].at, &n)))
      return false;
  }
  return true;
}

bool blas_lt_new(BlasGemm *g, Gpu *gpu, const BlasSpec *spec,
                 DevBuf *workspace,
                 const cublasLtMatmulHeuristicResult_t *algo, Why *w) {
  if (!fill_in(g, gpu, spec, w) || !lt_use(gpu, w)) return false;
  g->lt = true;
  g->algo = *algo;
  g->workspace = workspace;
  if (lt_describe(g, w)) return true;
  lt_forget(g);
  return false;
}

static cublasStatus_t run_lt(BlasGemm *g, CUstream s) {
  const BlasSpec *p = &g->spec;
  Operands o = operands(p);
  DevBuf *ws = g->workspace;
  void *d = (void *)(uintptr_t)p->d->ptr;
  Gpu *gpu = g->own.gpu;
  return gpu->lt_api->cublasLtMatmul(
    gpu->lt, g->desc, &g->alpha, at(o.a), g->la, at(o.b), g->lb, &g->beta, d,
    g->ld, d, g->ld, &g->algo.algo, ws ? (void *)(uintptr_t)ws->ptr : NULL,
    ws ? ws->bytes : 0, s);
}

// ---- cublasGemmEx and cublasLt ----

bool blas_gemm_run(BlasGemm *g, const GpuStream *s, int n, Why *w) {
  const BlasSpec *p = &g->spec;
  Gpu *gpu = g->own.gpu;
  DevBuf *work[] = {p->a, p->b, p->d, p->scale_a, p->scale_b, p->bias,
                    g->workspace};
  CUstream stream;
  if (!gpu_usable(&g->own, "cuBLAS product", w) || !gpu_use(gpu, w) ||
      !gpustream_of(gpu, s, &stream, w))
    return false;
  for (size_t i = 0; i < sizeof work / sizeof *work; i++) {
    if (!work[i]) continue;
    if (!gpu_owns(&work[i]->own))
      return why(w, ERR_CLOSED, "a buffer of the product was closed");
    if (!devbuf_work(work[i], s, w)) return false;
  }
  cublasStatus_t r = CUBLAS_STATUS_SUCCESS;
  gpu_runs(gpu, "cuBLAS", NULL, n);
  SigHold hold;  // The first call of cuBLAS loads kernels and may start
                 // threads.
  signals_hold(&hold);
  for (int i = 0; i < n && r == CUBLAS_STATUS_SUCCESS; i++)
    r = g->lt ? run_lt(g, stream) : run_gemm(g, stream);
  signals_release(&hold);
  if (r == CUBLAS_STATUS_NOT_SUPPORTED)
    return no_such(p, g->lt, w);
  return check(gpu, r, g->lt ? "cublasLtMatmul" : "cublasGemmEx", w);
}

void blas_gemm_close(BlasGemm *g) {
  if (!g->own.closed && g->lt) lt_forget(g);
  g->own.closed = true;
}
// SPDX-License-Identifier: MIT
