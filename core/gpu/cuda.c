// Calls the CUDA driver: a GPU's context, streams, events, modules and
// launches.
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/dl.h"
#include "gpu/inside.h"
#include "gpu/known.h"
#include "base/signals.h"

// ---- errors ----

static bool sticky(CUresult r) {
  switch (r) {
    case CUDA_ERROR_ECC_UNCORRECTABLE: case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT: case CUDA_ERROR_CONTEXT_IS_DESTROYED:
    case CUDA_ERROR_ASSERT: case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION: case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE: case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
      return true;
    default:
      return false;
  }
}

// Marks all objects and memory of the context as lost, because the caller or
// the driver destroys the context.
static void forget(Gpu *g) {
  g->epoch++;
  g->ctx = NULL;
  g->blas = NULL;
  g->lt = NULL;
  g->fence = NULL;
  g->capture = NULL;
  g->now = NULL;
  memset(g->stream, 0, sizeof g->stream);
  pool_forget(g);
}

// Destroys a context that an error made unusable, with all its objects.
// Incrementing g's epoch marks the objects as closed.
static void drop_context(Gpu *g) {
  g->nran = 0;
  forget(g);
  g->api->cuCtxSetCurrent(NULL);
  g->api->cuDevicePrimaryCtxRelease_v2(g->dev);
  g->api->cuDevicePrimaryCtxReset_v2(g->dev);
}

enum { RAN = sizeof ((Gpu *)0)->ran / sizeof *((Gpu *)0)->ran };

// Returns the index of kernel `who` in g->ran, or g->nran if the kernel is not
// in g->ran.
static int find_ran(const Gpu *g, const char *who) {
  int k = 0;
  while (k < g->nran && k < RAN &&
         strncmp(g->ran[k].who, who, sizeof g->ran[k].who - 1) != 0)
    k++;
  return k < RAN ? k : g->nran;
}

bool gpu_ran(const Gpu *g, const char *who) {
  return !g->capture && (g->nran > RAN || find_ran(g, who) < g->nran);
}

void gpu_runs(Gpu *g, const char *who, const char *at, long times) {
  if (g->capture) {
    graph_runs(g->capture, who);
    return;
  }
  int k = find_ran(g, who);
  if (k == g->nran && g->nran <= RAN) {
    if (k < RAN) {
      snprintf(g->ran[k].who, sizeof g->ran[k].who, "%s", who);
      snprintf(g->ran[k].at, sizeof g->ran[k].at, "%s", at ? at : "");
      g->ran[k].times = 0;
    }
    g->nran++;
  }
  if (k < RAN) g->ran[k].times += times;
}

// Writes the kernels that may have caused an error: "kernel add (x.lua:3) or
// kernel mul (first at x.lua:4, 7 launches)", or "" if none ran.
static void culprits(const Gpu *g, char *out, size_t size) {
  size_t n = 0;
  *out = '\0';
  for (int k = 0; k < g->nran && n < size; k++) {
    const char *join = k ? " or " : "";
    const char *who = k < RAN ? g->ran[k].who : "another";
    const char *at = k < RAN ? g->ran[k].at : "";
    long times = k < RAN ? g->ran[k].times : 1;
    n += (size_t)(times > 1
      ? snprintf(out + n, size - n, "%s%s (%s%s%s%ld launches)", join, who,
                 *at ? "first at " : "", at, *at ? ", " : "", times)
      : snprintf(out + n, size - n, "%s%s%s%s%s", join, who, *at ? " (" : "",
                 at, *at ? ")" : ""));
  }
}

bool gpu_check(Gpu *g, CUresult r, const char *what, Why *w) {
  if (r == CUDA_SUCCESS) return true;
  const char *name = NULL, *text = NULL;
  g->api->cuGetErrorName(r, &name);
  g->api->cuGetErrorString(r, &text);
  if (!name) name = "unknown error";
  if (!text) text = "?";
  const char *v = strstr(what, "_v2");
  int n = (int)(v ? v - what : (ptrdiff_t)strlen(what));
  if (!sticky(r) || !g->ctx)
    return why(w, r == CUDA_ERROR_OUT_OF_MEMORY ? ERR_MEMORY : ERR_DRIVER,
               "%.*s: %s (%s)", n, what, name, text);
  char who[520];
  culprits(g, who, sizeof who);
  snprintf(g->lost, sizeof g->lost, "%.500s failed with %.90s",
           *who ? who : "something", name);
  why(w, ERR_DRIVER, "%s%s%.*s: %s (%s); the context was destroyed and its "
      "buffers are closed", who, *who ? ": " : "", n, what, name, text);
  drop_context(g);
  return false;
}

// ---- device and context ----

static int attribute(Gpu *g, CUdevice_attribute a) {
  int v = 0;
  g->api->cuDeviceGetAttribute(&v, a, g->dev);
  return v;
}

static bool no_gpu(Gpu *g, CUresult r, const char *what, Why *w) {
  if (gpu_check(g, r, what, w)) return true;
  if (w) w->kind = ERR_NOGPU;
  return false;
}

// Initializes the driver, and sets g's device and properties.
static bool find(Gpu *g, Why *w) {
  const CudaApi *api = g->api;
  int count = 0;
  if (!no_gpu(g, api->cuInit(0), "cuInit", w) ||
      !no_gpu(g, api->cuDeviceGetCount(&count), "cuDeviceGetCount", w))
    return false;
  if (g->ordinal >= count)
    return why(w, ERR_NOGPU, "there is no GPU number %d (%d found)", g->ordinal,
               count);
  if (!no_gpu(g, api->cuDeviceGet(&g->dev, g->ordinal), "cuDeviceGet", w))
    return false;
  api->cuDeviceGetName(g->name, (int)sizeof g->name, g->dev);
  api->cuDeviceTotalMem_v2(&g->memory, g->dev);
  g->major = attribute(g, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  g->minor = attribute(g, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  g->sms = attribute(g, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  g->l2 = attribute(g, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
  g->khz = attribute(g, CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
  g->smem_optin =
    attribute(g, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
  g->found = true;
  return true;
}

// Finds the device, unless this has been done. Fails if the device differs from
// the record whose properties this process has used so far.
static bool settle(Gpu *g, Why *w) {
  if (g->found) return true;
  Gpu now = *g;
  if (!find(&now, w)) {
    known_remove(g);
    return false;
  }
  g->dev = now.dev;
  if (!known_same(&now, g)) {
    known_remove(g);
    return why(w, ERR_DRIVER, "GPU %d is a %s of %d multiprocessors and %zu "
               "MiB, but an earlier process found a %s of %d multiprocessors "
               "and %zu MiB: run the program again", g->ordinal, now.name,
               now.sms, now.memory >> 20, g->name, g->sms, g->memory >> 20);
  }
  g->found = true;
  return true;
}

static bool init_held(Gpu *g, int ordinal, Why *w) {
  memset(g, 0, sizeof *g);
  g->api = dl_cuda(w);
  if (!g->api) return false;
  g->ordinal = ordinal;
  g->api->cuDriverGetVersion(&g->driver);
  if (known_read(g)) return true;
  if (find(g, w)) {
    known_write(g);
    return true;
  }
  g->api = NULL;
  return false;
}

bool gpu_init(Gpu *g, int ordinal, Why *w) {
  SigHold hold;  // Block signals, because the threads that the driver starts
                 // must not receive them.
  signals_hold(&hold);
  bool ok = init_held(g, ordinal, w);
  signals_release(&hold);
  return ok;
}

// ---- creating a context in a thread ----

typedef struct GpuEarly {
  const CudaApi *api;
  int ordinal;
  pthread_t thread;
  CUcontext ctx;
  CUresult result;
} GpuEarly;

// Number of threads that are creating a context. The process must not exit
// while one of them runs, because the driver's own exit functions would destroy
// objects that the thread uses.
static int creating;
static pthread_mutex_t early_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t early_end = PTHREAD_COND_INITIALIZER;
static pthread_once_t early_once = PTHREAD_ONCE_INIT;

static void wait_for_threads(void) {
  pthread_mutex_lock(&early_lock);
  while (creating) pthread_cond_wait(&early_end, &early_lock);
  pthread_mutex_unlock(&early_lock);
}

static void wait_at_exit(void) { atexit(wait_for_threads); }

static void count_threads(int n) {
  pthread_mutex_lock(&early_lock);
  creating += n;
  pthread_cond_broadcast(&early_end);
  pthread_mutex_unlock(&early_lock);
}

static void *create(void *p) {
  GpuEarly *e = p;
  CUdevice dev = 0;
  e->result = e->api->cuInit(0);
  if (!e->result) e->result = e->api->cuDeviceGet(&dev, e->ordinal);
  if (!e->result) e->result = e->api->cuDevicePrimaryCtxRetain(&e->ctx, dev);
  count_threads(-1);
  return NULL;
}

void gpu_begin(Gpu *g) {
  if (g->ctx || g->early || g->epoch) return;
  GpuEarly *e = base_realloc(NULL, sizeof *e);
  if (!e) return;
  *e = (GpuEarly){.api = g->api, .ordinal = g->ordinal};
  pthread_once(&early_once, wait_at_exit);
  SigHold hold;
  signals_hold(&hold);
  count_threads(1);
  if (pthread_create(&e->thread, NULL, create, e) == 0) {
    g->early = e;
  } else {
    count_threads(-1);
    base_free(e);
  }
  signals_release(&hold);
}

// Creates a context, or waits for the thread that creates it.
static CUresult retain(Gpu *g, CUcontext *c) {
  GpuEarly *e = g->early;
  if (!e) return g->api->cuDevicePrimaryCtxRetain(c, g->dev);
  pthread_join(e->thread, NULL);
  CUresult r = e->result;
  *c = e->ctx;
  g->early = NULL;
  base_free(e);
  return r;
}

// Makes g's context current, and creates it if necessary. After a kernel's
// error, many drivers cannot create another context in this process, and return
// the same error again.
bool gpu_use(Gpu *g, Why *w) {
  CUcontext c = NULL;
  // The context is current, unless another GPU was used in the meantime.
  if (g->ctx) {
    g->api->cuCtxGetCurrent(&c);
    return c == g->ctx || CU(cuCtxSetCurrent, (g->ctx));
  }
  SigHold hold;
  signals_hold(&hold);
  bool found = settle(g, w);
  CUresult r = found || g->early ? retain(g, &c) : CUDA_SUCCESS;
  signals_release(&hold);
  if (!found) {
    if (c) g->api->cuDevicePrimaryCtxRelease_v2(g->dev);
    return false;
  }
  if (g->epoch && sticky(r))
    return why(w, ERR_DRIVER, "%s and the driver no longer lets this process "
               "use the GPU: start a new process (the simulator still works in "
               "this one)",
               g->lost);
  if (!gpu_check(g, r, "cuDevicePrimaryCtxRetain", w)) return false;
  if (!CU(cuCtxSetCurrent, (c))) {
    g->api->cuDevicePrimaryCtxRelease_v2(g->dev);
    return false;
  }
  g->ctx = c;
  return true;
}

void gpu_close(Gpu *g) {
  if (!g->api) return;
  Why w;
  if (g->early) gpu_use(g, &w);
  if (g->ctx) {
    size_t bytes;
    g->capture = NULL;
    if (gpu_use(g, &w)) pool_trim(g, &bytes, &w);
  }
  if (g->ctx) {
    if (g->fence) g->api->cuEventDestroy_v2(g->fence);
    if (g->blas) g->blas_api->cublasDestroy_v2(g->blas);
    if (g->lt) g->lt_api->cublasLtDestroy(g->lt);
    g->api->cuCtxSetCurrent(NULL);
    g->api->cuDevicePrimaryCtxRelease_v2(g->dev);
  }
  forget(g);
  pool_close(g);
}

bool gpu_waits(const Gpu *g, const char *what, Why *w) {
  return (!g->capture && !g->captured) ||
         why(w, ERR_CAPTURE, "%s waits for the GPU, which runs nothing while "
             "a graph is captured", what);
}

bool gpu_sync(Gpu *g, Why *w) {
  if (!gpu_waits(g, "sync", w) || !gpu_use(g, w) ||
      !CU(cuCtxSynchronize, ()))
    return false;
  g->nran = 0;
  g->syncs++;
  return true;
}

bool gpu_free_memory(Gpu *g, size_t *left, Why *w) {
  size_t total;
  return gpu_use(g, w) && CU(cuMemGetInfo_v2, (left, &total));
}

bool gpu_usable(const GpuOwned *o, const char *what, Why *w) {
  if (o->closed) return why(w, ERR_CLOSED, "the %s was closed", what);
  if (gpu_owns(o)) return true;
  return why(w, ERR_CLOSED, "the %s was lost with its context: %s", what,
             *o->gpu->lost ? o->gpu->lost : "the GPU was closed");
}

bool gpu_disown(GpuOwned *o) {
  bool held = gpu_owns(o);
  o->closed = true;
  return held;
}

// ---- streams and events ----

bool gpustream_of(Gpu *g, const GpuStream *s, CUstream *out, Why *w) {
  if (!s) s = g->now;
  *out = s ? s->s : NULL;
  if (s && (!gpu_usable(&s->own, "stream", w))) return false;
  if (s && s->own.gpu != g)
    return why(w, ERR_LAUNCH, "the stream belongs to GPU %d, but its work is "
               "on GPU %d", s->own.gpu->ordinal, g->ordinal);
  return !g->capture || graph_takes(g->capture, s, w);
}

// Returns the smallest stream number from 1 on that is free, or 0 if all
// numbers are taken.
static int free_number(const Gpu *g, Why *w) {
  enum { MOST = sizeof g->stream / sizeof *g->stream };
  int k = 1;
  while (k < MOST && g->stream[k]) k++;
  if (k < MOST) return k;
  why(w, ERR_LIMIT, "%d streams are open: close some", MOST - 1);
  return 0;
}

bool gpustream_new(GpuStream *s, Gpu *g, unsigned flags, Why *w) {
  CUstream h;
  int k = free_number(g, w);
  if (!k || !gpu_use(g, w) || !CU(cuStreamCreate, (&h, flags))) return false;
  *s = (GpuStream){.own = {g, g->epoch, false}, .s = h, .number = k};
  g->stream[k] = s;
  return true;
}

bool gpustream_foreign(GpuStream *s, Gpu *g, CUstream h, Why *w) {
  int k = free_number(g, w);
  if (!k || !gpu_use(g, w)) return false;
  *s = (GpuStream){.own = {g, g->epoch, false}, .s = h, .number = k,
                   .foreign = true};
  g->stream[k] = s;
  return true;
}

void gpustream_close(GpuStream *s) {
  Gpu *g = s->own.gpu;
  Why w;
  if (!gpu_disown(&s->own) || !gpu_use(g, &w)) return;
  if (!g->capture || !graph_has(g->capture, s)) gpustream_end(s);
}

void gpustream_end(GpuStream *s) {
  Gpu *g = s->own.gpu;
  // A new stream may get the number of s, so the work of s must end first. For
  // a foreign stream, waits for the whole context, because its owner may have
  // destroyed the stream.
  if (s->foreign) g->api->cuCtxSynchronize();
  else if (g->api->cuStreamQuery(s->s) != CUDA_SUCCESS)
    g->api->cuStreamSynchronize(s->s);
  if (!s->foreign) g->api->cuStreamDestroy_v2(s->s);
  g->stream[s->number] = NULL;
  if (g->now == s) g->now = NULL;
}

bool gpustream_follow(Gpu *g, CUstream s, CUstream other, Why *w) {
  if (!g->fence && !CU(cuEventCreate, (&g->fence, CU_EVENT_DISABLE_TIMING)))
    return false;
  return CU(cuEventRecord, (g->fence, other)) &&
         CU(cuStreamWaitEvent, (s, g->fence, 0));
}

bool gpustream_wait(GpuStream *s, GpuStream *other, Why *w) {
  Gpu *g = other->own.gpu;
  CUstream of;
  return gpu_usable(&s->own, "stream", w) && gpu_use(g, w) &&
         gpustream_of(g, other, &of, w) && gpustream_follow(g, s->s, of, w);
}

bool gpustream_sync(GpuStream *s, Why *w) {
  Gpu *g = s->own.gpu;
  return gpu_usable(&s->own, "stream", w) && gpu_waits(g, "sync", w) &&
         gpu_use(g, w) && CU(cuStreamSynchronize, (s->s));
}

// Sets *out to whether work has completed, given the result r of the driver's
// query `what`.
static bool done(Gpu *g, CUresult r, const char *what, bool *out, Why *w) {
  *out = r == CUDA_SUCCESS;
  return r == CUDA_ERROR_NOT_READY || gpu_check(g, r, what, w);
}

bool gpustream_done(GpuStream *s, bool *out, Why *w) {
  Gpu *g = s->own.gpu;
  return gpu_usable(&s->own, "stream", w) && gpu_waits(g, "done", w) &&
         gpu_use(g, w) &&
         done(g, g->api->cuStreamQuery(s->s), "cuStreamQuery", out, w);
}

bool gpuevent_new(GpuEvent *e, Gpu *g, Why *w) {
  CUevent h;
  if (!gpu_use(g, w) || !CU(cuEventCreate, (&h, 0))) return false;
  *e = (GpuEvent){.own = {g, g->epoch, false}, .e = h};
  return true;
}

void gpuevent_close(GpuEvent *e) {
  if (gpu_disown(&e->own)) e->own.gpu->api->cuEventDestroy_v2(e->e);
}

static bool event_usable(const GpuEvent *e, Why *w) {
  return gpu_usable(&e->own, "event", w) && gpu_use(e->own.gpu, w);
}

bool gpuevent_record(GpuEvent *e, const GpuStream *s, Why *w) {
  Gpu *g = e->own.gpu;
  CUstream on;
  return event_usable(e, w) && gpustream_of(g, s, &on, w) &&
         CU(cuEventRecord, (e->e, on));
}

// Makes a stream wait for an event. In a capture, this adds the stream to the
// graph.
bool gpuevent_wait(GpuEvent *e, const GpuStream *s, Why *w) {
  Gpu *g = s ? s->own.gpu : e->own.gpu;
  if (!s) s = g->now;
  return gpu_usable(&e->own, "event", w) &&
         (!s || gpu_usable(&s->own, "stream", w)) && gpu_use(g, w) &&
         CU(cuStreamWaitEvent, (s ? s->s : NULL, e->e, 0));
}

bool gpuevent_sync(GpuEvent *e, Why *w) {
  Gpu *g = e->own.gpu;
  return event_usable(e, w) && gpu_waits(g, "sync", w) &&
         CU(cuEventSynchronize, (e->e));
}

bool gpuevent_done(GpuEvent *e, bool *out, Why *w) {
  Gpu *g = e->own.gpu;
  return event_usable(e, w) && gpu_waits(g, "done", w) &&
         done(g, g->api->cuEventQuery(e->e), "cuEventQuery", out, w);
}

bool gpuevent_elapsed(GpuEvent *from, GpuEvent *to, double *ms, Why *w) {
  Gpu *g = from->own.gpu;
  float f = 0;
  if (!event_usable(to, w) || !event_usable(from, w) ||
      !gpu_waits(g, "elapsed", w) ||
      !CU(cuEventElapsedTime, (&f, from->e, to->e)))
    return false;
  *ms = (double)f;
  return true;
}

// ---- modules ----

static int fn_attribute(const GpuFn *f, CUfunction_attribute a) {
  int v = -1;
  f->own.gpu->api->cuFuncGetAttribute(&v, a, f->fn);
  return v;
}

// Compiles PTX by the driver. The message of a failure contains the first line
// of the driver's log.
static bool load_ptx(Gpu *g, CUmodule *mod, const char *ptx, int level,
                     Why *w) {
  char log[512] = "";
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER,
                            CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
                            CU_JIT_OPTIMIZATION_LEVEL};
  void *values[] = {log, (void *)(uintptr_t)(sizeof log - 1),
                    (void *)(uintptr_t)level};
  if (!g->api->cuModuleLoadDataEx) return CU(cuModuleLoadData, (mod, ptx));
  CUresult r = g->api->cuModuleLoadDataEx(mod, ptx, 3, options, values);
  log[strcspn(log, "\n")] = 0;
  if (r == CUDA_SUCCESS || !*log)
    return gpu_check(g, r, "cuModuleLoadDataEx", w);
  return why(w, ERR_COMPILE, "the driver rejects the PTX: %s", log);
}

static bool load_held(Gpu *g, CUmodule *mod, const void *image, int level,
                      Why *w) {
  SigHold hold;
  signals_hold(&hold);
  bool ptx = strncmp(image, ".version", 8) == 0;
  bool ok = ptx ? load_ptx(g, mod, image, level, w)
          : CU(cuModuleLoadData, (mod, image));
  signals_release(&hold);
  return ok;
}

bool gpufn_load(GpuFn *f, Gpu *g, const void *cubin, const char *name,
                int level, Why *w) {
  CUmodule mod;
  CUfunction fn;
  if (!gpu_use(g, w) || !load_held(g, &mod, cubin, level, w)) return false;
  if (!CU(cuModuleGetFunction, (&fn, mod, name))) {
    if (g->ctx) g->api->cuModuleUnload(mod);
    return false;
  }
  *f = (GpuFn){.own = {g, g->epoch, false}, .mod = mod, .fn = fn,
               .nparam = -1};
  snprintf(f->name, sizeof f->name, "kernel %s", name);
  f->registers = fn_attribute(f, CU_FUNC_ATTRIBUTE_NUM_REGS);
  f->local = fn_attribute(f, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES);
  f->smem_static = fn_attribute(f, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
  f->constant = fn_attribute(f, CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES);
  f->max_threads = fn_attribute(f, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  f->binary = fn_attribute(f, CU_FUNC_ATTRIBUTE_BINARY_VERSION);
  f->smem_dynamic = 48 * 1024 - f->smem_static;
  return true;
}

void gpufn_close(GpuFn *f) {
  if (gpu_disown(&f->own)) f->own.gpu->api->cuModuleUnload(f->mod);
}

bool gpufn_variable(const GpuFn *f, const char *name, uint64_t *ptr,
                    size_t *bytes, Why *w) {
  Gpu *g = f->own.gpu;
  CUdeviceptr at;
  if (!gpu_usable(&f->own, "loaded kernel", w) || !gpu_use(g, w)) return false;
  if (!g->api->cuModuleGetGlobal_v2)
    return why(w, ERR_NOGPU, "this driver has no cuModuleGetGlobal");
  if (!CU(cuModuleGetGlobal_v2, (&at, bytes, f->mod, name))) return false;
  *ptr = at;
  return true;
}

int gpufn_param(const GpuFn *f, int k) {
  const CudaApi *api = f->own.gpu->api;
  size_t offset, size;
  if (!api->cuFuncGetParamInfo) return -1;
  if (f->nparam >= 0 && k >= f->nparam) return 0;
  CUresult r = api->cuFuncGetParamInfo(f->fn, (size_t)k, &offset, &size);
  return r == CUDA_SUCCESS ? (int)size : 0;
}

// ---- launches ----

static unsigned volume(const unsigned v[3]) { return v[0] * v[1] * v[2]; }

// Reports whether the launch has attributes, so that it needs cuLaunchKernelEx.
static bool extended(const GpuLaunch *l) {
  return volume(l->cluster) > 1 || l->pdl || l->cooperative;
}

bool gpulaunch_prepare(GpuLaunch *l, Why *w) {
  GpuFn *f = l->fn;
  Gpu *g = f->own.gpu;
  if (!gpu_usable(&f->own, "kernel", w) || !gpu_use(g, w)) return false;
  if (volume(l->block) > (unsigned)f->max_threads)
    return why(w, ERR_LAUNCH, "%u threads a block, but the kernel can have "
               "at most %d", volume(l->block), f->max_threads);
  if ((int)l->smem + f->smem_static > g->smem_optin)
    return why(w, ERR_SMEM, "%u bytes of dynamic and %d of static shared "
               "memory, but a block on %s has at most %d",
               l->smem, f->smem_static, g->name, g->smem_optin);
  if (extended(l) && !g->api->cuLaunchKernelEx)
    return why(w, ERR_DRIVER, "this driver cannot launch clusters");
  if (volume(l->cluster) > 8 &&
      !CU(cuFuncSetAttribute,
          (f->fn, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1)))
    return false;
  if ((int)l->smem <= f->smem_dynamic) return true;
  if (!CU(cuFuncSetAttribute,
          (f->fn, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
           (int)l->smem)))
    return false;
  f->smem_dynamic = (int)l->smem;
  return true;
}

enum { ATTRIBUTES = 3 };

// Returns a launch's configuration for the driver, with its attributes in `a`.
// With `all`, the attribute for the cluster size is set even if the launch has
// no clusters.
static CUlaunchConfig config_of(const GpuLaunch *l, CUstream s, bool all,
                                CUlaunchAttribute a[ATTRIBUTES]) {
  unsigned n = 0;
  memset(a, 0, ATTRIBUTES * sizeof *a);
  if (all || volume(l->cluster) > 1) {
    a[n].id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    a[n].value.clusterDim.x = l->cluster[0];
    a[n].value.clusterDim.y = l->cluster[1];
    a[n++].value.clusterDim.z = l->cluster[2];
  }
  if (l->pdl) {
    a[n].id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
    a[n++].value.programmaticStreamSerializationAllowed = 1;
  }
  if (l->cooperative) {
    a[n].id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
    a[n++].value.cooperative = 1;
  }
  return (CUlaunchConfig){l->grid[0], l->grid[1], l->grid[2], l->block[0],
                          l->block[1], l->block[2], l->smem, s, a, n};
}

static CUresult launch_ex(const GpuLaunch *l, CUstream s) {
  CUlaunchAttribute a[ATTRIBUTES];
  CUlaunchConfig c = config_of(l, s, false, a);
  return l->fn->own.gpu->api->cuLaunchKernelEx(&c, l->fn->fn, l->params, NULL);
}

bool gpulaunch_clusters(const GpuLaunch *l, int *n, Why *w) {
  GpuFn *f = l->fn;
  Gpu *g = f->own.gpu;
  CUlaunchAttribute a[ATTRIBUTES];
  CUlaunchConfig c = config_of(l, NULL, true, a);
  if (!gpu_usable(&f->own, "kernel", w)) return false;
  if (!g->api->cuOccupancyMaxActiveClusters)
    return why(w, ERR_DRIVER, "this driver does not support clusters");
  return CU(cuOccupancyMaxActiveClusters, (n, f->fn, &c));
}

// Stores in w the reason why the driver did not start a launch. Returns false.
static bool refused(const GpuLaunch *l, CUresult r, bool ex, Why *w) {
  const GpuFn *f = l->fn;
  Why plain;
  if (r == CUDA_ERROR_INVALID_CLUSTER_SIZE)
    return why(w, ERR_LAUNCH, "%s: %s has no room for a cluster of %u blocks "
               "of %u threads with %u bytes of shared memory each", f->name,
               f->own.gpu->name, volume(l->cluster), volume(l->block),
               l->smem + (unsigned)f->smem_static);
  if (r == CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE)
    return why(w, ERR_LAUNCH, "%s: a cooperative grid of %u blocks, of %u "
               "threads with %u bytes of shared memory each, is more than %s "
               "runs at once\n  let each block do more", f->name,
               volume(l->grid), volume(l->block),
               l->smem + (unsigned)f->smem_static, f->own.gpu->name);
  // Begin the message with this kernel's name, except after a sticky error: the
  // message of gpu_check then names all kernels that may have caused it.
  bool one = !sticky(r);
  gpu_check(f->own.gpu, r, ex ? "cuLaunchKernelEx" : "cuLaunchKernel", &plain);
  return why(w, plain.kind, "%s%s%s", one ? f->name : "", one ? ": " : "",
             plain.msg);
}

bool gpulaunch_run(const GpuLaunch *l, int n, Why *w) {
  GpuFn *f = l->fn;
  Gpu *g = f->own.gpu;
  CUstream s;
  if (!gpu_usable(&f->own, "kernel", w) || !gpu_use(g, w) ||
      !gpustream_of(g, l->stream, &s, w))
    return false;
  if (!l->grid[0] || !l->grid[1] || !l->grid[2]) return true;  // no blocks
  for (int i = 0; i < l->nbufs; i++)
    if (!devbuf_work(l->bufs[i], l->stream, w)) return false;
  bool ex = extended(l);
  if (n > 0) gpu_runs(g, f->name, NULL, n);
  for (int i = 0; i < n; i++) {
    CUresult r = ex ? launch_ex(l, s)
      : g->api->cuLaunchKernel(f->fn, l->grid[0], l->grid[1], l->grid[2],
                               l->block[0], l->block[1], l->block[2], l->smem,
                               s, l->params, NULL);
    if (r != CUDA_SUCCESS) return refused(l, r, ex, w);
  }
  return true;
}
// SPDX-License-Identifier: MIT
