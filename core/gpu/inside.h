// Shared by the files of core/gpu: calls of the driver.
#ifndef CUTE_GPU_INSIDE_H
#define CUTE_GPU_INSIDE_H

#include "gpu/graph.h"

// CU(f, (args)): calls f of g->api and checks the result.
#define CU(f, args) gpu_check(g, g->api->f args, #f, w)

// Returns true for CUDA_SUCCESS; otherwise reports the error and drops a dead
// context.
bool gpu_check(Gpu *g, CUresult r, const char *what, Why *w);
// Marks an object as closed. Returns whether its context still holds the
// object.
bool gpu_disown(GpuOwned *o);
// Fails while a graph is captured; for operations that wait for the GPU.
bool gpu_waits(const Gpu *g, const char *what, Why *w);
// Returns the driver's stream for work on s; false if it cannot take work.
bool gpustream_of(Gpu *g, const GpuStream *s, CUstream *out, Why *w);
// Returns the stream to the driver.
void gpustream_end(GpuStream *s);
// Makes s wait for all work that `other` has received so far.
bool gpustream_follow(Gpu *g, CUstream s, CUstream other, Why *w);

// Called when the context was lost, or is being closed (memory.c).
void pool_forget(Gpu *g);
void pool_close(Gpu *g);

#endif
// SPDX-License-Identifier: MIT
