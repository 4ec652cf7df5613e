// A CUDA driver for specs of libcutecapture: memory is the host's, and a module
// accepts any image. Kernels whose names begin with axpy compute
// y[i] = a * x[i] + y[i]. `table_axpy` computes the same. Its first parameter
// points to a table, whose words 0 and 2 are y and x. Other kernels do nothing.
//   FAKE_SAY        prints a line for each graph that the driver launches
//   FAKE_SIZE       size of each parameter that cuFuncGetParamInfo returns
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fakegraph.h"

typedef struct Memory {
  char *at;
  size_t n;
} Memory;

static Memory memory[64];
static int nmemory;
static float table[4] = {1, 2, 3, 4};  // variable `table` that each module has

CUresult cuInit(unsigned f) { return f ? 1 : 0; }
CUresult cuMemAlloc_v2(CUdeviceptr *p, size_t n) {
  char *m = aligned_alloc(256, (n + 255) / 256 * 256);
  memory[nmemory++] = (Memory){m, n};
  return *p = (CUdeviceptr)(uintptr_t)m, 0;
}
CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *n, CUdeviceptr p) {
  for (int i = 0; i < nmemory; i++) {
    uintptr_t at = (uintptr_t)memory[i].at;
    if (p - at < memory[i].n) return *base = at, *n = memory[i].n, 0;
  }
  return 1;
}
CUresult cuMemcpyHtoD_v2(CUdeviceptr d, const void *s, size_t n) {
  memcpy((void *)(uintptr_t)d, s, n);
  return 0;
}
CUresult cuMemcpyDtoH_v2(void *d, CUdeviceptr s, size_t n) {
  memcpy(d, (void *)(uintptr_t)s, n);
  return 0;
}
CUresult cuCtxSynchronize(void) { return 0; }
CUresult cuStreamIsCapturing(CUstream s, CUstreamCaptureStatus *status) {
  (void)s;
  return *status = fake_capturing() ? 1 : 0, 0;
}

CUresult cuModuleLoadData(CUmodule *m, const void *image) {
  return (void)image, *m = malloc(64), 0;
}
CUresult cuModuleLoadDataEx(CUmodule *m, const void *image, unsigned n,
                            void *options, void **values) {
  (void)n, (void)options, (void)values;
  return cuModuleLoadData(m, image);
}
CUresult cuModuleLoadFatBinary(CUmodule *m, const void *image) {
  return cuModuleLoadData(m, image);
}
CUresult cuModuleLoad(CUmodule *m, const char *path) {
  return cuModuleLoadData(m, path);
}
// The linked image is the same for all inputs.
CUresult cuLinkCreate_v2(unsigned n, void *options, void **values,
                         void **state) {
  (void)n, (void)options, (void)values;
  return *state = malloc(64), 0;
}
CUresult cuLinkAddData_v2(void *state, int type, void *data, size_t size,
                          const char *name, unsigned n, void *options,
                          void **values) {
  (void)state, (void)data, (void)size, (void)name, (void)n, (void)options;
  return (void)values, type == 1 ? 0 : 1;
}
CUresult cuLinkComplete(void *state, void **cubin, size_t *size) {
  static char code[64] = "\177ELF";
  return (void)state, *cubin = code, *size = sizeof code, 0;
}
// A function's handle is its name.
CUresult cuModuleGetFunction(CUfunction *f, CUmodule m, const char *name) {
  return (void)m, *f = (CUfunction)(void *)strdup(name), 0;
}
CUresult cuModuleGetGlobal_v2(CUdeviceptr *p, size_t *n, CUmodule m,
                              const char *name) {
  (void)m;
  *p = (CUdeviceptr)(uintptr_t)table, *n = sizeof table;
  return strcmp(name, "table") ? 500 : 0;
}
CUresult cuLibraryGetGlobal(CUdeviceptr *p, size_t *n, void *l,
                            const char *name) {
  return cuModuleGetGlobal_v2(p, n, l, name);
}
CUresult cuLibraryLoadData(void **l, const void *image, void *a, void **b,
                           unsigned c, void *d, void **e, unsigned f) {
  (void)image, (void)a, (void)b, (void)c, (void)d, (void)e, (void)f;
  return *l = malloc(64), 0;
}
CUresult cuLibraryGetKernel(void **k, void *l, const char *name) {
  return (void)l, *k = strdup(name), 0;
}
CUresult cuKernelGetFunction(CUfunction *f, void *k) {
  return *f = (CUfunction)(void *)strdup(k), 0;
}
CUresult cuFuncGetParamInfo(CUfunction f, size_t i, size_t *offset,
                            size_t *size) {
  const char *s = getenv("FAKE_SIZE");
  (void)f;
  if (!s) return 1;
  return *offset = 8 * i, *size = (size_t)atoi(s), 0;
}

static void run(CUfunction f, void **p, void **extra) {
  const char *name = (const char *)(void *)f;
  const char *b = extra ? extra[1] : NULL;
  bool indirect = strcmp(name, "table_axpy") == 0;
  if (strncmp(name, "axpy", 4) && !indirect) return;
  float *y = *(float **)(b ? b : p[0]), *x = *(float **)(b ? b + 8 : p[1]);
  if (indirect) x = ((float **)(void *)y)[2], y = *(float **)(void *)y;
  float a = *(float *)(b ? b + 16 : p[2]);
  int n = *(int *)(b ? b + 20 : p[3]);
  for (int i = 0; i < n; i++) y[i] += a * x[i];
}

void fake_run(CUfunction f, void **params) { run(f, params, NULL); }

CUresult cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz,
                        unsigned bx, unsigned by, unsigned bz, unsigned smem,
                        CUstream s, void **p, void **extra) {
  const unsigned grid[3] = {gx, gy, gz}, block[3] = {bx, by, bz};
  if (fake_capture(f, grid, block, smem, p)) return 0;
  return (void)s, run(f, p, extra), 0;
}
CUresult cuLaunchKernel_ptsz(CUfunction f, unsigned gx, unsigned gy,
                             unsigned gz, unsigned bx, unsigned by, unsigned bz,
                             unsigned smem, CUstream s, void **p,
                             void **extra) {
  return cuLaunchKernel(f, gx, gy, gz, bx, by, bz, smem, s, p, extra);
}
CUresult cuLaunchCooperativeKernel(CUfunction f, unsigned gx, unsigned gy,
                                   unsigned gz, unsigned bx, unsigned by,
                                   unsigned bz, unsigned smem, CUstream s,
                                   void **p) {
  return cuLaunchKernel(f, gx, gy, gz, bx, by, bz, smem, s, p, NULL);
}
CUresult cuLaunchKernelEx(const CUlaunchConfig *c, CUfunction f, void **p,
                          void **extra) {
  return (void)c, run(f, p, extra), 0;
}

// Finds functions as a driver does: returns the newest variant of a name.
CUresult cuGetProcAddress_v2(const char *name, void **p, int version,
                             unsigned long long flags, int *status) {
  char variant[128];
  void *self = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  (void)version;
  snprintf(variant, sizeof variant, "%s%s", name, flags & 2 ? "_ptsz" : "_v2");
  *p = dlsym(self, variant);
  if (!*p) *p = dlsym(self, name);
  if (status) *status = *p ? 0 : 1;
  return *p ? 0 : 500;
}
CUresult cuGetProcAddress(const char *name, void **p, int version,
                          unsigned long long flags) {
  return cuGetProcAddress_v2(name, p, version, flags, NULL);
}
// SPDX-License-Identifier: MIT
