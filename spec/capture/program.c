// A program that launches kernels of an image, for specs of libcutecapture.
//   program WAY IMAGE KERNEL TIMES
// WAY is how it finds the driver's functions and passes parameters:
//   dlsym    dlsym of libcuda.so.1, cuModuleLoadData, cuLaunchKernel
//   proc     cuGetProcAddress, cuModuleLoadDataEx, cuLaunchKernelEx with a
//            cluster, PDL and the cooperative attribute
//   ptsz     cuGetProcAddress_v2 for the default stream of a thread,
//            cuModuleLoadFatBinary, cuLaunchKernel with a buffer
//   library  cuGetProcAddress_v2, cuLibraryLoadData, a CUkernel
//   cooperative  dlsym, cuLibraryLoadData, cuKernelGetFunction,
//            cuLaunchCooperativeKernel
//   file     dlsym, cuModuleLoad, cuLaunchKernel
//   link     dlsym, cuLinkAddData of PTX, cuModuleLoadData, cuLaunchKernel
//   graph    dlsym, a graph that clears y and launches the kernel twice, the
//            second time with a cluster and a = 0.2
//   host     the same with a host function
//   stream   dlsym, a graph of two launches that a stream captures
//   table    dlsym, y is a table: words 0 to 3 are the address of y, a number,
//            the address of x in another allocation, and the table's address
// The program prints the sums y of the kernel axpy.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fakegraph.h"

typedef CUresult Proc(const char *, void **, int, unsigned long long, int *);

static void *driver;
static Proc *proc;
static unsigned long long flags;

static void *get(const char *name) {
  void *p = NULL;
  if (!proc) p = dlsym(driver, name);
  else if (proc(name, &p, 12000, flags, NULL)) p = NULL;
  if (!p) fprintf(stderr, "no %s\n", name), exit(1);
  return p;
}

#define CALL(type, name, args) \
  do { \
    CUresult (*call) type; \
    *(void **)&call = get(name); \
    if (call args) fprintf(stderr, "%s failed\n", name), exit(1); \
  } while (0)

static void *image_of(const char *path) {
  FILE *f = fopen(path, "rb");
  char *text = calloc(1, 1 << 20);
  if (!f || !fread(text, 1, (1 << 20) - 1, f)) exit(2);
  return fclose(f), text;
}

// Returns the machine code that the driver's linker makes of PTX.
static void *link_image(char *image) {
  void *state, *cubin;
  size_t size;
  CALL((unsigned, void *, void **, void **), "cuLinkCreate_v2",
       (0, NULL, NULL, &state));
  CALL((void *, int, void *, size_t, const char *, unsigned, void *, void **),
       "cuLinkAddData_v2", (state, 1, image, strlen(image), "", 0, NULL, NULL));
  CALL((void *, void **, size_t *), "cuLinkComplete", (state, &cubin, &size));
  return cubin;
}

static CUfunction kernel_of(const char *way, void *image, const char *path,
                            const char *name) {
  CUmodule m;
  void *l, *k;
  CUfunction f;
  if (!strcmp(way, "library") || !strcmp(way, "cooperative")) {
    CALL((void **, const void *, void *, void **, unsigned, void *, void **,
          unsigned), "cuLibraryLoadData", (&l, image, 0, 0, 0, 0, 0, 0));
    CALL((void **, void *, const char *), "cuLibraryGetKernel", (&k, l, name));
    if (!strcmp(way, "library")) return k;
    CALL((CUfunction *, void *), "cuKernelGetFunction", (&f, k));
    return f;
  }
  if (!strcmp(way, "file"))
    CALL((CUmodule *, const char *), "cuModuleLoad", (&m, path));
  else if (!strcmp(way, "link"))
    CALL((CUmodule *, const void *), "cuModuleLoadData",
         (&m, link_image(image)));
  else if (!strcmp(way, "dlsym"))
    CALL((CUmodule *, const void *), "cuModuleLoadData", (&m, image));
  else if (!strcmp(way, "ptsz"))
    CALL((CUmodule *, const void *), "cuModuleLoadFatBinary", (&m, image));
  else
    CALL((CUmodule *, const void *, unsigned, void *, void **),
         "cuModuleLoadDataEx", (&m, image, 0, NULL, NULL));
  memset(image, 'x', 1 << 20);  // an image may change after it was loaded
  CALL((CUfunction *, CUmodule, const char *), "cuModuleGetFunction",
       (&f, m, name));
  return f;
}

// The parameters of each kernel begin like those of axpy. The kernel `packed`
// also has a structure, and `mapped` also a tensor map. The file FAKE_MAP
// contains the tensor map's bytes, whose address is replaced by x.
typedef struct Params {
  CUdeviceptr y, x;
  float a;
  int n;
  struct { CUdeviceptr p; int n; float a; } pack;
  _Alignas(64) CUtensorMap map;
} Params;

static void launch(const char *way, CUfunction f, Params *p) {
  void *params[] = {&p->y, &p->x, &p->a, &p->n, &p->pack, &p->map};
  size_t size = 24;
  void *extra[] = {(void *)1, p, (void *)2, &size, NULL};
  CUlaunchAttribute a[3];
  memset(a, 0, sizeof a);
  a[0].id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
  a[0].value.clusterDim.x = 2;
  a[0].value.clusterDim.y = a[0].value.clusterDim.z = 1;
  a[1].id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE, a[1].value.cooperative = 1;
  a[2].id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
  a[2].value.programmaticStreamSerializationAllowed = 1;
  CUlaunchConfig c = {4, 1, 1, 32, 1, 1, 64, NULL, a, 3};
  if (!strcmp(way, "proc"))
    CALL((const CUlaunchConfig *, CUfunction, void **, void **),
         "cuLaunchKernelEx", (&c, f, params, NULL));
  else if (!strcmp(way, "cooperative"))
    CALL((CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
          unsigned, CUstream, void **), "cuLaunchCooperativeKernel",
         (f, 4, 1, 1, 32, 1, 1, 64, NULL, params));
  else
    CALL((CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
          unsigned, CUstream, void **, void **), "cuLaunchKernel",
         (f, 4, 1, 1, 32, 1, 1, 64, NULL, strcmp(way, "ptsz") ? params : NULL,
          strcmp(way, "ptsz") ? NULL : extra));
}

// Makes a graph whose nodes are added in the order opposite to their
// dependencies. Changes the kernels' parameters after instantiation.
static CUgraphExec graph_of(const char *way, CUfunction f, Params *p) {
  void *params[] = {&p->y, &p->x, &p->a, &p->n};
  KernelNode k = {f, {4, 1, 1}, {32, 1, 1}, 64, params, NULL, NULL, NULL};
  SetNode clear = {p->y, 0, 0, 4, 100, 1};
  CUgraph g;
  CUgraphExec e;
  CUgraphNode n[4];
  unsigned cluster[16] = {2, 1, 1};
  CALL((CUgraph *, unsigned), "cuGraphCreate", (&g, 0));
  for (int i = 0; i < 2; i++)
    CALL((CUgraphNode *, CUgraph, const CUgraphNode *, size_t,
          const KernelNode *), "cuGraphAddKernelNode_v2",
         (&n[i], g, NULL, 0, &k));
  CALL((CUgraphNode *, CUgraph, const CUgraphNode *, size_t, const SetNode *,
        void *), "cuGraphAddMemsetNode", (&n[2], g, NULL, 0, &clear, NULL));
  if (!strcmp(way, "host"))
    CALL((CUgraphNode *, CUgraph, const CUgraphNode *, size_t, const void *),
         "cuGraphAddHostNode", (&n[3], g, NULL, 0, NULL));
  const CUgraphNode from[] = {n[1], n[2]}, to[] = {n[0], n[1]};
  CALL((CUgraph, const CUgraphNode *, const CUgraphNode *, size_t),
       "cuGraphAddDependencies", (g, from, to, 2));
  CALL((CUgraphNode, int, const void *), "cuGraphKernelNodeSetAttribute",
       (n[0], CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, cluster));
  CALL((CUgraphExec *, CUgraph, unsigned long long),
       "cuGraphInstantiateWithFlags", (&e, g, 0));
  p->a = 0.2f;
  CALL((CUgraphExec, CUgraphNode, const KernelNode *),
       "cuGraphExecKernelNodeSetParams_v2", (e, n[0], &k));
  p->a = 7;  // the graph has copies of the parameters
  CALL((CUgraph), "cuGraphDestroy", (g));
  return e;
}

// Makes a graph by capturing a stream.
static CUgraphExec stream_of(CUfunction f, Params *p) {
  CUgraph g;
  CUgraphExec e;
  CALL((CUstream, int), "cuStreamBeginCapture_v2", (NULL, 0));
  for (int i = 0; i < 2; i++) launch("dlsym", f, p);
  CALL((CUstream, CUgraph *), "cuStreamEndCapture", (NULL, &g));
  CALL((CUgraphExec *, CUgraph, unsigned long long),
       "cuGraphInstantiateWithFlags", (&e, g, 0));
  CALL((CUgraph), "cuGraphDestroy", (g));
  return e;
}

int main(int argc, char **argv) {
  float x[100], y[100];
  CUdeviceptr all;
  Params p;
  if (argc < 5) return 3;
  memset(&p, 0, sizeof p);
  driver = dlopen("libcuda.so.1", RTLD_LAZY);
  const char *way = argv[1];
  if (!strcmp(way, "proc")) *(void **)&proc = dlsym(driver, "cuGetProcAddress");
  else if (!strcmp(way, "ptsz") || !strcmp(way, "library"))
    *(void **)&proc = dlsym(driver, "cuGetProcAddress_v2");
  CUfunction f = kernel_of(way, image_of(argv[2]), argv[2], argv[3]);
  CALL((CUdeviceptr *, size_t), proc ? "cuMemAlloc" : "cuMemAlloc_v2",
       (&all, 1024));
  p.y = all, p.x = all + 512, p.a = 0.1f, p.n = 100;
  p.pack.p = p.x, p.pack.n = 100, p.pack.a = 2.5f;
  for (int i = 0; i < 100; i++) x[i] = (float)i, y[i] = 1;
  memset((void *)(uintptr_t)all, 0, 1024);
  memcpy((void *)(uintptr_t)p.x, x, sizeof x);
  memcpy((void *)(uintptr_t)p.y, y, sizeof y);
  if (!strcmp(way, "ptsz")) flags = 2;
  if (!strcmp(way, "table")) {
    CUdeviceptr far, words;
    CALL((CUdeviceptr *, size_t), "cuMemAlloc_v2", (&far, 4096));
    CALL((CUdeviceptr *, size_t), "cuMemAlloc_v2", (&words, 40));
    memset((void *)(uintptr_t)far, 0, 4096);
    memcpy((void *)(uintptr_t)(far + 64), x, sizeof x);
    const CUdeviceptr list[] = {p.y, 12345678901, far + 64, words, 7};
    memcpy((void *)(uintptr_t)words, list, sizeof list);
    p.y = words, p.x = 0;
  }
  if (getenv("FAKE_MAP")) {
    memcpy(&p.map, image_of(getenv("FAKE_MAP")), sizeof p.map);
    memcpy(&p.map, &p.x, 8);
  }
  bool graph = !strcmp(way, "graph") || !strcmp(way, "host");
  bool stream = !strcmp(way, "stream");
  CUgraphExec e = graph ? graph_of(way, f, &p) : stream ? stream_of(f, &p)
                : NULL;
  for (int i = 0; i < atoi(argv[4]); i++) {
    if (e) CALL((CUgraphExec, CUstream), "cuGraphLaunch", (e, NULL));
    else launch(way, f, &p);
  }
  if (e) CALL((CUgraphExec), "cuGraphExecDestroy", (e));
  const float *out = (const float *)(uintptr_t)all;
  printf("%g %g %g\n", (double)out[0], (double)out[50], (double)out[99]);
  return 0;
}
// SPDX-License-Identifier: MIT
