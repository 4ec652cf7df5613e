// CUDA graphs of launches: capture, instantiation, update, launch.
#include "gpu/graph.h"

#include <stdio.h>
#include <string.h>

#include "gpu/inside.h"

bool graph_takes(GpuGraph *x, const GpuStream *s, Why *w) {
  Gpu *g = x->own.gpu;
  CUstreamCaptureStatus status = 0;
  if (s == x->on) return true;
  if (s && !CU(cuStreamIsCapturing, (s->s, &status))) return false;
  return status == CU_STREAM_CAPTURE_STATUS_ACTIVE ||
         why(w, ERR_CAPTURE, "the stream does not belong to the graph being "
             "captured: let it first wait for an event recorded in the "
             "capture");
}

bool graph_has(const GpuGraph *x, const GpuStream *s) {
  CUstreamCaptureStatus status = 0;
  return s == x->on ||
         x->own.gpu->api->cuStreamIsCapturing(s->s, &status) != CUDA_SUCCESS ||
         status != CU_STREAM_CAPTURE_STATUS_NONE;
}

bool graph_keeps(GpuGraph *x, GpuBlock *b, Why *w) {
  if (b->of == x) return true;
  if (x->nblock == x->cap) {
    size_t cap = x->cap ? 2 * x->cap : 16;
    GpuBlock **more = base_realloc(x->block, cap * sizeof *more);
    if (!more) return why(w, ERR_MEMORY, "out of memory");
    x->block = more;
    x->cap = cap;
  }
  b->of = x;
  block_keep(b);
  x->block[x->nblock++] = b;
  return true;
}

size_t graph_bytes(const GpuGraph *x) {
  size_t bytes = 0;
  for (size_t i = 0; i < x->nblock; i++) bytes += x->block[i]->bytes;
  return bytes;
}

void graph_runs(GpuGraph *x, const char *who) {
  size_t n = strlen(x->name), more = strlen(who);
  const char *at = n ? strstr(x->name, who) : NULL;
  if (at && (!at[more] || at[more] == ',')) return;
  if (n && x->name[n - 1] == '.') return;  // already full
  bool fits = n + more + 16 < sizeof x->name;
  const char *join = n ? ", " : "graph of ";
  memcpy(x->name + n, join, strlen(join) + 1);
  strncat(x->name, fits ? who : "...", sizeof x->name - n - 12);
}

static void drop_blocks(GpuGraph *x) {
  for (size_t i = 0; i < x->nblock; i++)
    block_drop(x->block[i]);
  base_free(x->block);
  x->block = NULL;
  x->nblock = x->cap = 0;
}

// ---- capture ----

// Starts a capture. First waits for all work of the GPU, so that no other
// stream still uses memory that the graph will use.
bool graph_begin(GpuGraph *x, Gpu *g, const GpuStream *s, Why *w) {
  if (!g->api->cuStreamBeginCapture_v2 || !g->api->cuGraphInstantiateWithFlags)
    return why(w, ERR_DRIVER, "this driver does not support graphs");
  if (s && !gpu_usable(&s->own, "stream", w)) return false;
  if (!gpu_sync(g, w)) return false;
  if (!s && !gpustream_new(&x->stream, g, CU_STREAM_NON_BLOCKING, w))
    return false;
  x->own = (GpuOwned){g, g->epoch, true};
  x->on = s ? s : &x->stream;
  if (!CU(cuStreamBeginCapture_v2,
          (x->on->s, CU_STREAM_CAPTURE_MODE_RELAXED))) {
    if (!s && g->ctx) gpustream_close(&x->stream);
    return false;
  }
  g->capture = x;
  x->before = g->now;
  g->now = x->on;
  return true;
}

// Stores the captured graph in *out. The capture has ended even if the function
// fails.
static bool finish(GpuGraph *x, CUgraph *out, Why *w) {
  Gpu *g = x->own.gpu;
  g->capture = NULL;
  g->now = x->before;
  // The graph still owns the blocks of `spare`, which are also in x->block.
  x->spare = NULL;
  for (size_t i = 0; i < x->nblock; i++) x->block[i]->of = NULL;
  bool ok = CU(cuStreamEndCapture, (x->on->s, out));
  if (g->ctx && x->on == &x->stream) gpustream_close(&x->stream);
  enum { MOST = sizeof g->stream / sizeof *g->stream };
  // Finish closing the streams that were closed during the capture.
  for (int k = 1; k < MOST; k++)
    if (g->stream[k] && g->stream[k]->own.closed) gpustream_end(g->stream[k]);
  x->on = NULL;
  return ok;
}

void graph_abandon(GpuGraph *x) {
  Gpu *g = x->own.gpu;
  CUgraph graph = NULL;
  Why w;
  if (g->capture == x && finish(x, &graph, &w) && graph)
    g->api->cuGraphDestroy(graph);
  drop_blocks(x);
}

// Makes x executable from the driver's graph: updates the executable graph of
// `old` if the driver can, else instantiates a new executable graph.
static bool instantiate(GpuGraph *x, CUgraph graph, GpuGraph *old, Why *w) {
  Gpu *g = x->own.gpu;
  CUgraphExecUpdateResultInfo info;
  if (!CU(cuGraphGetNodes, (graph, NULL, &x->nodes))) return false;
  if (old && gpu_owns(&old->own) && g->api->cuGraphExecUpdate_v2 &&
      g->api->cuGraphExecUpdate_v2(old->exec, graph, &info) == CUDA_SUCCESS) {
    x->exec = old->exec;
    gpu_disown(&old->own);
    return true;
  }
  return CU(cuGraphInstantiateWithFlags, (&x->exec, graph, 0));
}

bool graph_end(GpuGraph *x, GpuGraph *old, Why *w) {
  Gpu *g = x->own.gpu;
  CUgraph graph = NULL;
  bool ok = finish(x, &graph, w);
  if (ok && !graph) ok = why(w, ERR_CAPTURE, "the capture was invalidated");
  ok = ok && instantiate(x, graph, old, w);
  if (graph && g->ctx) g->api->cuGraphDestroy(graph);
  if (ok) x->own = (GpuOwned){g, g->epoch, false};
  else drop_blocks(x);
  return ok;
}

// ---- launches ----

bool graph_launch(GpuGraph *x, const GpuStream *s, int n, Why *w) {
  Gpu *g = x->own.gpu;
  CUstream on;
  if (!gpu_usable(&x->own, "graph", w) || !gpu_use(g, w) ||
      !gpustream_of(g, s, &on, w))
    return false;
  if (g->capture)
    return why(w, ERR_CAPTURE, "a graph cannot be part of another graph: call "
               "the function that it was captured from");
  for (size_t i = 0; i < x->nblock; i++)
    if (!block_use(x->block[i], s ? s : g->now, w)) return false;
  gpu_runs(g, x->name, NULL, n);
  for (int i = 0; i < n; i++)
    if (!CU(cuGraphLaunch, (x->exec, on))) return false;
  return true;
}

void graph_close(GpuGraph *x) {
  Gpu *g = x->own.gpu;
  Why w;
  if (g->capture == x) graph_abandon(x);
  if (gpu_disown(&x->own) && gpu_use(g, &w))
    g->api->cuGraphExecDestroy(x->exec);
  drop_blocks(x);
}
// SPDX-License-Identifier: MIT
