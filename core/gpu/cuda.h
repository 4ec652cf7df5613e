// A GPU through the CUDA driver: context, streams, events, modules, launches.
// Every function with a Why returns false if the driver reports an error, whose
// driver name is in the message.
//
// After an error that leaves the context unusable (such as an illegal address),
// the context is destroyed and `epoch` is incremented. Objects of the old
// context then count as closed, and the next use creates a new context. The
// error of a kernel is reported by a later call; the message names the kernels
// that may have caused it.
#ifndef CUTE_CUDA_H
#define CUTE_CUDA_H

#include "gpu/cudaapi.h"
#include "base/dtype.h"

typedef struct Gpu {
  const CudaApi *api;  // NULL before gpu_init succeeds
  const CublasApi *blas_api;
  const CublasLtApi *lt_api;
  int ordinal, driver;      // driver version, 13000 for CUDA 13.0
  int major, minor, sms;    // compute capability, multiprocessors
  int smem_optin, l2, khz;  // smem_optin: shared memory of a block, l2: size of
                            // L2, in bytes; khz: clock in kHz
  size_t memory;
  char name[128];
  CUdevice dev;
  CUcontext ctx;  // NULL: created on next use
  unsigned epoch;
  // Kernels that ran since the host last waited for the whole GPU, one of which
  // caused the next error; and the error that ended the last context.
  struct {
    char who[96], at[64];  // at: line of its first launch; "": unknown
    long times;
  } ran[4];
  int nran;  // number of entries; one more than `ran` holds if there are others
  char lost[640];
  struct GpuPool *pool;          // memory.c; NULL: nothing allocated yet
  size_t since;  // bytes allocated since the last garbage collection
  struct GpuStream *stream[64];  // open streams by number
  const struct GpuStream *now;   // current stream, or NULL
  struct GpuGraph *capture;      // graph being captured, or NULL
  CUevent fence;                 // NULL: created when first needed
  unsigned syncs;                // number of waits for the whole GPU
  cublasHandle_t blas;  // NULL until next use; ends with the context
  cublasLtHandle_t lt;
} Gpu;

bool gpu_init(Gpu *g, int ordinal, Why *w);  // finds driver and device
bool gpu_use(Gpu *g, Why *w);    // creates the context and makes it current
void gpu_close(Gpu *g);
bool gpu_sync(Gpu *g, Why *w);
bool gpu_free_memory(Gpu *g, size_t *left, Why *w);
// Records that `who` ("kernel add") starts to run `times` times, from line `at`
// of a script ("x.lua:3"; NULL: unknown). gpu_ran reports whether it is
// recorded already.
void gpu_runs(Gpu *g, const char *who, const char *at, long times);
bool gpu_ran(const Gpu *g, const char *who);

// Common fields of all objects that belong to a context. Such an object is
// closed by its owner, or lost with the context.
typedef struct GpuOwned {
  Gpu *gpu;
  unsigned epoch;  // epoch of its context
  bool closed;
} GpuOwned;
static inline bool gpu_owns(const GpuOwned *o) {
  return !o->closed && o->epoch == o->gpu->epoch;
}
// Returns gpu_owns. If that is false, sets the reason, which names the object
// ("stream").
bool gpu_usable(const GpuOwned *o, const char *what, Why *w);

// A stream. Where NULL is allowed it means the current stream, g->now. If that
// is NULL, too, it means the driver's default stream, which synchronises with
// all others.
typedef struct GpuStream {
  GpuOwned own;
  CUstream s;
  int number;  // 1 to 63: its bit in the stream sets of blocks
} GpuStream;
bool gpustream_new(GpuStream *s, Gpu *g, unsigned flags, Why *w);
void gpustream_close(GpuStream *s);  // waits for its work; in a capture, the
                                     // stream stays until the capture ends
bool gpustream_sync(GpuStream *s, Why *w);
// Makes s wait for all work that `other` has received so far.
bool gpustream_wait(GpuStream *s, GpuStream *other, Why *w);
// Report whether all work of the stream, or the work before the event, has
// completed.
bool gpustream_done(GpuStream *s, bool *done, Why *w);

typedef struct GpuEvent {
  GpuOwned own;
  CUevent e;
} GpuEvent;
bool gpuevent_new(GpuEvent *e, Gpu *g, Why *w);
void gpuevent_close(GpuEvent *e);
bool gpuevent_record(GpuEvent *e, const GpuStream *s, Why *w);
bool gpuevent_wait(GpuEvent *e, const GpuStream *s, Why *w);  // makes s wait
bool gpuevent_sync(GpuEvent *e, Why *w);
bool gpuevent_done(GpuEvent *e, bool *done, Why *w);
bool gpuevent_elapsed(GpuEvent *from, GpuEvent *to, double *ms, Why *w);

// A kernel, in a module of its own.
typedef struct GpuFn {
  GpuOwned own;
  CUmodule mod;
  CUfunction fn;
  char name[80];  // "kernel add"
  int registers, local, smem_static, constant, max_threads, binary;
  int smem_dynamic;  // bytes of dynamic shared memory allowed so far
  int nparam;        // number of parameters, or -1 if unknown
} GpuFn;
bool gpufn_load(GpuFn *f, Gpu *g, const void *cubin, const char *name, Why *w);
void gpufn_close(GpuFn *f);
// Returns the bytes of parameter k; 0: there is none; -1: the driver is too old
// to report it. Do not ask beyond nparam: tools that watch the driver count
// that as an error.
int gpufn_param(const GpuFn *f, int k);

// A launch with packed arguments. `params` ends with NULL and points into
// memory that lives as long as the struct. `bufs` are the buffers that the
// arguments point to.
typedef struct GpuLaunch {
  GpuFn *fn;
  const GpuStream *stream;  // may be NULL
  unsigned grid[3], block[3], cluster[3], smem;
  bool pdl;  // programmatic dependent launch
  bool cooperative;  // all blocks run at once, or the launch fails
  void **params;
  struct DevBuf **bufs;
  int nbufs;
} GpuLaunch;
// Opts in to dynamic shared memory over 48 KiB and checks the limits.
bool gpulaunch_prepare(GpuLaunch *l, Why *w);
bool gpulaunch_run(const GpuLaunch *l, int n, Why *w);
// Counts how many clusters of the launch fit on the GPU at a time.
bool gpulaunch_clusters(const GpuLaunch *l, int *n, Why *w);

#endif
// SPDX-License-Identifier: MIT
