// A substitute for the CUDA driver (dry.h): handles are numbers, and kernels do
// nothing.
#define _GNU_SOURCE
#include "gpu/dry.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

// Device memory is host memory, whose pages are zero and take no space until
// data is copied to them.
typedef struct Block {
  struct Block *next;
  char *p;
  size_t n;
} Block;

static struct {
  int sm, sms, smem;
  int capturing;
  uintptr_t handles;  // number of handles that were created
  size_t held;        // bytes of device memory in use
  long launches;  // number of launches, plus that of copies within the device
  CUcontext current;
  Block *blocks;
  char name[100];
} dry;

enum { INVALID = 1 };  // CUDA_ERROR_INVALID_VALUE
static const size_t MEMORY = (size_t)80 << 30;

static void *handle(void) { return (void *)(++dry.handles << 4); }

// ---- device ----

static CUresult init(unsigned flags) {
  (void)flags;
  return CUDA_SUCCESS;
}
static CUresult version(int *v) { return *v = 13000, CUDA_SUCCESS; }
static CUresult count(int *n) { return *n = 1, CUDA_SUCCESS; }
static CUresult get(CUdevice *d, int i) { return *d = i, CUDA_SUCCESS; }
static CUresult name(char *s, int n, CUdevice d) {
  (void)d;
  snprintf(s, (size_t)n, "%s", dry.name);
  return CUDA_SUCCESS;
}
static CUresult attribute(int *v, CUdevice_attribute a, CUdevice d) {
  (void)d;
  *v = a == CU_DEVICE_ATTRIBUTE_CLOCK_RATE ? 1980000
     : a == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT ? dry.sms
     : a == CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE ? 50 << 20
     : a == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR ? dry.sm / 10
     : a == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR ? dry.sm % 10
     : a == CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN ? dry.smem
     : 0;
  return CUDA_SUCCESS;
}
static CUresult total(size_t *n, CUdevice d) {
  (void)d;
  return *n = MEMORY, CUDA_SUCCESS;
}
static CUresult retain(CUcontext *c, CUdevice d) {
  (void)d;
  return *c = handle(), CUDA_SUCCESS;
}
static CUresult on_device(CUdevice d) { return (void)d, CUDA_SUCCESS; }
static CUresult set_current(CUcontext c) {
  return dry.current = c, CUDA_SUCCESS;
}
static CUresult get_current(CUcontext *c) {
  return *c = dry.current, CUDA_SUCCESS;
}
static CUresult nothing(void) { return CUDA_SUCCESS; }
static CUresult error_name(CUresult r, const char **s) {
  *s = r == CUDA_ERROR_OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY"
                                     : "CUDA_ERROR_INVALID_VALUE";
  return CUDA_SUCCESS;
}
static CUresult error_string(CUresult r, const char **s) {
  (void)r;
  return *s = "without a GPU", CUDA_SUCCESS;
}

// ---- memory ----

static CUresult info(size_t *left, size_t *all) {
  *all = MEMORY;
  *left = MEMORY - dry.held;
  return CUDA_SUCCESS;
}
static CUresult allocate(CUdeviceptr *p, size_t n) {
  Block *b = n && n <= MEMORY - dry.held ? malloc(sizeof *b) : NULL;
  if (!b) return CUDA_ERROR_OUT_OF_MEMORY;
  void *m = mmap(NULL, n, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (m == MAP_FAILED) {
    free(b);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  *b = (Block){dry.blocks, m, n};
  dry.blocks = b;
  dry.held += n;
  return *p = (CUdeviceptr)(uintptr_t)m, CUDA_SUCCESS;
}
static CUresult release(CUdeviceptr p) {
  for (Block **at = &dry.blocks; *at; at = &(*at)->next) {
    Block *b = *at;
    if ((CUdeviceptr)(uintptr_t)b->p != p) continue;
    *at = b->next;
    dry.held -= b->n;
    munmap(b->p, b->n);
    free(b);
    return CUDA_SUCCESS;
  }
  return INVALID;
}
static void *host(CUdeviceptr p) { return (void *)(uintptr_t)p; }
static CUresult upload(CUdeviceptr d, const void *s, size_t n) {
  return memcpy(host(d), s, n), CUDA_SUCCESS;
}
static CUresult download(void *d, CUdeviceptr s, size_t n) {
  return memcpy(d, host(s), n), CUDA_SUCCESS;
}
static CUresult upload_on(CUdeviceptr d, const void *s, size_t n, CUstream on) {
  return (void)on, upload(d, s, n);
}
static CUresult download_on(void *d, CUdeviceptr s, size_t n, CUstream on) {
  return (void)on, download(d, s, n);
}
// Copies up to 16 MiB within the device's memory. Skips larger copies, which
// would take too long in programs that measure copies.
static CUresult copy_on(CUdeviceptr d, CUdeviceptr s, size_t n, CUstream on) {
  (void)on;
  dry.launches++;
  if (n <= (size_t)16 << 20) memmove(host(d), host(s), n);
  return CUDA_SUCCESS;
}
static CUresult peer(CUdeviceptr d, CUcontext to, CUdeviceptr s,
                     CUcontext from, size_t n, CUstream on) {
  return (void)to, (void)from, copy_on(d, s, n, on);
}
static CUresult pin(void *p, size_t n, unsigned flags) {
  return (void)p, (void)n, (void)flags, CUDA_SUCCESS;
}
static CUresult unpin(void *p) { return (void)p, CUDA_SUCCESS; }

// Does nothing: a fill would make the host allocate the pages, and no kernel
// reads them.
static CUresult fill8(CUdeviceptr d, unsigned char v, size_t n, CUstream on) {
  return (void)d, (void)v, (void)n, (void)on, CUDA_SUCCESS;
}
static CUresult fill16(CUdeviceptr d, unsigned short v, size_t n, CUstream on) {
  return (void)d, (void)v, (void)n, (void)on, CUDA_SUCCESS;
}
static CUresult fill32(CUdeviceptr d, unsigned v, size_t n, CUstream on) {
  return (void)d, (void)v, (void)n, (void)on, CUDA_SUCCESS;
}
static CUresult fill2d(CUdeviceptr d, size_t pitch, unsigned v, size_t w,
                       size_t h, CUstream on) {
  return (void)d, (void)pitch, (void)v, (void)w, (void)h, (void)on,
         CUDA_SUCCESS;
}

// ---- streams, events, graphs ----

static CUresult new_stream(CUstream *s, unsigned flags) {
  return (void)flags, *s = handle(), CUDA_SUCCESS;
}
static CUresult with_stream(CUstream s) { return (void)s, CUDA_SUCCESS; }
static CUresult wait_event(CUstream s, CUevent e, unsigned flags) {
  return (void)s, (void)e, (void)flags, CUDA_SUCCESS;
}

// Simulated time advances by 10 milliseconds with each launch. A script's loop
// that waits until some GPU time has passed therefore ends soon.
static CUresult new_event(CUevent *e, unsigned flags) {
  (void)flags;
  *e = calloc(1, sizeof(long));
  return *e ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}
static CUresult end_event(CUevent e) { return free(e), CUDA_SUCCESS; }
static CUresult with_event(CUevent e) { return (void)e, CUDA_SUCCESS; }
static CUresult record(CUevent e, CUstream s) {
  (void)s;
  return *(long *)(void *)e = dry.launches, CUDA_SUCCESS;
}
static CUresult elapsed(float *ms, CUevent from, CUevent to) {
  long n = *(long *)(void *)to - *(long *)(void *)from;
  return *ms = 0.001f + 10.0f * (float)n, CUDA_SUCCESS;
}
static CUresult begin(CUstream s, CUstreamCaptureMode mode) {
  return (void)s, (void)mode, dry.capturing = 1, CUDA_SUCCESS;
}
static CUresult end(CUstream s, CUgraph *g) {
  return (void)s, dry.capturing = 0, *g = handle(), CUDA_SUCCESS;
}
static CUresult is_capturing(CUstream s, CUstreamCaptureStatus *status) {
  (void)s;
  *status = dry.capturing ? CU_STREAM_CAPTURE_STATUS_ACTIVE
                          : CU_STREAM_CAPTURE_STATUS_NONE;
  return CUDA_SUCCESS;
}
static CUresult instantiate(CUgraphExec *x, CUgraph g, unsigned long long f) {
  return (void)g, (void)f, *x = handle(), CUDA_SUCCESS;
}
static CUresult nodes(CUgraph g, CUgraphNode *list, size_t *n) {
  return (void)g, (void)list, *n = 1, CUDA_SUCCESS;
}
static CUresult launch_graph(CUgraphExec x, CUstream s) {
  return (void)x, (void)s, dry.launches++, CUDA_SUCCESS;
}
static CUresult with_graph(CUgraph g) { return (void)g, CUDA_SUCCESS; }
static CUresult with_exec(CUgraphExec x) { return (void)x, CUDA_SUCCESS; }

// ---- kernels ----

static CUresult load(CUmodule *m, const void *cubin) {
  return (void)cubin, *m = handle(), CUDA_SUCCESS;
}
static CUresult unload(CUmodule m) { return (void)m, CUDA_SUCCESS; }
static CUresult function(CUfunction *f, CUmodule m, const char *s) {
  return (void)m, (void)s, *f = handle(), CUDA_SUCCESS;
}
static CUresult get_attribute(int *v, CUfunction_attribute a, CUfunction f) {
  (void)f;
  *v = a == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK ? 1024
     : a == CU_FUNC_ATTRIBUTE_NUM_REGS ? 32
     : a == CU_FUNC_ATTRIBUTE_BINARY_VERSION ? dry.sm : 0;
  return CUDA_SUCCESS;
}
static CUresult set_attribute(CUfunction f, CUfunction_attribute a, int v) {
  return (void)f, (void)a, (void)v, CUDA_SUCCESS;
}
static CUresult launch(CUfunction f, unsigned gx, unsigned gy, unsigned gz,
                       unsigned bx, unsigned by, unsigned bz, unsigned smem,
                       CUstream s, void **p, void **extra) {
  (void)gx, (void)gy, (void)gz, (void)bx, (void)by, (void)bz, (void)smem;
  return (void)f, (void)s, (void)p, (void)extra, dry.launches++, CUDA_SUCCESS;
}
static CUresult launch_ex(const CUlaunchConfig *c, CUfunction f, void **p,
                          void **extra) {
  return (void)c, (void)f, (void)p, (void)extra, dry.launches++, CUDA_SUCCESS;
}
static CUresult clusters(int *n, CUfunction f, const CUlaunchConfig *c) {
  unsigned size = 1;
  for (unsigned i = 0; i < c->numAttrs; i++)
    if (c->attrs[i].id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
      size = c->attrs[i].value.clusterDim.x * c->attrs[i].value.clusterDim.y *
             c->attrs[i].value.clusterDim.z;
  (void)f;
  return *n = dry.sms / (int)(size ? size : 1), CUDA_SUCCESS;
}

const CudaApi *dry_driver(int sm, int sms, int smem_kb, const char *own) {
  static const CudaApi api = {
    .cuInit = init, .cuDriverGetVersion = version, .cuDeviceGetCount = count,
    .cuDeviceGet = get, .cuDeviceGetName = name,
    .cuDeviceGetAttribute = attribute, .cuDeviceTotalMem_v2 = total,
    .cuDevicePrimaryCtxRetain = retain,
    .cuDevicePrimaryCtxRelease_v2 = on_device,
    .cuDevicePrimaryCtxReset_v2 = on_device, .cuCtxSetCurrent = set_current,
    .cuCtxGetCurrent = get_current, .cuCtxSynchronize = nothing,
    .cuGetErrorName = error_name, .cuGetErrorString = error_string,
    .cuMemGetInfo_v2 = info, .cuMemAlloc_v2 = allocate,
    .cuMemFree_v2 = release, .cuMemcpyHtoD_v2 = upload,
    .cuMemcpyDtoH_v2 = download, .cuMemcpyHtoDAsync_v2 = upload_on,
    .cuMemcpyDtoHAsync_v2 = download_on, .cuMemcpyPeerAsync = peer,
    .cuMemHostRegister_v2 = pin, .cuMemHostUnregister = unpin,
    .cuMemcpyDtoDAsync_v2 = copy_on, .cuMemsetD8Async = fill8,
    .cuMemsetD16Async = fill16, .cuMemsetD32Async = fill32,
    .cuMemsetD2D32Async = fill2d, .cuStreamCreate = new_stream,
    .cuStreamDestroy_v2 = with_stream, .cuStreamSynchronize = with_stream,
    .cuStreamWaitEvent = wait_event, .cuStreamQuery = with_stream,
    .cuEventCreate = new_event, .cuEventDestroy_v2 = end_event,
    .cuEventRecord = record, .cuEventSynchronize = with_event,
    .cuEventQuery = with_event, .cuEventElapsedTime = elapsed,
    .cuModuleLoadData = load, .cuModuleUnload = unload,
    .cuModuleGetFunction = function, .cuFuncGetAttribute = get_attribute,
    .cuFuncSetAttribute = set_attribute, .cuLaunchKernel = launch,
    .cuLaunchKernelEx = launch_ex, .cuOccupancyMaxActiveClusters = clusters,
    .cuStreamBeginCapture_v2 = begin, .cuStreamEndCapture = end,
    .cuStreamIsCapturing = is_capturing,
    .cuGraphInstantiateWithFlags = instantiate, .cuGraphGetNodes = nodes,
    .cuGraphLaunch = launch_graph, .cuGraphDestroy = with_graph,
    .cuGraphExecDestroy = with_exec};
  dry.sm = sm;
  dry.sms = sms;
  dry.smem = smem_kb * 1024;
  if (own) snprintf(dry.name, sizeof dry.name, "%s", own);
  else snprintf(dry.name, sizeof dry.name, "a GPU that is absent (sm_%d)", sm);
  return &api;
}
// SPDX-License-Identifier: MIT
