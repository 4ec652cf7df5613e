// Declarations that only the files of core/gpu share, such as checked calls of
// the driver.
#ifndef CUTE_GPU_INSIDE_H
#define CUTE_GPU_INSIDE_H

#include "gpu/graph.h"

// CU(f, (args)) calls the driver's function f and checks the result. Expects
// variables g and w.
#define CU(f, args) gpu_check(g, g->api->f args, #f, w)

// Returns true for CUDA_SUCCESS. Otherwise describes in w the error of the call
// that `what` names, and drops the context if the error made the context
// unusable.
bool gpu_check(Gpu *g, CUresult r, const char *what, Why *w);
// Marks an object as closed. Returns false if the object is already closed, or
// if its CUDA context was lost.
bool gpu_disown(GpuOwned *o);
// Checks that no graph is being captured, because operation `what` waits for
// the GPU.
bool gpu_waits(const Gpu *g, const char *what, Why *w);
// Stores in *out the driver's handle of stream s (NULL: the current stream).
// Returns false if no work can be launched on s.
bool gpustream_of(Gpu *g, const GpuStream *s, CUstream *out, Why *w);
// Waits for the work on stream s, then destroys the driver's stream.
void gpustream_end(GpuStream *s);
// Makes s wait for all work that was launched on `other` so far.
bool gpustream_follow(Gpu *g, CUstream s, CUstream other, Why *w);

// Free the pool's records: pool_forget after the context was lost, pool_close
// when g is closed (memory.c).
void pool_forget(Gpu *g);
void pool_close(Gpu *g);

#endif
// SPDX-License-Identifier: MIT
