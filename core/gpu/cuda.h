// A GPU through the CUDA driver: context, streams, events, modules, launches. A
// function with a Why parameter returns false if the driver reports an error.
// The message contains the driver's name for the error.
//
// After an error that leaves the context unusable (such as an illegal address),
// the context is destroyed and `epoch` is incremented. Objects of the old
// context are then closed, and the next use creates a new context. CUDA reports
// the error of a kernel at a later call. The message of that call names the
// kernels that may have caused the error.
#ifndef CUTE_CUDA_H
#define CUTE_CUDA_H

#include "gpu/cudaapi.h"
#include "base/dtype.h"

struct Shared;

typedef struct Gpu {
  const CudaApi *api;  // NULL before gpu_init succeeds
  const CublasApi *blas_api;
  const CublasLtApi *lt_api;
  // ordinal: number of the device. driver: driver version, such as 13000 for
  // CUDA 13.0.
  int ordinal, driver;
  int major, minor, sms;    // compute capability; number of multiprocessors
  // smem_optin: maximum shared memory of a block in bytes. l2: size of L2 in
  // bytes. khz: clock in kHz.
  int smem_optin, l2, khz;
  size_t memory;
  char name[128];
  // found: whether the driver found the device in this process. If not, the
  // properties above are those of an earlier process (known.h), and dev is not
  // set.
  bool found;
  CUdevice dev;
  CUcontext ctx;  // the context; NULL: the next gpu_use creates one
  struct GpuEarly *early;  // thread that creates the first context, or NULL
  unsigned epoch;
  // Kernels that were launched since the host last waited for the whole GPU. If
  // the driver reports a kernel's error, one of these kernels caused it.
  struct {
    // `at` is the script line of the first launch, or "" if the line is
    // unknown.
    char who[96], at[64];
    long times;
  } ran[4];
  // number of different kernels that ran; 5: more than `ran` can hold
  int nran;
  char lost[640];
  struct GpuPool *pool;          // pool of device memory; NULL before first use
  // Allocates memory for calls from another library (library/python.c), instead
  // of the pool. NULL: the pool allocates all memory.
  bool (*allocate)(void *allocator, int ordinal, size_t bytes, uint64_t *ptr,
                   struct Shared **shared, Why *w);
  void *allocator;
  bool captured;  // whether another library captures the current stream
  // list of lent memory blocks that other libraries have released, or NULL
  struct GpuReturns *returns;
  // bytes requested since devlib_new last ran Lua's garbage collector
  size_t since;
  struct GpuStream *stream[64];  // open streams by number
  const struct GpuStream *now;   // current stream, or NULL
  struct GpuGraph *capture;      // graph being captured, or NULL
  // Event by which one stream waits for another; NULL: it is created at the
  // next use.
  CUevent fence;
  unsigned syncs;                // number of times that the host waited for the
                                 // whole GPU
  // Handles of cuBLAS and cublasLt; NULL: they are created at the next use.
  // They are destroyed with the context.
  cublasHandle_t blas;
  cublasLtHandle_t lt;
} Gpu;

// Finds the driver and the device. If an earlier process has recorded the
// device's properties, cuInit is left to gpu_begin or gpu_use.
bool gpu_init(Gpu *g, int ordinal, Why *w);
// Creates the context if necessary and makes it current.
bool gpu_use(Gpu *g, Why *w);
// Starts a thread that creates the first context, unless the context exists.
// The next gpu_use waits for the thread. The driver needs a few tenths of a
// second for this, during which the caller can compile.
void gpu_begin(Gpu *g);
void gpu_close(Gpu *g);
bool gpu_sync(Gpu *g, Why *w);
bool gpu_free_memory(Gpu *g, size_t *left, Why *w);
// gpu_runs records that the script line `at` ("x.lua:3"; NULL: unknown)
// launched kernel `who` ("kernel add") `times` times. gpu_ran reports whether
// the kernel is recorded.
void gpu_runs(Gpu *g, const char *who, const char *at, long times);
bool gpu_ran(const Gpu *g, const char *who);

// Common fields of all objects of a context. An object is usable until its
// owner closes it or its context is destroyed.
typedef struct GpuOwned {
  Gpu *gpu;
  unsigned epoch;  // epoch of the GPU when the object was created
  bool closed;
} GpuOwned;
static inline bool gpu_owns(const GpuOwned *o) {
  return !o->closed && o->epoch == o->gpu->epoch;
}
// Reports whether the object is usable (gpu_owns). If not, stores in w the
// reason why the object is closed. The reason names the object by `what`, such
// as "stream".
bool gpu_usable(const GpuOwned *o, const char *what, Why *w);

// A stream. A NULL parameter of this type stands for the current stream,
// g->now. If g->now is also NULL, it stands for the driver's default stream,
// which synchronizes with all other streams.
typedef struct GpuStream {
  GpuOwned own;
  CUstream s;
  // from 1 to 63: index of the stream's bit in sets of streams (GpuBlock)
  int number;
  bool foreign;  // whether another library owns the driver's stream
} GpuStream;
bool gpustream_new(GpuStream *s, Gpu *g, unsigned flags, Why *w);
// Makes s an object for the stream `h` of another library, which must not
// destroy the stream before s is closed.
bool gpustream_foreign(GpuStream *s, Gpu *g, CUstream h, Why *w);
// Waits for the stream's work, and destroys the stream. If a graph is capturing
// the stream, it is destroyed when the capture ends.
void gpustream_close(GpuStream *s);
bool gpustream_sync(GpuStream *s, Why *w);
// Makes s wait for all work that was launched on `other` so far.
bool gpustream_wait(GpuStream *s, GpuStream *other, Why *w);
// Reports in *done whether all work on the stream has completed.
bool gpustream_done(GpuStream *s, bool *done, Why *w);

typedef struct GpuEvent {
  GpuOwned own;
  CUevent e;
} GpuEvent;
bool gpuevent_new(GpuEvent *e, Gpu *g, Why *w);
void gpuevent_close(GpuEvent *e);
bool gpuevent_record(GpuEvent *e, const GpuStream *s, Why *w);
// Makes stream s wait for the event.
bool gpuevent_wait(GpuEvent *e, const GpuStream *s, Why *w);
bool gpuevent_sync(GpuEvent *e, Why *w);
bool gpuevent_done(GpuEvent *e, bool *done, Why *w);
bool gpuevent_elapsed(GpuEvent *from, GpuEvent *to, double *ms, Why *w);

// A loaded kernel. Each kernel has its own module.
typedef struct GpuFn {
  GpuOwned own;
  CUmodule mod;
  CUfunction fn;
  char name[80];  // "kernel add"
  int registers, local, smem_static, constant, max_threads, binary;
  // Maximum bytes of dynamic shared memory that a launch may request without
  // another cuFuncSetAttribute.
  int smem_dynamic;
  int nparam;        // number of parameters, or -1 if unknown
} GpuFn;
// Loads a kernel from machine code, or from PTX that begins with ".version",
// which the driver compiles at optimisation level `level` (0 to 4).
bool gpufn_load(GpuFn *f, Gpu *g, const void *cubin, const char *name,
                int level, Why *w);
void gpufn_close(GpuFn *f);
// Finds a variable of the kernel's module. Sets *ptr to its address and *bytes
// to its size.
bool gpufn_variable(const GpuFn *f, const char *name, uint64_t *ptr,
                    size_t *bytes, Why *w);
// Returns the size of parameter k in bytes; 0: there is no parameter k; -1: the
// driver is too old to report sizes. Requires k < nparam, because tools that
// observe driver calls report any other k as an error.
int gpufn_param(const GpuFn *f, int k);

// A launch of kernel fn. `params` points to the arguments of the kernel, one
// pointer for each, and ends with NULL. The arguments must live as long as the
// struct. `bufs` are the GPU buffers that the arguments point to.
typedef struct GpuLaunch {
  GpuFn *fn;
  const GpuStream *stream;  // NULL: the current stream
  unsigned grid[3], block[3], cluster[3], smem;
  // programmatic dependent launch: may start before the preceding launch ends
  bool pdl;
  // cooperative launch: all blocks run at once, or the launch fails
  bool cooperative;
  void **params;
  struct DevBuf **bufs;
  int nbufs;
} GpuLaunch;
// Checks the limits of the kernel and the GPU, and opts in to more than 48 KiB
// of dynamic shared memory.
bool gpulaunch_prepare(GpuLaunch *l, Why *w);
bool gpulaunch_run(const GpuLaunch *l, int n, Why *w);
// Sets *n to the number of clusters of the launch that can run on the GPU at a
// time.
bool gpulaunch_clusters(const GpuLaunch *l, int *n, Why *w);

#endif
// SPDX-License-Identifier: MIT
