// One GPU through the CUDA driver: context, streams, events, modules,
// launches. Every function that takes a Why returns false when the driver
// refused, with the driver's own name of the error.
//
// After an error that leaves the context unusable (an illegal address, say)
// the context is destroyed and `epoch` goes up; whatever belonged to it counts
// as closed from then on, and the next use makes a new context. An error of a
// kernel comes with a later call: the message names the kernels that may have
// made it.
#ifndef CUTE_CUDA_H
#define CUTE_CUDA_H

#include "gpu/cudaapi.h"
#include "base/dtype.h"

typedef struct Gpu {
  const CudaApi *api;  // NULL before gpu_init succeeded
  const CublasApi *blas_api;
  const CublasLtApi *lt_api;
  int ordinal, driver;      // driver version, 13000 for CUDA 13.0
  int major, minor, sms;    // compute capability, multiprocessors
  int smem_optin, l2, khz;  // bytes, bytes, clock
  size_t memory;
  char name[128];
  CUdevice dev;
  CUcontext ctx;  // NULL: made on next use
  unsigned epoch;
  // Who ran since the host last waited for all of it: of these one is at
  // fault when the driver tells of an error. And what killed the last context.
  struct {
    char who[96], at[64];  // at: of the first of its launches; "": not known
    long times;
  } ran[4];
  int nran;  // one more than ran holds: and others
  char lost[640];
  struct GpuPool *pool;          // memory.c; NULL: nothing allocated yet
  size_t since;  // bytes asked for since garbage was last looked for
  struct GpuStream *stream[64];  // by number; those that are open
  const struct GpuStream *now;   // where work goes that names none; or NULL
  struct GpuGraph *capture;      // that takes what would run; or NULL
  CUevent fence;                 // NULL: made when first needed
  unsigned syncs;                // times that all its work was waited for
  cublasHandle_t blas;  // NULL: made on next use; dies with the context
  cublasLtHandle_t lt;
} Gpu;

bool gpu_init(Gpu *g, int ordinal, Why *w);  // finds driver and device
bool gpu_use(Gpu *g, Why *w);    // makes the context, and current
void gpu_close(Gpu *g);
bool gpu_sync(Gpu *g, Why *w);
bool gpu_free_memory(Gpu *g, size_t *left, Why *w);
// `who` ("kernel add") begins to run, so many times, from a script's line `at`
// ("x.lua:3"; NULL: none). gpu_ran: is it known already?
void gpu_runs(Gpu *g, const char *who, const char *at, long times);
bool gpu_ran(const Gpu *g, const char *who);

// What all that belongs to a context begins with: it is closed by its owner,
// or lost with the context.
typedef struct GpuOwned {
  Gpu *gpu;
  unsigned epoch;  // of the context
  bool closed;
} GpuOwned;
static inline bool gpu_owns(const GpuOwned *o) {
  return !o->closed && o->epoch == o->gpu->epoch;
}
// The same; if not, the reason, which names it ("stream").
bool gpu_usable(const GpuOwned *o, const char *what, Why *w);

// A stream. Where one may be NULL that is the current one, g->now; where that
// is NULL, too, the driver's default stream, which waits for all others and
// for which all others wait.
typedef struct GpuStream {
  GpuOwned own;
  CUstream s;
  int number;  // 1 to 63, for the sets of streams of blocks
} GpuStream;
bool gpustream_new(GpuStream *s, Gpu *g, unsigned flags, Why *w);
void gpustream_close(GpuStream *s);  // waits for it; behind a capture of it
bool gpustream_sync(GpuStream *s, Why *w);
// s waits for all that `other` was given so far.
bool gpustream_wait(GpuStream *s, GpuStream *other, Why *w);
// Is all of it, or the event, done?
bool gpustream_done(GpuStream *s, bool *done, Why *w);

typedef struct GpuEvent {
  GpuOwned own;
  CUevent e;
} GpuEvent;
bool gpuevent_new(GpuEvent *e, Gpu *g, Why *w);
void gpuevent_close(GpuEvent *e);
bool gpuevent_record(GpuEvent *e, const GpuStream *s, Why *w);
bool gpuevent_wait(GpuEvent *e, const GpuStream *s, Why *w);  // s waits
bool gpuevent_sync(GpuEvent *e, Why *w);
bool gpuevent_done(GpuEvent *e, bool *done, Why *w);
bool gpuevent_elapsed(GpuEvent *from, GpuEvent *to, double *ms, Why *w);

// One kernel of a module of its own.
typedef struct GpuFn {
  GpuOwned own;
  CUmodule mod;
  CUfunction fn;
  char name[80];  // "kernel add"
  int registers, local, smem_static, constant, max_threads, binary;
  int smem_dynamic;  // opted in so far
  int nparam;        // parameters, -1: not known
} GpuFn;
bool gpufn_load(GpuFn *f, Gpu *g, const void *cubin, const char *name, Why *w);
void gpufn_close(GpuFn *f);
// Bytes of parameter k; 0: there is none; -1 where the driver is too old to
// tell. (Asking for one that there is not counts as an error with those who
// watch the driver, so do not ask past nparam.)
int gpufn_param(const GpuFn *f, int k);

// A launch with its arguments packed: `params`, which ends with NULL, points
// into memory that lives as long as the struct. `bufs` are the buffers that
// arguments point into.
typedef struct GpuLaunch {
  GpuFn *fn;
  const GpuStream *stream;  // may be NULL
  unsigned grid[3], block[3], cluster[3], smem;
  bool pdl;  // programmatic dependent launch
  bool cooperative;  // all blocks run at once, or it is refused
  void **params;
  struct DevBuf **bufs;
  int nbufs;
} GpuLaunch;
// Opts in to dynamic shared memory over 48 KiB, checks the limits.
bool gpulaunch_prepare(GpuLaunch *l, Why *w);
bool gpulaunch_run(const GpuLaunch *l, int n, Why *w);
// Clusters of such a launch that the GPU can hold at a time.
bool gpulaunch_clusters(const GpuLaunch *l, int *n, Why *w);

#endif
