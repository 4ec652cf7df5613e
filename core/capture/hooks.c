// Driver functions that the library replaces: those that load modules, find
// kernels and launch them. Programs find these functions as symbols, by dlsym,
// or by cuGetProcAddress, so the library also replaces dlsym and
// cuGetProcAddress.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture/inside.h"

#define EXPORT __attribute__((visibility("default")))

typedef void *CUlibrary, *CUkernel;

// ---- handles of modules and kernels ----

typedef struct Known {
  struct Known *next;
  const void *handle;
  // the object of this handle; its name is NULL for modules and libraries
  Kernel k;
} Known;

static Known *known[4096];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static Known **slot(const void *handle) {
  return &known[((uintptr_t)handle >> 4) % 4096];
}

// Records the object that belongs to a handle of a module, library or kernel. A
// later handle with the same address hides an earlier one.
static void know(const void *handle, const Kernel *k) {
  Known *e = calloc(1, sizeof *e);
  if (!e) return;
  e->handle = handle, e->k = *k;
  if (k->name) e->k.name = strdup(k->name);
  pthread_mutex_lock(&lock);
  e->next = *slot(handle);
  *slot(handle) = e;
  pthread_mutex_unlock(&lock);
}

static bool known_of(const void *handle, Kernel *k) {
  pthread_mutex_lock(&lock);
  const Known *e = *slot(handle);
  while (e && e->handle != handle) e = e->next;
  if (e) *k = e->k;
  pthread_mutex_unlock(&lock);
  return e != NULL;
}

// Records a module or library with its image.
static void keep(const void *handle, const Image *image, bool library) {
  Kernel k = {image, NULL, NULL, NULL};
  if (library) k.library = (void *)(uintptr_t)handle;
  else k.module = (CUmodule)(uintptr_t)handle;
  if (k.image) know(handle, &k);
}

// Records a module or library that was loaded from memory. If the memory is a
// result of cuLinkComplete, its recorded image is the PTX that was linked.
static void loaded(const void *handle, const void *data, bool library) {
  Kernel linked;
  if (!launch_wanted()) return;
  bool known_link = known_of(data, &linked) && linked.library == data;
  keep(handle, known_link ? linked.image : image_new(data), library);
}

// Records a kernel of the module or library `of`.
static void found(const void *handle, const void *of, const char *name) {
  Kernel k;
  if (!launch_wanted() || !known_of(of, &k)) return;
  k.name = (char *)(uintptr_t)name;
  know(handle, &k);
}

// Asks the driver for the image and name of a kernel. The program may have
// found the kernel by a function without a hook, such as
// cuModuleEnumerateFunctions.
static bool ask(CUfunction f, Kernel *k) {
  CUresult (*name_of)(const char **, const void *);
  CUresult (*module_of)(void **, const void *);
  const char *name = NULL;
  void *of = NULL;
  static const char *const ways[2][2] = {
    {"cuFuncGetName", "cuFuncGetModule"},
    {"cuKernelGetName", "cuKernelGetLibrary"}};
  for (int i = 0; i < 2; i++) {
    DRIVER(name_of, ways[i][0]);
    DRIVER(module_of, ways[i][1]);
    if (!name_of || !module_of || name_of(&name, f) || module_of(&of, f) ||
        !name || !known_of(of, k))
      continue;
    found(f, of, name);
    return known_of(f, k);
  }
  return false;
}

// Finds the image and the name of a kernel.
static bool kernel_of(CUfunction f, Kernel *k) {
  return (known_of(f, k) && k->name) || ask(f, k);
}

bool kernel_known(CUfunction f) {
  Kernel k;
  return kernel_of(f, &k);
}

// Finds the image and the name of a kernel that is about to be launched. Warns
// if they are unknown.
static bool launched(CUfunction f, Kernel *k) {
  if (kernel_of(f, k)) return true;
  warn_once(WARN_KERNEL, "a launch is not recorded: its kernel was loaded in a "
            "way that is not observed");
  return false;
}

bool kernel_selected(CUfunction f) {
  Kernel k;
  return launched(f, &k) && launch_selects(k.name);
}

static int before(CUfunction f, const CUlaunchConfig *c, void **params,
                  void **extra) {
  Kernel k;
  if (!launch_wanted() || !launched(f, &k)) return 0;
  return launch_before(&k, f, c, params, extra);
}

// ---- the hooks ----

// HOOKS lists the hooks: H(name, parameters). The macros before it are
// parameter lists that several functions share.
#define LAUNCH_ARGS \
  (CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, \
   unsigned by, unsigned bz, unsigned smem, CUstream s, void **p, void **extra)
#define COOPERATIVE_ARGS \
  (CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, \
   unsigned by, unsigned bz, unsigned smem, CUstream s, void **p)
#define EX_ARGS (const CUlaunchConfig *c, CUfunction f, void **p, void **extra)
#define LINK_ARGS \
  (void *state, int type, void *data, size_t size, const char *name, \
   unsigned n, void *options, void **values)
#define INSTANTIATE_ARGS \
  (CUgraphExec *e, CUgraph g, CUgraphNode *bad, char *log, size_t size)
#define HOOKS(H) \
  H(cuModuleLoadData, (CUmodule *m, const void *image)) \
  H(cuModuleLoadDataEx, (CUmodule *m, const void *image, unsigned n, \
                         void *options, void **values)) \
  H(cuModuleLoadFatBinary, (CUmodule *m, const void *image)) \
  H(cuModuleLoad, (CUmodule *m, const char *path)) \
  H(cuLinkAddData_v2, LINK_ARGS) \
  H(cuLinkComplete, (void *state, void **cubin, size_t *size)) \
  H(cuLibraryLoadData, (CUlibrary *l, const void *image, void *jit, void **jv, \
                        unsigned nj, void *options, void **values, \
                        unsigned n)) \
  H(cuModuleGetFunction, (CUfunction *f, CUmodule m, const char *name)) \
  H(cuLibraryGetKernel, (CUkernel *k, CUlibrary l, const char *name)) \
  H(cuLibraryGetModule, (CUmodule *m, CUlibrary l)) \
  H(cuKernelGetFunction, (CUfunction *f, CUkernel k)) \
  H(cuLaunchKernel, LAUNCH_ARGS) H(cuLaunchKernel_ptsz, LAUNCH_ARGS) \
  H(cuLaunchKernelEx, EX_ARGS) H(cuLaunchKernelEx_ptsz, EX_ARGS) \
  H(cuLaunchCooperativeKernel, COOPERATIVE_ARGS) \
  H(cuLaunchCooperativeKernel_ptsz, COOPERATIVE_ARGS) \
  H(cuGraphInstantiate, INSTANTIATE_ARGS) \
  H(cuGraphInstantiate_v2, INSTANTIATE_ARGS) \
  H(cuGraphInstantiateWithFlags, (CUgraphExec *e, CUgraph g, \
                                  unsigned long long options)) \
  H(cuGraphInstantiateWithParams, (CUgraphExec *e, CUgraph g, void *options)) \
  H(cuGraphInstantiateWithParams_ptsz, (CUgraphExec *e, CUgraph g, \
                                        void *options)) \
  H(cuGraphExecUpdate, (CUgraphExec e, CUgraph g, CUgraphNode *bad, \
                        int *why)) \
  H(cuGraphExecUpdate_v2, (CUgraphExec e, CUgraph g, void *why)) \
  H(cuGraphExecKernelNodeSetParams, (CUgraphExec e, CUgraphNode node, \
                                     const void *params)) \
  H(cuGraphExecKernelNodeSetParams_v2, (CUgraphExec e, CUgraphNode node, \
                                        const void *params)) \
  H(cuGraphExecDestroy, (CUgraphExec e)) \
  H(cuGraphLaunch, (CUgraphExec e, CUstream s)) \
  H(cuGraphLaunch_ptsz, (CUgraphExec e, CUstream s)) \
  H(cuGetProcAddress, (const char *name, void **p, int version, \
                       unsigned long long flags)) \
  H(cuGetProcAddress_v2, (const char *name, void **p, int version, \
                          unsigned long long flags, int *status))

#define H(name, params) EXPORT CUresult name params;
HOOKS(H)
#undef H
EXPORT void *dlsym(void *handle, const char *name);

typedef struct Hook {
  const char *name;
  void *ours;
  void *_Atomic real;
} Hook;

#define H(name, params) {#name, NULL, NULL},
static Hook hooks[] = {HOOKS(H)};
#undef H
enum { HOOKED = sizeof hooks / sizeof *hooks };

__attribute__((constructor)) static void start(void) {
  int i = 0;
  real_dlsym();
#define H(name, params) \
  { \
    CUresult (*p) params = name; \
    memcpy(&hooks[i++].ours, &p, sizeof p); \
  }
  HOOKS(H)
#undef H
}

static Hook *hook_of(const char *name) {
  if (name[0] != 'c' || name[1] != 'u') return NULL;
  for (int i = 0; i < HOOKED; i++)
    if (strcmp(hooks[i].name, name) == 0) return &hooks[i];
  return NULL;
}

static void *real_of(const char *name) {
  Hook *h = hook_of(name);
  if (!h->real) h->real = driver_function(name);
  return h->real;
}

// Declares `real`, a pointer to the driver's function. If the driver lacks the
// function, returns CUDA's error code for a missing symbol.
#define REAL(name, params) \
  CUresult (*real) params; \
  *(void **)(void *)&real = real_of(#name); \
  if (!real) return 500

CUresult cuModuleLoadData(CUmodule *m, const void *image) {
  REAL(cuModuleLoadData, (CUmodule *, const void *));
  CUresult r = real(m, image);
  if (!r) loaded(*m, image, false);
  return r;
}

CUresult cuModuleLoadDataEx(CUmodule *m, const void *image, unsigned n,
                            void *options, void **values) {
  REAL(cuModuleLoadDataEx, (CUmodule *, const void *, unsigned, void *,
                            void **));
  CUresult r = real(m, image, n, options, values);
  if (!r) loaded(*m, image, false);
  return r;
}

CUresult cuModuleLoadFatBinary(CUmodule *m, const void *image) {
  REAL(cuModuleLoadFatBinary, (CUmodule *, const void *));
  CUresult r = real(m, image);
  if (!r) loaded(*m, image, false);
  return r;
}

CUresult cuModuleLoad(CUmodule *m, const char *path) {
  REAL(cuModuleLoad, (CUmodule *, const char *));
  CUresult r = real(m, path);
  if (!r && launch_wanted()) keep(*m, image_file(path), false);
  return r;
}

// ---- the driver's linker, which returns machine code ----

enum { LINK_PTX = 1 };  // CU_JIT_INPUT_PTX

CUresult cuLinkAddData_v2 LINK_ARGS {
  REAL(cuLinkAddData_v2, LINK_ARGS);
  CUresult r = real(state, type, data, size, name, n, options, values);
  char *text = !r && type == LINK_PTX && launch_wanted() ? malloc(size + 1)
             : NULL;
  if (text) {
    memcpy(text, data, size);
    text[size] = 0;
    if (size >= 4) keep(state, image_new(text), true);
    free(text);
  }
  return r;
}

CUresult cuLinkComplete(void *state, void **cubin, size_t *size) {
  Kernel k;
  REAL(cuLinkComplete, (void *, void **, size_t *));
  CUresult r = real(state, cubin, size);
  if (!r && launch_wanted() && known_of(state, &k)) keep(*cubin, k.image, true);
  return r;
}

CUresult cuLibraryLoadData(CUlibrary *l, const void *image, void *jit,
                           void **jv, unsigned nj, void *options,
                           void **values, unsigned n) {
  REAL(cuLibraryLoadData, (CUlibrary *, const void *, void *, void **, unsigned,
                           void *, void **, unsigned));
  CUresult r = real(l, image, jit, jv, nj, options, values, n);
  if (!r) loaded(*l, image, true);
  return r;
}

CUresult cuModuleGetFunction(CUfunction *f, CUmodule m, const char *name) {
  REAL(cuModuleGetFunction, (CUfunction *, CUmodule, const char *));
  CUresult r = real(f, m, name);
  if (!r) found(*f, m, name);
  return r;
}

CUresult cuLibraryGetKernel(CUkernel *k, CUlibrary l, const char *name) {
  REAL(cuLibraryGetKernel, (CUkernel *, CUlibrary, const char *));
  CUresult r = real(k, l, name);
  if (!r) found(*k, l, name);
  return r;
}

CUresult cuLibraryGetModule(CUmodule *m, CUlibrary l) {
  Kernel k;
  REAL(cuLibraryGetModule, (CUmodule *, CUlibrary));
  CUresult r = real(m, l);
  if (!r && launch_wanted() && known_of(l, &k)) {
    k.module = *m;
    know(*m, &k);
  }
  return r;
}

CUresult cuKernelGetFunction(CUfunction *f, CUkernel of) {
  Kernel k;
  REAL(cuKernelGetFunction, (CUfunction *, CUkernel));
  CUresult r = real(f, of);
  if (!r && launch_wanted() && known_of(of, &k)) know(*f, &k);
  return r;
}

// ---- launches ----

#define CONFIG {gx, gy, gz, bx, by, bz, smem, s, NULL, 0}

#define LAUNCH(name) \
  CUresult name LAUNCH_ARGS { \
    REAL(name, LAUNCH_ARGS); \
    CUlaunchConfig c = CONFIG; \
    int record = before(f, &c, p, extra); \
    CUresult r = real(f, gx, gy, gz, bx, by, bz, smem, s, p, extra); \
    if (record) launch_after(record); \
    return r; \
  }
LAUNCH(cuLaunchKernel)
LAUNCH(cuLaunchKernel_ptsz)

#define EX(name) \
  CUresult name EX_ARGS { \
    REAL(name, EX_ARGS); \
    int record = before(f, c, p, extra); \
    CUresult r = real(c, f, p, extra); \
    if (record) launch_after(record); \
    return r; \
  }
EX(cuLaunchKernelEx)
EX(cuLaunchKernelEx_ptsz)

#define COOPERATIVE(name) \
  CUresult name COOPERATIVE_ARGS { \
    REAL(name, COOPERATIVE_ARGS); \
    CUlaunchConfig c = CONFIG; \
    CUlaunchAttribute a; \
    memset(&a, 0, sizeof a); \
    a.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE, a.value.cooperative = 1; \
    c.attrs = &a, c.numAttrs = 1; \
    int record = before(f, &c, p, NULL); \
    CUresult r = real(f, gx, gy, gz, bx, by, bz, smem, s, p); \
    if (record) launch_after(record); \
    return r; \
  }
COOPERATIVE(cuLaunchCooperativeKernel)
COOPERATIVE(cuLaunchCooperativeKernel_ptsz)

CUresult capture_launch(const CUlaunchConfig *c, CUfunction f, void **params,
                        void **extra) {
  return cuLaunchKernelEx(c, f, params, extra);
}

// ---- graphs ----

// Defines a hook that calls the driver's function and, if it succeeded,
// executes the statement `then`.
#define AFTER(name, params, args, then) \
  CUresult name params { \
    REAL(name, params); \
    CUresult r = real args; \
    if (!r) then; \
    return r; \
  }
AFTER(cuGraphInstantiate, INSTANTIATE_ARGS, (e, g, bad, log, size),
      graph_keep(*e, g))
AFTER(cuGraphInstantiate_v2, INSTANTIATE_ARGS, (e, g, bad, log, size),
      graph_keep(*e, g))
AFTER(cuGraphInstantiateWithFlags,
      (CUgraphExec *e, CUgraph g, unsigned long long options), (e, g, options),
      graph_keep(*e, g))
AFTER(cuGraphInstantiateWithParams, (CUgraphExec *e, CUgraph g, void *options),
      (e, g, options), graph_keep(*e, g))
AFTER(cuGraphInstantiateWithParams_ptsz,
      (CUgraphExec *e, CUgraph g, void *options), (e, g, options),
      graph_keep(*e, g))
AFTER(cuGraphExecUpdate,
      (CUgraphExec e, CUgraph g, CUgraphNode *bad, int *why), (e, g, bad, why),
      graph_keep(e, g))
AFTER(cuGraphExecUpdate_v2, (CUgraphExec e, CUgraph g, void *why), (e, g, why),
      graph_keep(e, g))
AFTER(cuGraphExecKernelNodeSetParams,
      (CUgraphExec e, CUgraphNode node, const void *params), (e, node, params),
      graph_change(e, node, params))
AFTER(cuGraphExecKernelNodeSetParams_v2,
      (CUgraphExec e, CUgraphNode node, const void *params), (e, node, params),
      graph_change(e, node, params))
AFTER(cuGraphExecDestroy, (CUgraphExec e), (e), graph_forget(e))

#define GRAPH_LAUNCH(name) \
  CUresult name(CUgraphExec e, CUstream s) { \
    REAL(name, (CUgraphExec, CUstream)); \
    CUresult r; \
    return graph_run(e, s, &r) ? r : real(e, s); \
  }
GRAPH_LAUNCH(cuGraphLaunch)
GRAPH_LAUNCH(cuGraphLaunch_ptsz)

// ---- look-ups ----

// Returns the driver's symbol of a function whose parameters changed in CUDA
// 12, for the given CUDA version.
static const char *symbol_of(const char *name, int version) {
  static const char *const changed[][3] = {
    {"cuGetProcAddress", "cuGetProcAddress", "cuGetProcAddress_v2"},
    {"cuGraphInstantiate", "cuGraphInstantiate_v2",
     "cuGraphInstantiateWithFlags"},
    {"cuGraphExecUpdate", "cuGraphExecUpdate", "cuGraphExecUpdate_v2"},
    {"cuGraphExecKernelNodeSetParams", "cuGraphExecKernelNodeSetParams",
     "cuGraphExecKernelNodeSetParams_v2"},
    {"cuLinkAddData", "cuLinkAddData_v2", "cuLinkAddData_v2"}};
  int column = version >= 12000 ? 2 : 1;
  for (size_t k = 0; name && k < sizeof changed / sizeof *changed; k++)
    if (strcmp(name, changed[k][0]) == 0) return changed[k][column];
  return name;
}

// If cuGetProcAddress found a function that has a hook, sets *p to the hook.
// Bit 1 of `flags` requests the variant for the per-thread default stream.
static void replace(const char *name, void **p, int version,
                    unsigned long long flags) {
  char variant[128];
  const char *suffix = flags & 2 ? "_ptsz" : "";
  name = symbol_of(name, version);
  if (!name || !p || !*p) return;
  snprintf(variant, sizeof variant, "%s%s", name, suffix);
  Hook *h = hook_of(variant);
  if (!h && *suffix) h = hook_of(name);
  if (!h) return;
  if (!h->real) h->real = *p;
  *p = h->ours;
}

CUresult cuGetProcAddress(const char *name, void **p, int version,
                          unsigned long long flags) {
  REAL(cuGetProcAddress, (const char *, void **, int, unsigned long long));
  CUresult r = real(name, p, version, flags);
  if (!r) replace(name, p, version, flags);
  return r;
}

CUresult cuGetProcAddress_v2(const char *name, void **p, int version,
                             unsigned long long flags, int *status) {
  REAL(cuGetProcAddress_v2, (const char *, void **, int, unsigned long long,
                             int *));
  CUresult r = real(name, p, version, flags, status);
  if (!r) replace(name, p, version, flags);
  return r;
}

// The C library's dlsym identifies its caller by the return address. The call
// of `real` must therefore be a jump, which -foptimize-sibling-calls (Makefile)
// ensures.
void *dlsym(void *handle, const char *name) {
  Dlsym *real = real_dlsym();
  Hook *h = hook_of(name);
  if (!h || handle == RTLD_NEXT || handle == RTLD_DEFAULT)
    return real(handle, name);
  void *p = real(handle, name);
  Dl_info at;
  if (!p || !dladdr(p, &at) || !at.dli_fname ||
      !strstr(at.dli_fname, "libcuda.so"))
    return p;
  if (!h->real) h->real = p;
  return h->ours;
}
// SPDX-License-Identifier: MIT
