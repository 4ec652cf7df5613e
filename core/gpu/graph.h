// CUDA graphs: the launches and copies of a function, recorded once by stream
// capture and replayed as one launch. A graph keeps the memory that it uses.
#ifndef CUTE_GRAPH_H
#define CUTE_GRAPH_H

#include "gpu/memory.h"

typedef struct GpuGraph {
  GpuOwned own;
  CUgraphExec exec;
  size_t nodes;       // launches, copies, fills
  char name[96];      // "graph of kernel a, kernel b"
  GpuBlock **block;   // blocks that it keeps
  size_t nblock, cap;
  const GpuStream *on;  // captured stream, during the capture
  const GpuStream *before;  // current stream before the capture began
  GpuStream stream;     // its own stream, if the user names none
  GpuBlock *spare;      // its blocks that became free again during the capture
} GpuGraph;

// Starts recording g's work, until graph_end or graph_abandon.
bool graph_begin(GpuGraph *x, Gpu *g, const GpuStream *s, Why *w);
// Ends the recording. `old`: NULL, or a previous version of the graph, which is
// replaced in place if the driver supports that.
bool graph_end(GpuGraph *x, GpuGraph *old, Why *w);
void graph_abandon(GpuGraph *x);
bool graph_launch(GpuGraph *x, const GpuStream *s, int n, Why *w);
void graph_close(GpuGraph *x);

// During the capture: checks that this stream (NULL: the default one) is part
// of the graph.
bool graph_takes(GpuGraph *x, const GpuStream *s, Why *w);
bool graph_has(const GpuGraph *x, const GpuStream *s);  // reports whether the
                                                        // stream is part of the
                                                        // graph
void graph_runs(GpuGraph *x, const char *who);  // adds `who` to the graph's
                                                // name
bool graph_keeps(GpuGraph *x, GpuBlock *b, Why *w);

#endif
// SPDX-License-Identifier: MIT
