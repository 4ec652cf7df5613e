// Launches of CUDA graphs. A graph with a selected kernel is run node by node,
// in an order that its edges permit. Each kernel is then a separate launch, and
// the library can record the memory before it.
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "capture/inside.h"

// CUDA_KERNEL_NODE_PARAMS_v2. The fields of version 1 come first.
typedef struct NodeParams {
  CUfunction func;
  unsigned grid[3], block[3], smem;
  void **params, **extra;
  void *kern, *context;
} NodeParams;

// CUDA_MEMSET_NODE_PARAMS.
typedef struct SetParams {
  CUdeviceptr to;
  size_t pitch;
  unsigned value, bytes;  // bytes of an element: 1, 2 or 4
  size_t width, height;
} SetParams;

enum { KERNEL_NODE, COPY_NODE, SET_NODE, HOST_NODE, GRAPH_NODE, EMPTY_NODE };

// A graph that the program instantiated. `copy` is a copy of it, because the
// program may destroy the original.
typedef struct Exec {
  struct Exec *next;
  CUgraphExec exec;
  CUgraph copy;
} Exec;

static Exec *execs;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

// ---- copies of graphs ----

static CUgraph copy_of(CUgraphExec e) {
  pthread_mutex_lock(&lock);
  const Exec *x = execs;
  while (x && x->exec != e) x = x->next;
  CUgraph copy = x ? x->copy : NULL;
  pthread_mutex_unlock(&lock);
  return copy;
}

void graph_forget(CUgraphExec e) {
  CUresult (*destroy)(CUgraph);
  pthread_mutex_lock(&lock);
  Exec **at = &execs;
  while (*at && (*at)->exec != e) at = &(*at)->next;
  Exec *x = *at;
  if (x) *at = x->next;
  pthread_mutex_unlock(&lock);
  DRIVER(destroy, "cuGraphDestroy");
  if (x && destroy) destroy(x->copy);
  free(x);
}

void graph_keep(CUgraphExec e, CUgraph g) {
  CUresult (*clone)(CUgraph *, CUgraph);
  CUgraph copy;
  if (!launch_wanted()) return;
  graph_forget(e);
  DRIVER(clone, "cuGraphClone");
  Exec *x = malloc(sizeof *x);
  if (!x || !clone || clone(&copy, g)) {
    free(x);
    return;
  }
  pthread_mutex_lock(&lock);
  *x = (Exec){execs, e, copy};
  execs = x;
  pthread_mutex_unlock(&lock);
}

void graph_change(CUgraphExec e, CUgraphNode node, const void *params) {
  CUresult (*find)(CUgraphNode *, CUgraphNode, CUgraph);
  CUresult (*set)(CUgraphNode, const void *);
  CUgraph copy = copy_of(e);
  CUgraphNode own;
  DRIVER(find, "cuGraphNodeFindInClone");
  DRIVER(set, "cuGraphKernelNodeSetParams_v2");
  if (!set) DRIVER(set, "cuGraphKernelNodeSetParams");
  bool done = copy && find && set && !find(&own, node, copy) &&
              !set(own, params);
  if (copy && !done) graph_forget(e);
}

// ---- nodes ----

// The nodes of a graph, sorted so that each node follows its predecessors.
typedef struct Order {
  CUgraphNode *node;
  size_t n;
} Order;

static size_t index_of(CUgraphNode *list, size_t n, CUgraphNode node) {
  size_t i = 0;
  while (i < n && list[i] != node) i++;
  return i;
}

// Sorts the n nodes of `list` into `out`. Repeatedly moves the first node whose
// predecessors have all been moved. Edge k goes from node from[k] to node
// to[k]. waits[i] is the number of predecessors of node i that have not been
// moved.
static void sort(CUgraphNode *list, size_t n, CUgraphNode *from,
                 CUgraphNode *to, size_t edges, size_t *waits, Order *out) {
  for (size_t k = 0; k < edges; k++) {
    size_t i = index_of(list, n, to[k]);
    if (i < n) waits[i]++;
  }
  for (bool moved = true; moved;) {
    moved = false;
    for (size_t i = 0; i < n; i++) {
      if (!list[i] || waits[i]) continue;
      for (size_t k = 0; k < edges; k++) {
        size_t j = from[k] == list[i] ? index_of(list, n, to[k]) : n;
        if (j < n) waits[j]--;
      }
      out->node[out->n++] = list[i];
      list[i] = NULL;
      moved = true;
    }
  }
}

// Sorts the nodes of a graph into `out`, which the caller frees.
static bool order_of(CUgraph g, Order *out) {
  CUresult (*nodes)(CUgraph, CUgraphNode *, size_t *);
  CUresult (*edges)(CUgraph, CUgraphNode *, CUgraphNode *, size_t *);
  size_t n = 0, m = 0;
  *out = (Order){NULL, 0};
  DRIVER(nodes, "cuGraphGetNodes");
  DRIVER(edges, "cuGraphGetEdges");
  if (!nodes || !edges || nodes(g, NULL, &n) || edges(g, NULL, NULL, &m))
    return false;
  CUgraphNode *list = calloc(2 * n + 2 * m + 1, sizeof *list);
  size_t *waits = calloc(n + 1, sizeof *waits);
  out->node = calloc(n + 1, sizeof *out->node);
  bool ok = list && waits && out->node && (!n || !nodes(g, list, &n)) &&
            (!m || !edges(g, list + n, list + n + m, &m));
  if (ok) sort(list, n, list + n, list + n + m, m, waits, out);
  ok = ok && out->n == n;
  free(list);
  free(waits);
  return ok;
}

static int type_of(CUgraphNode node) {
  CUresult (*type)(CUgraphNode, int *);
  int t = -1;
  DRIVER(type, "cuGraphNodeGetType");
  return type && !type(node, &t) ? t : -1;
}

static bool params_of(CUgraphNode node, NodeParams *p) {
  CUresult (*get)(CUgraphNode, NodeParams *);
  memset(p, 0, sizeof *p);
  DRIVER(get, "cuGraphKernelNodeGetParams_v2");
  if (!get) DRIVER(get, "cuGraphKernelNodeGetParams");
  if (!get || get(node, p)) return false;
  // For a kernel of a CUlibrary, p->kern is the kernel's handle. p->func is
  // then a function that the driver created for the graph, unknown to hooks.c.
  if (!p->func || (p->kern && !kernel_known(p->func))) p->func = p->kern;
  return true;
}

static bool child_of(CUgraphNode node, CUgraph *g) {
  CUresult (*child)(CUgraphNode, CUgraph *);
  DRIVER(child, "cuGraphChildGraphNodeGetGraph");
  return child && !child(node, g);
}

// Reports whether all nodes of a graph can be run one by one. Adds the number
// of its selected kernels to *selected.
static bool examine(CUgraph g, int *selected) {
  Order all;
  bool ok = order_of(g, &all);
  for (size_t i = 0; i < all.n; i++) {
    int type = type_of(all.node[i]);
    NodeParams p;
    CUgraph child;
    bool one = type == COPY_NODE || type == SET_NODE || type == EMPTY_NODE;
    if (type == KERNEL_NODE) {
      one = params_of(all.node[i], &p);
      *selected += one && kernel_selected(p.func);
    } else if (type == GRAPH_NODE) {
      one = child_of(all.node[i], &child) && examine(child, selected);
    }
    ok = ok && one;
  }
  free(all.node);
  return ok;
}

// ---- runs ----

static CUresult run_kernel(CUgraphNode node, CUstream s) {
  static const int ids[] = {CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
                            CU_LAUNCH_ATTRIBUTE_COOPERATIVE};
  CUresult (*get)(CUgraphNode, int, void *);
  CUlaunchAttribute a[2];
  NodeParams p;
  if (!params_of(node, &p)) return 1;
  CUlaunchConfig c = {p.grid[0], p.grid[1], p.grid[2], p.block[0], p.block[1],
                      p.block[2], p.smem, s, a, 0};
  DRIVER(get, "cuGraphKernelNodeGetAttribute");
  memset(a, 0, sizeof a);
  for (int k = 0; k < 2 && get; k++) {
    CUlaunchAttribute *at = &a[c.numAttrs];
    at->id = ids[k];
    // The first word is 0 if the node does not have the attribute.
    if (!get(node, at->id, &at->value) && at->value.cooperative) c.numAttrs++;
    else memset(at, 0, sizeof *at);
  }
  return capture_launch(&c, p.func, p.params, p.extra);
}

static CUresult run_set(CUgraphNode node, CUstream s) {
  CUresult (*get)(CUgraphNode, SetParams *);
  CUresult (*set)(CUdeviceptr, size_t, unsigned, size_t, size_t, CUstream);
  SetParams p;
  DRIVER(get, "cuGraphMemsetNodeGetParams");
  if (!get || get(node, &p)) return 1;
  DRIVER(set, p.bytes == 1 ? "cuMemsetD2D8Async"
              : p.bytes == 2 ? "cuMemsetD2D16Async" : "cuMemsetD2D32Async");
  size_t pitch = p.height > 1 ? p.pitch : p.width * p.bytes;
  return set ? set(p.to, pitch, p.value, p.width, p.height, s) : 1;
}

static CUresult run_copy(CUgraphNode node, CUstream s) {
  CUresult (*get)(CUgraphNode, void *), (*copy)(const void *, CUstream);
  _Alignas(16) char params[256];  // CUDA_MEMCPY3D has 200 bytes
  DRIVER(get, "cuGraphMemcpyNodeGetParams");
  DRIVER(copy, "cuMemcpy3DAsync_v2");
  return !get || !copy || get(node, params) ? 1 : copy(params, s);
}

static CUresult run_nodes(CUgraph g, CUstream s) {
  Order all;
  CUresult r = order_of(g, &all) ? 0 : 1;
  for (size_t i = 0; !r && i < all.n; i++) {
    CUgraphNode node = all.node[i];
    CUgraph child;
    switch (type_of(node)) {
    case KERNEL_NODE: r = run_kernel(node, s); break;
    case SET_NODE: r = run_set(node, s); break;
    case COPY_NODE: r = run_copy(node, s); break;
    case GRAPH_NODE:
      r = child_of(node, &child) ? run_nodes(child, s) : 1;
      break;
    default: break;
    }
  }
  free(all.node);
  return r;
}

bool graph_run(CUgraphExec e, CUstream s, CUresult *result) {
  CUgraph copy = launch_wanted() && !launch_capturing(s) ? copy_of(e) : NULL;
  int selected = 0;
  if (!copy) return false;
  bool whole = examine(copy, &selected);
  if (!whole && selected) {
    warn_once(WARN_GRAPH, "launches of a graph are not recorded: it has nodes "
              "other than kernels, copies and memsets");
  }
  if (!whole || !selected) return false;
  *result = run_nodes(copy, s);
  return true;
}
// SPDX-License-Identifier: MIT
