// Finds and opens the CUDA libraries, and fills their function tables.
#define _POSIX_C_SOURCE 200809L
#include "gpu/dl.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/guard.h"
#include "base/platform.h"
#include "base/signals.h"
#include "gpu/dry.h"

typedef struct Dl {
  // versions: suffixes of lib<name>.so to try in order; "" is no suffix.
  const char *name, *versions[8];
  ErrKind kind;  // kind of the error if the library is not found
  const DlSym *syms;
  void *table;
  int state;  // 0: not tried, 1: loaded, -1: not found (reason in `why`)
  char path[1024];
  Why why;
} Dl;

// ---- search path ----

static const char *env(const char *name) {
  const char *s = getenv(name);
  return s && *s ? s : NULL;
}

// Returns the folder that an environment variable names, or NULL. Ignores a
// relative path, since it would depend on the working directory.
static const char *env_folder(const char *name) {
  const char *s = env(name);
  return s && *s == '/' ? s : NULL;
}

bool dl_disabled(void) {
  const char *s = env("CUTELUA_NO_CUDA");
  return s && strcmp(s, "0") != 0;
}

// Finds the first python3 on PATH, and writes to `out` the folder that contains
// its bin/. Returns false if there is none.
static bool python_prefix(char *out, size_t size) {
  const char *path = env("PATH");
  while (path) {
    size_t n = strcspn(path, ":");
    char exe[900];
    if (n > 4 && n < 800 && *path == '/' &&
        memcmp(path + n - 4, "/bin", 4) == 0) {
      snprintf(exe, sizeof exe, "%.*s/python3", (int)n, path);
      struct stat st;
      if (stat(exe, &st) == 0) {
        snprintf(out, size, "%.*s", (int)(n - 4), path);
        return true;
      }
    }
    path = path[n] ? path + n + 1 : NULL;
  }
  return false;
}

int dl_folders(char out[DL_FOLDERS][1024]) {
  int n = 0;
  const char *roots[] = {env_folder("CUDA_HOME"), env_folder("CUDA_PATH"),
                         "/usr/local/cuda", "/usr/local/cuda-*"};
  for (size_t i = 0; i < sizeof roots / sizeof *roots; i++)
    if (roots[i]) snprintf(out[n++], 1024, "%s/lib64", roots[i]);
  snprintf(out[n++], 1024, "/usr/local/nvidia/lib64");
  char python[900];
  const char *venv = env_folder("VIRTUAL_ENV"), *home = env_folder("HOME");
  const char *conda = env_folder("CONDA_PREFIX");
  // Folders of Python packages: one for each library (nvidia/cuda_nvrtc), or
  // one for all of CUDA 13 (nvidia/cu13).
  static const char site[] = "lib/python3*/site-packages/nvidia/cu*/lib";
  if (venv) snprintf(out[n++], 1024, "%s/%s", venv, site);
  if (conda) {
    snprintf(out[n++], 1024, "%s/lib", conda);
    snprintf(out[n++], 1024, "%s/%s", conda, site);
  }
  if (python_prefix(python, sizeof python))
    snprintf(out[n++], 1024, "%s/%s", python, site);
  if (home) snprintf(out[n++], 1024, "%s/.local/%s", home, site);
  // Debian's Python has dist-packages.
  snprintf(out[n++], 1024,
           "/usr/local/lib/python3*/*-packages/nvidia/cu*/lib");
  snprintf(out[n++], 1024, "/usr/lib/python3/dist-packages/nvidia/cu*/lib");
  return n;
}

// ---- opening ----

static void *open_in(const Dl *lib, const char *folder) {
  for (int i = 0; lib->versions[i]; i++) {
    char file[1200];
    const char *v = lib->versions[i];
    snprintf(file, sizeof file, "%s%slib%s.so%s%s", folder, *folder ? "/" : "",
             lib->name, *v ? "." : "", v);
    void *h = platform_open(file);
    if (h) return h;
  }
  return NULL;
}

static void *open_anywhere(const Dl *lib) {
  void *h = open_in(lib, "");
  char patterns[DL_FOLDERS][1024];
  int n = h ? 0 : dl_folders(patterns);
  for (int i = 0; i < n && !h; i++) {
    glob_t g;
    if (glob(patterns[i], platform_glob_folders(), NULL, &g) == 0)
      // File names are sorted, so the newest version is last.
      for (size_t j = g.gl_pathc; j-- > 0 && !h;)
        h = open_in(lib, g.gl_pathv[j]);
    globfree(&g);
  }
  return h;
}

bool dl_not_found(const char *what, const char *names, ErrKind kind, Why *w) {
  const char *never = platform_no_libraries();
  if (never) return why(w, kind, "%s is not available: %s", what, never);
  return why(w, kind,
             "%s was not found (looked for %s in the loader's path, "
             "$CUDA_HOME, $CUDA_PATH, /usr/local/cuda* and python's nvidia "
             "packages%s)", what, names,
             dl_disabled() ? "; CUTELUA_NO_CUDA hides it" : "");
}

static bool not_found(Dl *lib) {
  char names[300] = "";
  size_t n = 0;
  for (int i = 0; lib->versions[i] && n < sizeof names; i++)
    n += (size_t)snprintf(names + n, sizeof names - n, "%slib%s.so%s%s",
                          i ? ", " : "", lib->name,
                          *lib->versions[i] ? "." : "", lib->versions[i]);
  return dl_not_found(lib->kind == ERR_NOGPU ? "the NVIDIA driver" : "cuBLAS",
                      names, lib->kind, &lib->why);
}

bool dl_table(void *h, const char *path, const DlSym *syms, void *table,
              ErrKind kind, Why *w) {
  for (const DlSym *s = syms; s->name; s++) {
    void *p = platform_symbol(h, s->name);
    if (!p && !s->optional)
      return why(w, kind, "%s is too old: it has no %s", path, s->name);
    memcpy((char *)table + s->offset, &p, sizeof p);
  }
  return true;
}

static bool load(Dl *lib) {
  void *h = platform_no_libraries() ? NULL : open_anywhere(lib);
  if (!h) return not_found(lib);
  platform_path(h, lib->path, sizeof lib->path);
  return dl_table(h, lib->path, lib->syms, lib->table, lib->kind, &lib->why);
}

static void *get(Dl *lib, Why *w) {
  if (guard_now && guard_now->untrusted) {
    why(w, lib->kind, "an untrusted script runs on the simulator only");
    return NULL;
  }
  // Several Lua states may look for a library at the same time.
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_t *const held UNLOCKED_AT_END = &lock;
  pthread_mutex_lock(held);
  static pid_t first;
  if (!first) first = getpid();
  if (lib->state == 1 && first != getpid()) {
    why(w, lib->kind, "the parent process has opened the GPU, which its child "
        "after a fork cannot use\n  fork first, or start a new program");
    return NULL;
  }
  if (dl_disabled()) {
    not_found(lib);
    if (w) *w = lib->why;
    return NULL;
  }
  if (lib->state == 0) {
    SigHold hold;  // Block signals, because constructors of the library may
                   // start threads.
    signals_hold(&hold);
    lib->state = load(lib) ? 1 : -1;
    signals_release(&hold);
  }
  if (lib->state == 1) return lib->table;
  if (w) *w = lib->why;
  return NULL;
}

// ---- the three libraries ----

#define TABLE(Api, FUNCTIONS, var) \
  static Api var; \
  static const DlSym var##_syms[] = {FUNCTIONS(NEEDED_##Api, EXTRA_##Api) \
                                     {NULL, 0, false}}

#define NEEDED_CudaApi(r, f, a) {#f, offsetof(CudaApi, f), false},
#define EXTRA_CudaApi(r, f, a) {#f, offsetof(CudaApi, f), true},
TABLE(CudaApi, CUDA_FUNCTIONS, cuda);
#define NEEDED_CublasApi(r, f, a) {#f, offsetof(CublasApi, f), false},
#define EXTRA_CublasApi(r, f, a) {#f, offsetof(CublasApi, f), true},
TABLE(CublasApi, CUBLAS_FUNCTIONS, cublas);
#define NEEDED_CublasLtApi(r, f, a) {#f, offsetof(CublasLtApi, f), false},
TABLE(CublasLtApi, CUBLASLT_FUNCTIONS, cublaslt);

static Dl cuda_dl = {.name = "cuda", .versions = {"1", ""},
                     .kind = ERR_NOGPU, .syms = cuda_syms, .table = &cuda};
static Dl cublas_dl = {.name = "cublas", .versions = {"13", "12", "11", ""},
                       .kind = ERR_DRIVER, .syms = cublas_syms,
                       .table = &cublas};
static Dl cublaslt_dl = {.name = "cublasLt", .versions = {"13", "12", "11", ""},
                         .kind = ERR_DRIVER, .syms = cublaslt_syms,
                         .table = &cublaslt};

static const CudaApi *dry;

const CudaApi *dl_cuda(Why *w) { return dry ? dry : get(&cuda_dl, w); }

bool dl_is_dry(void) { return dry != NULL; }

bool dl_cuda_open(void) { return cuda_dl.state == 1; }

const char *dl_cuda_path(void) {
  return !dry && dl_cuda_open() ? cuda_dl.path : "";
}

bool dl_dry(int sm, int sms, int smem_kb, const char *name) {
  if (dl_cuda_open()) return false;
  dry = dry_driver(sm, sms, smem_kb, name);
  return true;
}

const CublasLtApi *dl_cublaslt(Why *w) {
  if (!dry) return get(&cublaslt_dl, w);
  why(w, ERR_DRIVER, "cuBLAS needs a GPU");
  return NULL;
}

// Opens libcublasLt first, because libcublas needs it and may not find it. The
// loader uses a library that is already open.
const CublasApi *dl_cublas(Why *w) {
  return dl_cublaslt(w) ? get(&cublas_dl, w) : NULL;
}
// SPDX-License-Identifier: MIT
