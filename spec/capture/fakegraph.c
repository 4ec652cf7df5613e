// Graphs of the fake driver: kernels, memsets and host functions. A graph is a
// list of nodes with edges. One stream at a time can be captured.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fakegraph.h"

enum { NODES = 8, EDGES = 8 };

struct CUgraphNode_st {
  int type;
  CUgraphNode origin;  // node that this one was copied from
  KernelNode kernel;
  SetNode set;
  CUlaunchAttribute cluster;
  // copies of the parameters of axpy
  CUdeviceptr y, x;
  float a;
  int n;
  void *params[4];
};

struct CUgraph_st {
  CUgraphNode node[NODES], from[EDGES], to[EDGES];
  size_t nodes, edges;
};

static CUgraph captured;

static CUgraphNode add(CUgraph g, int type) {
  CUgraphNode n = calloc(1, sizeof *n);
  n->type = type;
  return g->node[g->nodes++] = n;
}

static void set_params(CUgraphNode n, const KernelNode *p) {
  n->kernel = *p;
  n->y = *(CUdeviceptr *)p->params[0], n->x = *(CUdeviceptr *)p->params[1];
  n->a = *(float *)p->params[2], n->n = *(int *)p->params[3];
  void *params[4] = {&n->y, &n->x, &n->a, &n->n};
  memcpy(n->params, params, sizeof params);
  n->kernel.params = n->params;
}

CUresult cuGraphCreate(CUgraph *g, unsigned flags) {
  return (void)flags, *g = calloc(1, sizeof **g), 0;
}
CUresult cuGraphDestroy(CUgraph g) {
  for (size_t i = 0; i < g->nodes; i++) {
    memset(g->node[i], 0xee, sizeof *g->node[i]);
    free(g->node[i]);
  }
  return free(g), 0;
}
CUresult cuGraphAddDependencies(CUgraph g, const CUgraphNode *from,
                                const CUgraphNode *to, size_t n) {
  for (size_t i = 0; i < n; i++) {
    g->from[g->edges] = from[i];
    g->to[g->edges++] = to[i];
  }
  return 0;
}
CUresult cuGraphAddKernelNode_v2(CUgraphNode *node, CUgraph g,
                                 const CUgraphNode *after, size_t n,
                                 const KernelNode *p) {
  *node = add(g, 0);
  set_params(*node, p);
  for (size_t i = 0; i < n; i++) cuGraphAddDependencies(g, &after[i], node, 1);
  return 0;
}
CUresult cuGraphAddMemsetNode(CUgraphNode *node, CUgraph g,
                              const CUgraphNode *after, size_t n,
                              const SetNode *p, void *context) {
  (void)after, (void)n, (void)context;
  *node = add(g, 2);
  return (*node)->set = *p, 0;
}
CUresult cuGraphAddHostNode(CUgraphNode *node, CUgraph g,
                            const CUgraphNode *after, size_t n,
                            const void *p) {
  (void)after, (void)n, (void)p;
  return *node = add(g, 3), 0;
}
CUresult cuGraphClone(CUgraph *to, CUgraph g) {
  *to = malloc(sizeof *g);
  **to = *g;
  for (size_t i = 0; i < g->nodes; i++) {
    CUgraphNode n = (*to)->node[i] = malloc(sizeof *n);
    *n = *g->node[i];
    n->origin = g->node[i];
    if (n->type == 0) {
      KernelNode p = n->kernel;
      set_params(n, &p);
    }
    for (size_t k = 0; k < g->edges; k++) {
      if (g->from[k] == g->node[i]) (*to)->from[k] = n;
      if (g->to[k] == g->node[i]) (*to)->to[k] = n;
    }
  }
  return 0;
}
CUresult cuGraphNodeFindInClone(CUgraphNode *out, CUgraphNode n, CUgraph g) {
  for (size_t i = 0; i < g->nodes; i++)
    if (g->node[i]->origin == n) return *out = g->node[i], 0;
  return 1;
}
CUresult cuGraphGetNodes(CUgraph g, CUgraphNode *out, size_t *n) {
  if (out) memcpy(out, g->node, *n * sizeof *out);
  return *n = g->nodes, 0;
}
CUresult cuGraphGetEdges(CUgraph g, CUgraphNode *from, CUgraphNode *to,
                         size_t *n) {
  if (from) memcpy(from, g->from, *n * sizeof *from);
  if (to) memcpy(to, g->to, *n * sizeof *to);
  return *n = g->edges, 0;
}
CUresult cuGraphNodeGetType(CUgraphNode n, int *type) {
  return *type = n->type, 0;
}
// For a captured launch, returns a function that the program does not know, and
// the kernel that was launched, as the driver does.
CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode n, KernelNode *p) {
  *p = n->kernel;
  if (p->kern) p->func = (CUfunction)(void *)n;
  return 0;
}
CUresult cuGraphKernelNodeSetParams_v2(CUgraphNode n, const KernelNode *p) {
  return set_params(n, p), 0;
}
CUresult cuGraphKernelNodeSetAttribute(CUgraphNode n, int id,
                                       const void *value) {
  n->cluster.id = id;
  return memcpy(&n->cluster.value, value, sizeof n->cluster.value), 0;
}
CUresult cuGraphKernelNodeGetAttribute(CUgraphNode n, int id, void *value) {
  if (n->cluster.id == id) memcpy(value, &n->cluster.value, 64);
  return 0;
}
CUresult cuGraphMemsetNodeGetParams(CUgraphNode n, SetNode *p) {
  return *p = n->set, 0;
}
CUresult cuMemsetD2D32Async(CUdeviceptr to, size_t pitch, unsigned value,
                            size_t width, size_t height, CUstream s) {
  (void)s;
  for (size_t row = 0; row < height; row++)
    for (size_t i = 0; i < width; i++)
      ((unsigned *)(uintptr_t)(to + row * pitch))[i] = value;
  return 0;
}

// An instantiated graph is a copy of the graph.
CUresult cuGraphInstantiateWithFlags(CUgraphExec *e, CUgraph g,
                                     unsigned long long flags) {
  (void)flags;
  return cuGraphClone((CUgraph *)(void *)e, g);
}
CUresult cuGraphExecDestroy(CUgraphExec e) {
  return cuGraphDestroy((CUgraph)(void *)e);
}
CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec e, CUgraphNode n,
                                           const KernelNode *p) {
  CUgraphNode own;
  if (cuGraphNodeFindInClone(&own, n, (CUgraph)(void *)e)) return 1;
  return set_params(own, p), 0;
}

static void run_node(CUgraph g, bool *done, size_t i) {
  CUgraphNode n = g->node[i];
  if (done[i]) return;
  done[i] = true;
  for (size_t k = 0; k < g->edges; k++)
    for (size_t j = 0; g->to[k] == n && j < g->nodes; j++)
      if (g->node[j] == g->from[k]) run_node(g, done, j);
  if (n->type == 0) fake_run(n->kernel.func, n->kernel.params);
  if (n->type == 2)
    cuMemsetD2D32Async(n->set.to, n->set.pitch, n->set.value, n->set.width,
                       n->set.height, NULL);
}

CUresult cuGraphLaunch(CUgraphExec e, CUstream s) {
  CUgraph g = (CUgraph)(void *)e;
  bool done[NODES] = {false};
  if (getenv("FAKE_SAY")) fprintf(stderr, "graph launched\n");
  for (size_t i = 0; i < g->nodes; i++) run_node(g, done, i);
  return (void)s, 0;
}

CUresult cuStreamBeginCapture_v2(CUstream s, int mode) {
  (void)s, (void)mode;
  return cuGraphCreate(&captured, 0);
}
CUresult cuStreamEndCapture(CUstream s, CUgraph *g) {
  (void)s;
  return *g = captured, captured = NULL, 0;
}

bool fake_capturing(void) { return captured != NULL; }

bool fake_capture(CUfunction f, const unsigned grid[3], const unsigned block[3],
                  unsigned smem, void **params) {
  KernelNode p = {f, {grid[0], grid[1], grid[2]},
                  {block[0], block[1], block[2]}, smem, params, NULL, f,
                  NULL};
  CUgraphNode node;
  if (!captured) return false;
  size_t n = captured->nodes;
  cuGraphAddKernelNode_v2(&node, captured, n ? &captured->node[n - 1] : NULL,
                          n > 0, &p);
  return true;
}
// SPDX-License-Identifier: MIT
