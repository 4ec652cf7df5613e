// What the files of this room share about the driver.
#ifndef CUTE_GPU_INSIDE_H
#define CUTE_GPU_INSIDE_H

#include "gpu/graph.h"

// CU(f, (args)): calls f of g->api, checked.
#define CU(f, args) gpu_check(g, g->api->f args, #f, w)

// True for CUDA_SUCCESS; else names the error and drops a dead context.
bool gpu_check(Gpu *g, CUresult r, const char *what, Why *w);
// Closes it; true where there is something that its context still holds.
bool gpu_disown(GpuOwned *o);
// False, with the reason, while a graph is captured: what waits for the GPU.
bool gpu_waits(const Gpu *g, const char *what, Why *w);
// The driver's stream that work goes to; false where it cannot take any.
bool gpustream_of(Gpu *g, const GpuStream *s, CUstream *out, Why *w);
// Gives it back to the driver.
void gpustream_end(GpuStream *s);
// The first waits for all that the other was given so far.
bool gpustream_follow(Gpu *g, CUstream s, CUstream other, Why *w);

// memory.c: the context was lost, or ends
void pool_forget(Gpu *g);
void pool_close(Gpu *g);

#endif
