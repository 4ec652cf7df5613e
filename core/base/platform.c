// Shared libraries and threads, with stubs for systems that have none.
#define _GNU_SOURCE
#include "base/platform.h"

#include <glob.h>

#ifdef __EMSCRIPTEN__

#include <emscripten.h>

void *platform_open(const char *file) {
  (void)file;
  return NULL;
}

void *platform_symbol(void *lib, const char *name) {
  (void)lib;
  (void)name;
  return NULL;
}

void platform_path(void *lib, char *out, size_t size) {
  (void)lib;
  if (size) *out = 0;
}

const char *platform_no_libraries(void) {
  return "WebAssembly runs on the CPU and cannot open the libraries of a GPU";
}

int platform_glob_folders(void) { return 0; }

// Returns the number of threads that the web page created for the program and
// stored in Module.threads, or 1.
EM_JS(int, module_threads, (void), { return Module.threads || 1; });

int platform_cores(void) { return module_threads(); }

void platform_signal(pthread_t thread, int sig) {
  (void)thread;
  (void)sig;
}

void platform_end_with_parent(void) {}

#else

#include <dlfcn.h>
#include <link.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

void *platform_open(const char *file) {
  return dlopen(file, RTLD_LAZY | RTLD_LOCAL);
}

void *platform_symbol(void *lib, const char *name) { return dlsym(lib, name); }

void platform_path(void *lib, char *out, size_t size) {
  struct link_map *map = NULL;
  if (size) *out = 0;
  if (dlinfo(lib, RTLD_DI_LINKMAP, &map) == 0 && map)
    snprintf(out, size, "%s", map->l_name);
}

const char *platform_no_libraries(void) { return NULL; }

int platform_glob_folders(void) { return GLOB_ONLYDIR; }

int platform_cores(void) {
  long n = sysconf(_SC_NPROCESSORS_ONLN);
  return n < 1 ? 1 : (int)n;
}

void platform_signal(pthread_t thread, int sig) { pthread_kill(thread, sig); }

void platform_end_with_parent(void) { prctl(PR_SET_PDEATHSIG, SIGKILL); }

#endif
// SPDX-License-Identifier: MIT
