// Shared libraries and threads, with stubs for systems that have none.
#define _GNU_SOURCE
#include "base/platform.h"

#include <glob.h>

void platform_unlock(pthread_mutex_t *const *lock) {
  pthread_mutex_unlock(*lock);
}

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

void platform_adopt(void) {}

void *platform_map(int fd, uint64_t from, size_t n, size_t *all) {
  (void)fd;
  (void)from;
  (void)n;
  (void)all;
  return NULL;
}

void platform_unmap(void *p, size_t all) {
  (void)p;
  (void)all;
}

size_t platform_page(void) { return 4096; }

#else

#include <dlfcn.h>
#include <link.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
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

void platform_adopt(void) { prctl(PR_SET_CHILD_SUBREAPER, 1); }

void *platform_map(int fd, uint64_t from, size_t n, size_t *all) {
  size_t page = platform_page(), most = SIZE_MAX - 2 * page;
  int how = PROT_READ | PROT_WRITE;
  if (n > most || from > INT64_MAX) return NULL;
  size_t whole = (n + page - 1) / page * page;
  char *p = mmap(NULL, whole + page, how, MAP_PRIVATE | MAP_ANONYMOUS |
                 MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) return NULL;
  *all = whole + page;
  if (mmap(p, whole, how, MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE, fd,
           (off_t)from) != MAP_FAILED)
    return p;
  munmap(p, *all);
  return NULL;
}

void platform_unmap(void *p, size_t all) { munmap(p, all); }

size_t platform_page(void) { return (size_t)sysconf(_SC_PAGESIZE); }

#endif
// SPDX-License-Identifier: MIT
