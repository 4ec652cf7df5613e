// A CUDA driver that has no GPU: memory is the host's, and it knows three
// kernels by name. Specs build it as libcuda.so.1 to see, without a GPU, that
// every handle is given back once, that a dead context is replaced, and what
// is said when a call fails.
//   axpy(float *y, const float *x, float a, int n, long long shift)
//   bad...()  makes the context fail as an illegal address does
//   refused() cannot be launched
// Any other kernel does nothing. Between two events lie 2 ms, and one for each
// element of an axpy.
//   FAKE_LOST  no other context after a fault
//   FAKE_FAIL  "cuMemcpyHtoD_v2 2": the second call of that function fails
// Built with FAKE_CLUSTERS it is one of sm_90.
//   FAKE_SAY   buffers and copies are told on standard error
// At the end of the process it writes what is still held, if anything.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/cudaapi.h"

typedef struct Handle {
  struct Handle *next;
  int context;  // number of the context it belongs to
  char kind, name[31];
  char data[];
} Handle;

static Handle *handles;
static int context, retained, sticky;
static long work;  // elements of all axpy so far
static int lost;  // with FAKE_LOST set: the error for the rest of the process

// Every function that can fail begins so.
#define CALLED(f) if (sticky || fails(#f)) return sticky ? sticky : 999

static int fails(const char *name) {
  static int left = -1;
  const char *which = getenv("FAKE_FAIL");
  size_t n = strlen(name);
  if (!which || strncmp(which, name, n) != 0 || which[n] != ' ') return 0;
  if (left < 0) left = atoi(which + n);
  return --left == 0;
}

static void say(const char *what, size_t n) {
  if (getenv("FAKE_SAY")) fprintf(stderr, "%s %zu\n", what, n);
}

static void *make(char kind, size_t size) {
  Handle *h = calloc(1, sizeof *h + size);
  h->kind = kind;
  h->context = context;
  h->next = handles;
  handles = h;
  return h->data;
}

static Handle *find(const void *p) {
  for (Handle *h = handles; h; h = h->next)
    if (h->data == (const char *)p) return h;
  fprintf(stderr, "fakecuda: a handle that is none\n");
  exit(9);
}

static CUresult drop(const void *p, char kind) {
  for (Handle **h = &handles; *h; h = &(*h)->next) {
    if ((*h)->data != (const char *)p || (*h)->kind != kind) continue;
    Handle *dead = *h;
    *h = dead->next;
    free(dead);
    return CUDA_SUCCESS;
  }
  fprintf(stderr, "fakecuda: freed a handle that is none\n");
  exit(9);
}

__attribute__((destructor)) static void report(void) {
  for (Handle *h = handles; h; h = h->next)
    fprintf(stderr, "fakecuda: still held: %c\n", h->kind);
  if (retained) fprintf(stderr, "fakecuda: context still held\n");
}

CUresult cuInit(unsigned f) { return f ? 1 : 0; }
CUresult cuDriverGetVersion(int *v) { return *v = 11040, 0; }
CUresult cuDeviceGetCount(int *n) { return *n = 1, 0; }
CUresult cuDeviceGet(CUdevice *d, int i) { return *d = i, 0; }
CUresult cuDeviceGetName(char *s, int n, CUdevice d) {
  (void)d;
  return snprintf(s, (size_t)n, "Fake"), 0;
}
CUresult cuDeviceGetAttribute(int *v, CUdevice_attribute a, CUdevice d) {
  (void)d;
#ifdef FAKE_CLUSTERS
  if (a == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) return *v = 9, 0;
  if (a == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT) return *v = 108, 0;
#endif
  *v = a == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR ? 8
     : a == CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN ? 166912
     : 0;
  return 0;
}
CUresult cuDeviceTotalMem_v2(size_t *n, CUdevice d) {
  return (void)d, *n = 1 << 20, 0;
}
CUresult cuDevicePrimaryCtxRetain(CUcontext *c, CUdevice d) {
  (void)d;
  if (lost) return lost;
  retained++;
  *c = (CUcontext)(uintptr_t)++context;
  return 0;
}
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice d) {
  return (void)d, retained--, 0;
}
CUresult cuDevicePrimaryCtxReset_v2(CUdevice d) {
  (void)d;
  if (getenv("FAKE_LOST")) lost = sticky;
  sticky = 0;
  while (handles) drop(handles->data, handles->kind);
  return 0;
}
CUresult cuCtxSetCurrent(CUcontext c) { return (void)c, 0; }
CUresult cuCtxSynchronize(void) { CALLED(cuCtxSynchronize); return 0; }
CUresult cuGetErrorName(CUresult r, const char **s) {
  *s = r == 700 ? "CUDA_ERROR_ILLEGAL_ADDRESS"
     : r == 2 ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR_OTHER";
  return 0;
}
CUresult cuGetErrorString(CUresult r, const char **s) {
  return (void)r, *s = "in words", 0;
}
CUresult cuMemGetInfo_v2(size_t *a, size_t *b) {
  return *a = *b = 1 << 20, 0;
}
CUresult cuMemAlloc_v2(CUdeviceptr *p, size_t n) {
  size_t held = n;
  CALLED(cuMemAlloc_v2);
  for (Handle *h = handles; h; h = h->next)
    if (h->kind == 'm') held += (size_t)atol(h->name);
  if (held > 1 << 20) return CUDA_ERROR_OUT_OF_MEMORY;
  char *m = make('m', n);
  say("buffer", n);
  snprintf(find(m)->name, 31, "%zu", n);
  *p = (CUdeviceptr)(uintptr_t)m;
  return 0;
}
CUresult cuMemFree_v2(CUdeviceptr p) { return drop((void *)p, 'm'); }
CUresult cuMemcpyHtoD_v2(CUdeviceptr d, const void *s, size_t n) {
  CALLED(cuMemcpyHtoD_v2);
  say("upload", n);
  return memcpy((void *)d, s, n), 0;
}
CUresult cuMemcpyDtoH_v2(void *d, CUdeviceptr s, size_t n) {
  CALLED(cuMemcpyDtoH_v2);
  say("download", n);
  return memcpy(d, (void *)s, n), 0;
}
CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr d, CUdeviceptr s, size_t n,
                              CUstream t) {
  CALLED(cuMemcpyDtoDAsync_v2);
  return (void)t, memcpy((void *)d, (void *)s, n), 0;
}
CUresult cuMemsetD8Async(CUdeviceptr d, unsigned char c, size_t n,
                         CUstream s) {
  CALLED(cuMemsetD8Async);
  return (void)s, memset((void *)d, c, n), 0;
}
CUresult cuMemsetD16Async(void) { return 1; }
CUresult cuMemsetD32Async(void) { return 1; }
CUresult cuStreamCreate(CUstream *s, unsigned f) {
  return (void)f, *s = make('s', 1), 0;
}
CUresult cuStreamDestroy_v2(CUstream s) { return drop(s, 's'); }
CUresult cuStreamSynchronize(CUstream s) {
  CALLED(cuStreamSynchronize);
  return find(s), 0;
}
CUresult cuStreamWaitEvent(CUstream s, CUevent e, unsigned f) {
  return (void)s, (void)e, (void)f, 0;
}
CUresult cuEventCreate(CUevent *e, unsigned f) {
  return (void)f, *e = make('e', sizeof work), 0;
}
CUresult cuEventDestroy_v2(CUevent e) { return drop(e, 'e'); }
CUresult cuEventRecord(CUevent e, CUstream s) {
  CALLED(cuEventRecord);
  if (s) find(s);
  find(e);
  memcpy(e, &work, sizeof work);
  return 0;
}
CUresult cuEventSynchronize(CUevent e) {
  CALLED(cuEventSynchronize);
  return find(e), 0;
}
CUresult cuEventElapsedTime(float *ms, CUevent a, CUevent b) {
  long from, to;
  CALLED(cuEventElapsedTime);
  find(a), find(b);
  memcpy(&from, a, sizeof from);
  memcpy(&to, b, sizeof to);
  return *ms = 2 + (float)(to - from), 0;
}
CUresult cuModuleLoadData(CUmodule *m, const void *p) {
  CALLED(cuModuleLoadData);
  return (void)p, *m = make('M', 1), 0;
}
CUresult cuModuleUnload(CUmodule m) { return drop(m, 'M'); }
CUresult cuModuleGetFunction(CUfunction *f, CUmodule m, const char *name) {
  Handle *h = find(m);
  if (strcmp(name, "none") == 0) return 500;
  snprintf(h->name, sizeof h->name, "%s", name);
  return *f = (CUfunction)m, 0;
}
CUresult cuFuncGetAttribute(int *v, CUfunction_attribute a, CUfunction f) {
  return find(f), *v = a == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK ? 512
                     : 0, 0;
}
CUresult cuFuncSetAttribute(CUfunction f, CUfunction_attribute a, int v) {
  return find(f), (void)a, fprintf(stderr, "opt in %d\n", v), 0;
}
CUresult cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz,
                        unsigned bx, unsigned by, unsigned bz, unsigned smem,
                        CUstream s, void **p, void **extra) {
  (void)gx, (void)gy, (void)gz, (void)bx, (void)by, (void)bz, (void)smem;
  (void)extra;
  CALLED(cuLaunchKernel);
  if (s) find(s);
  const char *name = find(f)->name;
  if (strcmp(name, "refused") == 0) return 701;
  if (strncmp(name, "bad", 3) == 0)
    return sticky = CUDA_ERROR_ILLEGAL_ADDRESS, 0;
  if (strcmp(name, "axpy") != 0) return 0;
  work += *(int *)p[3];
  float *y = *(float **)p[0];
  const float *x = *(float **)p[1];
  for (int i = 0; i < *(int *)p[3]; i++)
    y[i] = *(float *)p[2] * x[i] + (float)*(long long *)p[4];
  return 0;
}

#ifdef FAKE_CLUSTERS
// Tells what it was asked for; a multiprocessor holds a block, but none of 256
// threads in a cluster.
static int blocks(const CUlaunchConfig *c) {
  int n = 1;
  for (unsigned i = 0; i < c->numAttrs; i++)
    if (c->attrs[i].id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
      n = (int)(c->attrs[i].value.clusterDim.x *
                c->attrs[i].value.clusterDim.y *
                c->attrs[i].value.clusterDim.z);
  return n;
}
CUresult cuLaunchKernelEx(const CUlaunchConfig *c, CUfunction f, void **p,
                          void **extra) {
  if (c->blockDimX == 256) return CUDA_ERROR_INVALID_CLUSTER_SIZE;
  fprintf(stderr, "%s: grid %u %u %u, clusters of %d%s\n", find(f)->name,
          c->gridDimX, c->gridDimY, c->gridDimZ, blocks(c),
          c->attrs[c->numAttrs - 1].id ==
            CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
            ? ", pdl" : "");
  return (void)p, (void)extra, 0;
}
CUresult cuOccupancyMaxActiveClusters(int *n, CUfunction f,
                                      const CUlaunchConfig *c) {
  int sms = 0;
  cuDeviceGetAttribute(&sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0);
  return find(f), *n = sms / blocks(c), 0;
}
#endif
