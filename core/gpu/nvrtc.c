// Finds the NVRTC libraries of this machine, and chooses among them.
#define _XOPEN_SOURCE 700
#include "gpu/nvrtc.h"

#include <glob.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/platform.h"
#include "base/signals.h"
#include "gpu/dl.h"

#define MOST_FOUND 16

static const char *const versions[] = {"13", "12", "11.2", "11.1", "11.0", "",
                                       NULL};

// found: the NVRTC libraries that were found. order: pointers to these
// libraries, the newest first.
static Nvrtc found[MOST_FOUND], *order[MOST_FOUND];
static int nfound;
static bool searched;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

// ---- driver ----

int nvrtc_driver(void) {
  Why w;
  int version = 0;
  const CudaApi *api = dl_is_dry() ? NULL : dl_cuda(&w);
  return api && api->cuDriverGetVersion(&version) == CUDA_SUCCESS ? version : 0;
}

static bool runs(int driver, int major) {
  return driver <= 0 || major <= driver / 1000;
}

bool nvrtc_loads(int major) {
  return !dl_cuda_open() || runs(nvrtc_driver(), major);
}

// ---- versions by name ----

// Reads the version from the end of a file's name: "libnvrtc.so.12.8.93".
static bool version_of_name(const char *path, const char *stem, int *major,
                            int *minor) {
  const char *name = strrchr(path, '/');
  name = name ? name + 1 : path;
  size_t n = strlen(stem);
  return strncmp(name, stem, n) == 0 &&
         sscanf(name + n, "%d.%d", major, minor) == 2;
}

// Reads the version from the name of the library's file, or from that of the
// accompanying file libnvrtc-builtins, without opening the library. Returns
// false if no name contains the version.
static bool guess_version(Nvrtc *v) {
  char pattern[1100], *real = realpath(v->path, NULL);
  // CUDA 11.2 to 11.8 share one file name, which does not show the version.
  bool ok = real && version_of_name(real, "libnvrtc.so.", &v->major,
                                    &v->minor) && v->major > 11;
  const char *end = real ? strrchr(real, '/') : NULL;
  if (!ok && end) {
    glob_t g;
    snprintf(pattern, sizeof pattern, "%.*s/libnvrtc-builtins.so.*.*",
             (int)(end - real), real);
    int major = 0, minor = 0, count = 0;
    if (glob(pattern, 0, NULL, &g) == 0)
      for (size_t i = 0; i < g.gl_pathc; i++) {
        int a, b;
        if (!version_of_name(g.gl_pathv[i], "libnvrtc-builtins.so.", &a, &b) ||
            (count && a == major && b == minor))
          continue;
        count++, major = a, minor = b;
      }
    globfree(&g);
    ok = count == 1;
    if (ok) v->major = major, v->minor = minor;
  }
  free(real);
  return ok;
}

// ---- opening ----

static const DlSym syms[] = {
#define NEEDED(r, f, a) {#f, offsetof(NvrtcApi, f), false},
#define EXTRA(r, f, a) {#f, offsetof(NvrtcApi, f), true},
  NVRTC_FUNCTIONS(NEEDED, EXTRA)
#undef NEEDED
#undef EXTRA
  {NULL, 0, false}};

// Opens a library, and asks it for its version and targets. If the library
// cannot be used, writes the reason to v->why.
static bool open_it(Nvrtc *v) {
  if (v->tried) return v->open;
  v->tried = true;
  if (!v->lib) v->lib = platform_open(v->path);
  Why w;
  int n = 0;
  if (!v->lib) {
    snprintf(v->why, sizeof v->why, "the loader cannot open it");
  } else if (!dl_table(v->lib, v->path, syms, &v->api, ERR_NONVRTC, &w)) {
    snprintf(v->why, sizeof v->why, "%.390s", w.msg);
  } else if (v->api.nvrtcVersion(&v->major, &v->minor) != NVRTC_SUCCESS) {
    snprintf(v->why, sizeof v->why, "it does not report its version");
  } else {
    v->open = true;
    if (v->api.nvrtcGetNumSupportedArchs && v->api.nvrtcGetSupportedArchs &&
        v->api.nvrtcGetNumSupportedArchs(&n) == NVRTC_SUCCESS && n > 0 &&
        n <= NVRTC_ARCHS &&
        v->api.nvrtcGetSupportedArchs(v->archs) == NVRTC_SUCCESS)
      v->narchs = n;
  }
  return v->open;
}

// ---- search ----

// Adds a library, unless the list already has the file. lib: the handle of the
// library if it is open, else NULL.
static void add(const char *path, void *lib) {
  struct stat st, other;
  bool file = stat(path, &st) == 0;
  if (nfound == MOST_FOUND || (!file && !lib)) return;
  for (int i = 0; i < nfound; i++)
    if (file && stat(found[i].path, &other) == 0 && st.st_ino == other.st_ino &&
        st.st_dev == other.st_dev)
      return;
  Nvrtc *v = order[nfound] = &found[nfound];
  nfound++;
  snprintf(v->path, sizeof v->path, "%s", path);
  v->lib = lib;
  if (!file || !guess_version(v)) open_it(v);
}

static void add_folder(const char *folder) {
  char file[1200];
  for (int i = 0; versions[i]; i++) {
    snprintf(file, sizeof file, "%s/libnvrtc.so%s%s", folder,
             *versions[i] ? "." : "", versions[i]);
    if (access(file, R_OK) == 0) add(file, NULL);
  }
}

static void add_folders(const char *pattern) {
  glob_t g;
  if (glob(pattern, platform_glob_folders(), NULL, &g) == 0)
    // File names are sorted, so the newest version is last.
    for (size_t i = g.gl_pathc; i-- > 0;) add_folder(g.gl_pathv[i]);
  globfree(&g);
}

// Adds the libraries that the loader finds by name: in LD_LIBRARY_PATH, and in
// the system's list of libraries.
static void add_loaders(void) {
  char name[40], path[1024];
  for (int i = 0; versions[i]; i++) {
    snprintf(name, sizeof name, "libnvrtc.so%s%s", *versions[i] ? "." : "",
             versions[i]);
    void *lib = platform_open(name);
    if (!lib) continue;
    platform_path(lib, path, sizeof path);
    add(*path ? path : name, lib);
  }
}

// Adds the library that CUTELUA_NVRTC names. The variable may contain the path
// of the library or of a folder: one with the library, a toolkit, a Python
// environment, or the target of `pip install --target`.
static void add_named(const char *named) {
  static const char *const below[] = {
    "", "/lib64", "/lib", "/nvidia/cu[0-9d]*/lib",
    "/lib/python3*/site-packages/nvidia/cu[0-9d]*/lib"};
  struct stat st;
  if (*named != '/' || stat(named, &st) != 0) return;
  if (!S_ISDIR(st.st_mode)) {
    add(named, NULL);
    return;
  }
  for (size_t i = 0; i < sizeof below / sizeof *below; i++) {
    char pattern[1100];
    snprintf(pattern, sizeof pattern, "%.1000s%s", named, below[i]);
    add_folders(pattern);
  }
}

static bool newer(const Nvrtc *a, const Nvrtc *b) {
  return a->major != b->major ? a->major > b->major : a->minor > b->minor;
}

// Sorts the list: newest first, and equal versions in the order of the search.
static void sort(void) {
  for (int i = 1; i < nfound; i++) {
    Nvrtc *v = order[i];
    int j = i;
    for (; j > 0 && newer(v, order[j - 1]); j--) order[j] = order[j - 1];
    order[j] = v;
  }
}

static const char *named_one(void) {
  const char *s = getenv("CUTELUA_NVRTC");
  return s && *s ? s : NULL;
}

static void search(void) {
  if (searched) return;
  searched = true;
  if (dl_disabled() || platform_no_libraries()) return;
  const char *named = named_one();
  if (named) {
    add_named(named);
  } else {
    char patterns[DL_FOLDERS][1024];
    int n = dl_folders(patterns);
    add_loaders();
    for (int i = 0; i < n; i++) add_folders(patterns[i]);
  }
  sort();
}

// ---- choice ----

static bool knows(const Nvrtc *v, const char *arch) {
  int sm = 0;
  const char *digits = arch ? strchr(arch, '_') : NULL;
  if (!digits || sscanf(digits + 1, "%d", &sm) != 1 || !v->narchs) return true;
  for (int i = 0; i < v->narchs; i++)
    if (v->archs[i] == sm) return true;
  return false;
}

// If a library's version is known to be too new for the driver, writes the
// reason to v->why and returns true.
static bool too_new(Nvrtc *v, int driver) {
  if (v->major == 0 || runs(driver, v->major)) return false;
  snprintf(v->why, sizeof v->why, "its code needs a driver for CUDA %d; this "
           "driver is for CUDA %d.%d", v->major, driver / 1000,
           driver % 1000 / 10);
  return true;
}

// Opens the libraries, newest first, until one can be used. Sorts the list
// again if an opened library has another version than its file name says.
static Nvrtc *choose(const char *arch) {
  int driver = nvrtc_driver(), at = 0;
  Nvrtc *stranger = NULL, *last = NULL;
  for (; at < nfound; at++) {
    Nvrtc *v = order[at];
    bool tried = v->tried;
    int major = v->major, minor = v->minor;
    if (too_new(v, driver)) {
      last = v;
      continue;
    }
    if (!open_it(v)) continue;
    if (!tried && (major != v->major || minor != v->minor)) {
      sort();
      stranger = last = NULL;
      at = -1;
      continue;
    }
    if (knows(v, arch)) return v;
    if (!stranger) stranger = v;
  }
  if (stranger) return stranger;
  // Use the oldest library, although the driver may be unable to load its code.
  // Other uses, such as `--emit ptx`, need no driver.
  return last && open_it(last) ? last : NULL;
}

static bool none(Why *w) {
  const char *named = named_one();
  bool can = !dl_disabled() && !platform_no_libraries();
  char list[700] = "";
  size_t n = 0;
  for (int i = 0; i < nfound && n + 1 < sizeof list; i++)
    n += (size_t)snprintf(list + n, sizeof list - n, "%s%s: %s", n ? "; " : "",
                          order[i]->path, order[i]->why);
  if (can && nfound)
    return why(w, ERR_NONVRTC, "no NVRTC can be used: %s", list);
  if (can && named)
    return why(w, ERR_NONVRTC, "NVRTC was not found: CUTELUA_NVRTC=%.500s is "
               "not the absolute path of a libnvrtc.so or of a folder with one",
               named);
  return dl_not_found("NVRTC", "libnvrtc.so.13, libnvrtc.so.12, "
                      "libnvrtc.so.11.2, libnvrtc.so.11.1, libnvrtc.so.11.0, "
                      "libnvrtc.so", ERR_NONVRTC, w);
}

const Nvrtc *nvrtc_pick(const char *arch, Why *w) {
  SigHold hold;  // Block signals, because constructors of the libraries may
                 // start threads.
  signals_hold(&hold);
  pthread_mutex_lock(&lock);
  search();
  const Nvrtc *v = choose(arch);
  if (!v) none(w);
  pthread_mutex_unlock(&lock);
  signals_release(&hold);
  return v;
}

int nvrtc_list(const Nvrtc *list[], int most) {
  Why w;
  nvrtc_pick(NULL, &w);
  int n = nfound < most ? nfound : most;
  for (int i = 0; i < n; i++) list[i] = order[i];
  return n;
}

// ---- fingerprint of the choice ----

static uint64_t hash_stat(uint64_t h, const char *path) {
  struct stat st;
  if (stat(path, &st) != 0) return h;
  int64_t t[3] = {(int64_t)st.st_mtim.tv_sec, (int64_t)st.st_mtim.tv_nsec,
                  (int64_t)st.st_ino};
  return base_hash(h, t, sizeof t);
}

// Hashes the version of the driver's kernel module, which a file contains, so
// that the driver need not be opened.
static uint64_t hash_driver(uint64_t h) {
  char text[200];
  FILE *f = fopen("/proc/driver/nvidia/version", "re");
  if (!f) return h;
  size_t n = fread(text, 1, sizeof text, f);
  fclose(f);
  return base_hash(h, text, n);
}

static uint64_t fingerprint(void) {
  static const char *const names[] = {
    "LD_LIBRARY_PATH", "CUTELUA_NVRTC", "CUDA_HOME", "CUDA_PATH",
    "VIRTUAL_ENV", "CONDA_PREFIX", "PATH", "HOME"};
  static const char *const files[] = {"/etc/ld.so.cache", "/usr/local",
                                      "/usr/local/cuda/lib64/"};
  uint64_t h = HASH_INIT;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    const char *s = getenv(names[i]);
    h = base_hash(h, s ? s : "", (s ? strlen(s) : 0) + 1);
  }
  for (size_t i = 0; i < sizeof files / sizeof *files; i++)
    h = hash_stat(h, files[i]);
  char patterns[DL_FOLDERS][1024];
  int n = dl_folders(patterns);
  for (int i = 0; i < n; i++) {
    glob_t g;
    // Installing or replacing a package changes the time of its folder.
    if (strstr(patterns[i], "/nvidia/") &&
        glob(patterns[i], platform_glob_folders(), NULL, &g) == 0) {
      for (size_t k = 0; k < g.gl_pathc; k++) h = hash_stat(h, g.gl_pathv[k]);
      globfree(&g);
    }
  }
  return hash_driver(h);
}

uint64_t nvrtc_fingerprint(void) {
  static bool known;
  static uint64_t hash;
  pthread_mutex_lock(&lock);
  if (!known) hash = fingerprint();
  known = true;
  uint64_t h = hash;
  pthread_mutex_unlock(&lock);
  return h;
}
// SPDX-License-Identifier: MIT
