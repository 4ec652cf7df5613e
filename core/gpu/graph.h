// CUDA graphs: the launches and copies of a function, recorded once by stream
// capture and replayed as one launch. A graph keeps the device memory that it
// uses.
#ifndef CUTE_GRAPH_H
#define CUTE_GRAPH_H

#include "gpu/memory.h"

typedef struct GpuGraph {
  GpuOwned own;
  CUgraphExec exec;
  size_t nodes;       // number of launches, copies and fills
  char name[96];  // "graph of kernel a, kernel b": names the kernels launched
  GpuBlock **block;   // blocks of device memory that the graph keeps
  size_t nblock, cap;
  const GpuStream *on;  // stream being captured; NULL after the capture
  const GpuStream *before;  // g->now before the capture, restored after it
  GpuStream stream;     // stream to capture if the user names no stream
  // List of those blocks in `block` that were freed during the capture and can
  // be reused in it.
  GpuBlock *spare;
} GpuGraph;

// Starts recording the work of g, until graph_end or graph_abandon. s is the
// stream to capture; NULL: the graph's own stream.
bool graph_begin(GpuGraph *x, Gpu *g, const GpuStream *s, Why *w);
// Ends the recording. `old` is NULL or a previous version of the graph. If the
// driver can update the executable graph of `old` in place, x takes that graph
// over, and `old` is closed.
bool graph_end(GpuGraph *x, GpuGraph *old, Why *w);
void graph_abandon(GpuGraph *x);
bool graph_launch(GpuGraph *x, const GpuStream *s, int n, Why *w);
void graph_close(GpuGraph *x);

// Reports, during a capture, whether work on stream s (NULL: the default
// stream) becomes part of graph x. If not, stores the reason in w.
bool graph_takes(GpuGraph *x, const GpuStream *s, Why *w);
// Reports whether stream s is part of the graph.
bool graph_has(const GpuGraph *x, const GpuStream *s);
// Adds launch `who` ("kernel add") to the graph's name.
void graph_runs(GpuGraph *x, const char *who);
bool graph_keeps(GpuGraph *x, GpuBlock *b, Why *w);
// Returns the bytes of memory that the graph keeps.
size_t graph_bytes(const GpuGraph *x);

#endif
// SPDX-License-Identifier: MIT
