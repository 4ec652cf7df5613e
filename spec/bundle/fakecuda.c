// A CUDA driver without a GPU that records launches, for specs of bundles. Built
// with LUA_SIDE, it is the driver of spec/gpu/fakecuda.c, for Lua programs;
// without, it is a small driver of its own, which many threads may call.
//
// FAKE_LOG names a file to which each launch appends a line: the kernel, grid,
// block, shared memory, attributes, and the bytes of all parameters, whose sizes
// come from the cubin. Addresses in the nth memory that the host wrote to are
// written as <mN+offset>, in other memory as <m+offset>.
//   FAKE_CC  compute capability, 90 if absent
//   FAKE_SMS  number of multiprocessors
//   FAKE_OLD  the driver lacks cuCtxGetId and cuLaunchKernelEx
//   FAKE_ONE  misuse.c makes one call only
//   FAKE_COUNT  prints the numbers of modules and launches at the end
//   FAKE_LOADS  number of modules for which there is memory
//   FAKE_SLOW  loading a module takes a millisecond, which reveals races
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifdef LUA_SIDE
#define FAKE_CLUSTERS
#define cuModuleLoadData base_ModuleLoadData
#define cuFuncSetAttribute base_FuncSetAttribute
#define cuFuncGetAttribute base_FuncGetAttribute
#define cuLaunchKernel base_LaunchKernel
#define cuLaunchKernelEx base_LaunchKernelEx
#define cuMemAlloc_v2 base_MemAlloc
#define cuMemcpyHtoD_v2 base_MemcpyHtoD
#include "../gpu/fakecuda.c"
#undef cuModuleLoadData
#undef cuFuncSetAttribute
#undef cuFuncGetAttribute
#undef cuLaunchKernel
#undef cuLaunchKernelEx
#undef cuMemAlloc_v2
#undef cuMemcpyHtoD_v2
#else
#include "gpu/cudaapi.h"
#endif

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

// ---- cubins ----

enum { MOST = 64 };

// A kernel of a module. The section .nv.info.NAME of the cubin gives the sizes
// of its parameters.
typedef struct Kernel {
  char name[64];
  int n, size[MOST];
  // function of the same name in the base driver, which this one calls
  void *base;
  int module, smem;
} Kernel;

static Kernel kernels[4096];
static int nkernels;

static unsigned long long word(const unsigned char *p, int n) {
  unsigned long long v = 0;
  for (int i = n; i-- > 0;) v = v << 8 | p[i];
  return v;
}

static void read_info(Kernel *k, const unsigned char *p, size_t n) {
  for (size_t at = 0; at + 4 <= n;) {
    int format = p[at], kind = p[at + 1];
    size_t size = format == 4 ? (size_t)word(p + at + 2, 2) : 0;
    const unsigned char *d = p + at + 4;
    if (format == 4 && kind == 0x17 && size == 12) {
      int nth = (int)word(d + 4, 2);
      if (nth >= MOST) abort();
      k->size[nth] = (int)(word(d + 8, 4) >> 18);
      if (nth >= k->n) k->n = nth + 1;
    }
    at += 4 + size;
  }
}

// Adds the kernels of a cubin as kernels of module number `module`. Returns 0
// if the data are no cubin.
static int read_cubin(const unsigned char *p, int module) {
  if (memcmp(p, "\177ELF\2", 5)) return 0;
  const unsigned char *table = p + word(p + 40, 8);
  size_t each = (size_t)word(p + 58, 2), count = (size_t)word(p + 60, 2);
  const unsigned char *names = table + each * (size_t)word(p + 62, 2);
  const char *text = (const char *)p + word(names + 24, 8);
  for (size_t i = 0; i < count; i++) {
    const unsigned char *s = table + i * each;
    const char *name = text + word(s, 4);
    if (strncmp(name, ".nv.info.", 9)) continue;
    Kernel *k = &kernels[nkernels++];
    memset(k, 0, sizeof *k);
    k->module = module;
    snprintf(k->name, sizeof k->name, "%s", name + 9);
    read_info(k, p + word(s + 24, 8), (size_t)word(s + 32, 8));
  }
  return 1;
}

// ---- memory ----

typedef struct Memory {
  unsigned long long at;
  size_t n;
  int written;  // allocation number N of <mN+offset> in the log, or 0
} Memory;

static Memory memory[1 << 16];
static int nmemory, nwritten;

static Memory *memory_of(unsigned long long at) {
  for (int i = nmemory; i-- > 0;)
    if (memory[i].n && at >= memory[i].at && at < memory[i].at + memory[i].n)
      return &memory[i];
  return NULL;
}

static void note_write(unsigned long long at) {
  Memory *m = memory_of(at);
  if (m && !m->written) m->written = ++nwritten;
}

// ---- launches ----

static void log_value(FILE *f, const unsigned char *p, int size) {
  for (int i = 0; i < size; i += 8) {
    int n = size - i < 8 ? size - i : 8;
    unsigned long long v = word(p + i, n);
    const Memory *m = n == 8 ? memory_of(v) : NULL;
    fputc(i ? '.' : ' ', f);
    if (m && m->written) fprintf(f, "<m%d+%llu>", m->written, v - m->at);
    else if (m) fprintf(f, "<m+%llu>", v - m->at);
    else fprintf(f, "%llx", v);
  }
}

static void log_launch(const Kernel *k, const CUlaunchConfig *c, void **p) {
  const char *name = getenv("FAKE_LOG");
  if (!name) return;
  FILE *f = fopen(name, "a");
  if (!f) abort();
  fprintf(f, "%s grid %u %u %u block %u %u %u smem %u", k->name, c->gridDimX,
          c->gridDimY, c->gridDimZ, c->blockDimX, c->blockDimY, c->blockDimZ,
          c->sharedMemBytes);
  for (unsigned i = 0; i < c->numAttrs; i++) {
    const CUlaunchAttribute *a = &c->attrs[i];
    if (a->id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
      fprintf(f, " cluster %u %u %u", a->value.clusterDim.x,
              a->value.clusterDim.y, a->value.clusterDim.z);
    else
      fprintf(f, " attribute %d=%d", a->id, a->value.cooperative);
  }
  fprintf(f, " parameters");
  for (int i = 0; i < k->n; i++)
    log_value(f, (const unsigned char *)p[i], k->size[i]);
  fputc('\n', f);
  fclose(f);
}

static CUlaunchConfig config(unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                             unsigned by, unsigned bz, unsigned smem,
                             CUstream s) {
  return (CUlaunchConfig){gx, gy, gz, bx, by, bz, smem, s, NULL, 0};
}

#ifdef LUA_SIDE

CUresult cuMemAlloc_v2(CUdeviceptr *p, size_t n) {
  CUresult r = base_MemAlloc(p, n);
  if (!r) memory[nmemory++] = (Memory){*p, n, 0};
  return r;
}
CUresult cuMemcpyHtoD_v2(CUdeviceptr d, const void *s, size_t n) {
  note_write(d);
  return base_MemcpyHtoD(d, s, n);
}
CUresult cuModuleLoadData(CUmodule *m, const void *p) {
  int first = nkernels;
  CUresult r = base_ModuleLoadData(m, p);
  if (r || !read_cubin(p, 0)) return r ? r : 200;
  for (int i = first; i < nkernels; i++) kernels[i].base = *m;
  return 0;
}
static Kernel *kernel_of(CUfunction f) {
  for (int i = nkernels; i-- > 0;)
    if (kernels[i].base == (void *)f) return &kernels[i];
  abort();
}
CUresult cuFuncGetAttribute(int *v, CUfunction_attribute a, CUfunction f) {
  (void)f;
  return *v = a == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK ? 1024 : 0, 0;
}
CUresult cuFuncSetAttribute(CUfunction f, CUfunction_attribute a, int v) {
  return (void)f, (void)a, (void)v, 0;
}
CUresult cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz,
                        unsigned bx, unsigned by, unsigned bz, unsigned smem,
                        CUstream s, void **p, void **extra) {
  CUlaunchConfig c = config(gx, gy, gz, bx, by, bz, smem, s);
  (void)extra;
  log_launch(kernel_of(f), &c, p);
  return 0;
}
CUresult cuLaunchKernelEx(const CUlaunchConfig *c, CUfunction f, void **p,
                          void **extra) {
  (void)extra;
  log_launch(kernel_of(f), c, p);
  return 0;
}

#else

// ---- a driver of its own ----

#include "base/tensormap.h"

typedef struct Context {
  unsigned long long id;
  int alive;
} Context;

static Context contexts[1024];
static unsigned long long newest;
static int modules;
static _Thread_local Context *current;

// Counts that the driver prints at exit for FAKE_COUNT.
static int loads, unloads, launched;

static int is_context(const void *c) {
  return c && (const Context *)c >= contexts &&
         (const Context *)c < contexts + 1024 && ((const Context *)c)->alive;
}

typedef struct Stream {
  Context *context;
  unsigned long long id;
} Stream;

static int sms(void);

CUresult cuInit(unsigned f) { return f ? 1 : 0; }
CUresult cuDriverGetVersion(int *v) { return *v = 13000, 0; }
CUresult cuDeviceGetCount(int *n) { return *n = 1, 0; }
CUresult cuDeviceGet(CUdevice *d, int i) { return *d = i, 0; }
CUresult cuDeviceGetAttribute(int *v, CUdevice_attribute a, CUdevice d) {
  const char *s = getenv("FAKE_CC");
  int cc = s ? atoi(s) : 90;
  (void)d;
  *v = a == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR ? cc / 10
     : a == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR ? cc % 10
     : a == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT ? sms()
     : a == CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN
         ? (cc >= 90 ? 232448 : cc == 80 ? 166912 : 101376)
     : 0;
  return 0;
}

// Creates a context, at the lowest free address.
CUresult cuDevicePrimaryCtxRetain(CUcontext *c, CUdevice d) {
  (void)d;
  pthread_mutex_lock(&lock);
  int i = 0;
  while (contexts[i].alive) i++;
  contexts[i].alive = 1;
  contexts[i].id = ++newest;
  *c = (CUcontext)(void *)&contexts[i];
  pthread_mutex_unlock(&lock);
  return 0;
}
CUresult cuCtxSetCurrent(CUcontext c) {
  if (c && !is_context(c)) return 201;
  current = (Context *)(void *)c;
  return 0;
}
// Destroys the only device's context, which is the current one.
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice d) {
  (void)d;
  pthread_mutex_lock(&lock);
  if (current) current->alive = 0;
  pthread_mutex_unlock(&lock);
  return 0;
}
CUresult cuCtxGetCurrent(CUcontext *c) {
  *c = (CUcontext)(void *)current;
  return 0;
}
#ifndef FAKE_OLD
CUresult cuCtxGetId(CUcontext c, unsigned long long *id) {
  pthread_mutex_lock(&lock);
  int ok = is_context(c);
  if (ok) *id = ((Context *)(void *)c)->id;
  pthread_mutex_unlock(&lock);
  return ok ? 0 : 709;
}
#endif
CUresult cuCtxGetDevice(CUdevice *d) {
  return is_context(current) ? (*d = 0, 0) : 201;
}
CUresult cuCtxSynchronize(void) { return 0; }
CUresult cuGetErrorName(CUresult r, const char **s) {
  *s = r == 1 ? "CUDA_ERROR_INVALID_VALUE" : r == 201
    ? "CUDA_ERROR_INVALID_CONTEXT" : r == 400 ? "CUDA_ERROR_INVALID_HANDLE"
    : r == 709 ? "CUDA_ERROR_CONTEXT_IS_DESTROYED" : "CUDA_ERROR_FAKE";
  return 0;
}
CUresult cuGetErrorString(CUresult r, const char **s) {
  return (void)r, *s = "an error of the fake driver", 0;
}

CUresult cuMemAlloc_v2(CUdeviceptr *p, size_t n) {
  void *m = aligned_alloc(256, (n + 255) / 256 * 256);
  pthread_mutex_lock(&lock);
  if (nmemory == 1 << 16) abort();
  memory[nmemory++] = (Memory){(unsigned long long)(uintptr_t)m, n, 0};
  pthread_mutex_unlock(&lock);
  return *p = (CUdeviceptr)(uintptr_t)m, 0;
}
CUresult cuMemFree_v2(CUdeviceptr p) {
  pthread_mutex_lock(&lock);
  Memory *m = memory_of(p);
  if (!m || m->at != p) abort();
  m->n = 0;
  pthread_mutex_unlock(&lock);
  free((void *)(uintptr_t)p);
  return 0;
}
CUresult cuMemcpyHtoD_v2(CUdeviceptr d, const void *s, size_t n) {
  pthread_mutex_lock(&lock);
  note_write(d);
  pthread_mutex_unlock(&lock);
  memcpy((void *)(uintptr_t)d, s, n);
  return 0;
}
CUresult cuMemcpyDtoH_v2(void *d, CUdeviceptr s, size_t n) {
  memcpy(d, (void *)(uintptr_t)s, n);
  return 0;
}
// Memory with an odd number of bytes belongs to GPU 1, other memory to GPU 0.
CUresult cuPointerGetAttribute(void *out, int a, CUdeviceptr p) {
  pthread_mutex_lock(&lock);
  const Memory *m = memory_of(p);
  if (m && a == 9) *(int *)out = (int)(m->n & 1);
  pthread_mutex_unlock(&lock);
  return m && a == 9 ? 0 : 1;
}
CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *n, CUdeviceptr p) {
  pthread_mutex_lock(&lock);
  const Memory *m = memory_of(p);
  if (m) *base = m->at, *n = m->n;
  pthread_mutex_unlock(&lock);
  return m ? 0 : 1;
}
CUresult cuMemsetD8Async(CUdeviceptr d, unsigned char c, size_t n,
                         CUstream s) {
  (void)s;
  memset((void *)(uintptr_t)d, c, n);
  return 0;
}

CUresult cuStreamCreate(CUstream *s, unsigned f) {
  Stream *x = malloc(sizeof *x);
  (void)f;
  *x = (Stream){current, current->id};
  return *s = (CUstream)(void *)x, 0;
}
CUresult cuStreamDestroy_v2(CUstream s) { return free((void *)s), 0; }
CUresult cuStreamSynchronize(CUstream s) { return (void)s, 0; }

CUresult cuModuleLoadData(CUmodule *m, const void *p) {
  if (getenv("FAKE_SLOW")) {
    struct timespec t = {0, 1000000};
    nanosleep(&t, NULL);
  }
  const char *most = getenv("FAKE_LOADS");
  pthread_mutex_lock(&lock);
  if (most && loads == atoi(most)) {
    pthread_mutex_unlock(&lock);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  loads++;
  int ok = read_cubin(p, ++modules);
  *m = (CUmodule)(uintptr_t)modules;
  pthread_mutex_unlock(&lock);
  return ok ? 0 : 200;
}
CUresult cuModuleUnload(CUmodule m) {
  pthread_mutex_lock(&lock);
  unloads++;
  for (int i = 0; i < nkernels; i++)
    if (kernels[i].module == (int)(uintptr_t)m) kernels[i].module = -1;
  pthread_mutex_unlock(&lock);
  return 0;
}
CUresult cuModuleGetFunction(CUfunction *f, CUmodule m, const char *name) {
  pthread_mutex_lock(&lock);
  CUresult r = 500;
  for (int i = 0; i < nkernels; i++)
    if (kernels[i].module == (int)(uintptr_t)m && !strcmp(kernels[i].name, name))
      *f = (CUfunction)(void *)&kernels[i], r = 0;
  pthread_mutex_unlock(&lock);
  return r;
}
CUresult cuFuncGetAttribute(int *v, CUfunction_attribute a, CUfunction f) {
  return (void)a, (void)f, *v = 0, 0;
}
CUresult cuFuncSetAttribute(CUfunction f, CUfunction_attribute a, int v) {
  pthread_mutex_lock(&lock);
  if (a == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)
    ((Kernel *)(void *)f)->smem = v;
  pthread_mutex_unlock(&lock);
  return 0;
}

static CUresult launch(const CUlaunchConfig *c, CUfunction f, void **p) {
  const Stream *s = (const Stream *)(const void *)c->hStream;
  pthread_mutex_lock(&lock);
  const Kernel *k = (const Kernel *)(const void *)f;
  // Only the kernel `axpy` is executed. Its parameters are (x, n, y, n, a), or
  // (x, y, a) for 256 elements.
  int runs = strcmp(k->name, "axpy") == 0;
  int ok = k->module > 0 && is_context(current) &&
           (!s || (is_context(s->context) && s->context->id == s->id));
  int fits = c->sharedMemBytes <= 49152 || (int)c->sharedMemBytes <= k->smem;
  if (ok && fits) launched++, log_launch(k, c, p);
  pthread_mutex_unlock(&lock);
  if (ok && fits && runs) {
    int any = k->n == 5, n = any ? *(int *)p[1] : 256;
    const float *x = *(const float **)p[0];
    float *y = *(float **)p[any ? 2 : 1], a = *(float *)p[any ? 4 : 2];
    for (int i = 0; i < n; i++) y[i] = a * x[i] + y[i];
  }
  return !ok ? 400 : fits ? 0 : 1;
}
CUresult cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz,
                        unsigned bx, unsigned by, unsigned bz, unsigned smem,
                        CUstream s, void **p, void **extra) {
  CUlaunchConfig c = config(gx, gy, gz, bx, by, bz, smem, s);
  return (void)extra, launch(&c, f, p);
}
#ifndef FAKE_OLD
CUresult cuLaunchKernelEx(const CUlaunchConfig *c, CUfunction f, void **p,
                          void **extra) {
  return (void)extra, launch(c, f, p);
}
#endif
// Returns the number of multiprocessors: FAKE_SMS, or 132. Each holds one
// block.
static int sms(void) {
  const char *s = getenv("FAKE_SMS");
  return s ? atoi(s) : 132;
}
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *n, CUfunction f,
                                                     int threads, size_t smem) {
  return (void)f, (void)threads, (void)smem, *n = 1, 0;
}
CUresult cuOccupancyMaxActiveClusters(int *n, CUfunction f,
                                      const CUlaunchConfig *c) {
  (void)f;
  const CUlaunchAttribute *a = c->attrs;
  *n = sms() / (int)(a->value.clusterDim.x * a->value.clusterDim.y *
                     a->value.clusterDim.z);
  return 0;
}
CUresult cuTensorMapEncodeTiled(CUtensorMap *out, CUtensorMapDataType type,
                                cuuint32_t rank, void *at,
                                const cuuint64_t *extent,
                                const cuuint64_t *stride,
                                const cuuint32_t *box, const cuuint32_t *step,
                                CUtensorMapInterleave interleave,
                                CUtensorMapSwizzle swizzle,
                                CUtensorMapL2promotion l2,
                                CUtensorMapFloatOOBfill fill) {
  TensorMap m;
  Why why;
  memset(&m, 0, sizeof m);
  m.type = type, m.rank = rank, m.address = (uint64_t)(uintptr_t)at;
  m.interleave = interleave, m.swizzle = swizzle, m.l2 = l2, m.fill = fill;
  for (int i = 0; i < TENSORMAP_RANK; i++) m.step[i] = 1;
  for (cuuint32_t i = 0; i < rank; i++) {
    m.extent[i] = (int64_t)extent[i];
    if (i + 1 < rank) m.stride[i] = (int64_t)stride[i];
    m.box[i] = box[i], m.step[i] = step[i];
  }
  if (!tensormap_check(&m, &why)) return 1;
  tensormap_encode(&m, out->opaque);
  return 0;
}

CUresult cuTensorMapEncodeIm2col(CUtensorMap *out, CUtensorMapDataType type,
                                 cuuint32_t rank, void *at,
                                 const cuuint64_t *extent,
                                 const cuuint64_t *stride, const int *lower,
                                 const int *upper, cuuint32_t channels,
                                 cuuint32_t pixels, const cuuint32_t *step,
                                 CUtensorMapInterleave interleave,
                                 CUtensorMapSwizzle swizzle,
                                 CUtensorMapL2promotion l2,
                                 CUtensorMapFloatOOBfill fill) {
  TensorMap m;
  Why why;
  memset(&m, 0, sizeof m);
  m.im2col = true;
  m.type = type, m.rank = rank, m.address = (uint64_t)(uintptr_t)at;
  m.interleave = interleave, m.swizzle = swizzle, m.l2 = l2, m.fill = fill;
  m.channels = channels, m.pixels = pixels;
  for (int i = 0; i < TENSORMAP_RANK; i++) m.step[i] = 1;
  for (cuuint32_t i = 0; i < rank; i++) {
    m.extent[i] = (int64_t)extent[i];
    if (i + 1 < rank) m.stride[i] = (int64_t)stride[i];
    if (i + 2 < rank) m.lower[i] = lower[i], m.upper[i] = upper[i];
    m.step[i] = step[i];
  }
  if (!tensormap_check(&m, &why)) return 1;
  tensormap_encode(&m, out->opaque);
  return 0;
}

__attribute__((destructor)) static void report(void) {
  if (getenv("FAKE_COUNT"))
    fprintf(stderr, "loads %d, unloads %d, launches %d\n", loads, unloads,
            launched);
}
#endif
// SPDX-License-Identifier: MIT
