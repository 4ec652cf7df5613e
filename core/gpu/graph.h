// Graphs: what a function launches and copies is recorded once, by the
// driver's stream capture, and replayed as one launch. A graph keeps the
// memory that it works with.
#ifndef CUTE_GRAPH_H
#define CUTE_GRAPH_H

#include "gpu/memory.h"

typedef struct GpuGraph {
  GpuOwned own;
  CUgraphExec exec;
  size_t nodes;       // launches, copies, fills
  char name[96];      // "graph of kernel a, kernel b"
  GpuBlock **block;   // those of its memory
  size_t nblock, cap;
  const GpuStream *on;  // while it is captured: the stream that is
  const GpuStream *before;  // the current one before that
  GpuStream stream;     // its own, where the user names none
  GpuBlock *spare;      // memory of its own that is free again
} GpuGraph;

// From here on g's work is recorded, until it ends or is abandoned.
bool graph_begin(GpuGraph *x, Gpu *g, const GpuStream *s, Why *w);
// `old`: the graph that it is another version of, whose place it takes where
// the driver can change that in place; or NULL.
bool graph_end(GpuGraph *x, GpuGraph *old, Why *w);
void graph_abandon(GpuGraph *x);
bool graph_launch(GpuGraph *x, const GpuStream *s, int n, Why *w);
void graph_close(GpuGraph *x);

// While it is captured: is this stream (NULL: the driver's own) part of it?
bool graph_takes(GpuGraph *x, const GpuStream *s, Why *w);
bool graph_has(const GpuGraph *x, const GpuStream *s);  // is it part of it?
void graph_runs(GpuGraph *x, const char *who);  // is part of it
bool graph_keeps(GpuGraph *x, GpuBlock *b, Why *w);

#endif
