// Finds the driver's own functions, which hooks.c replaces. Prints warnings.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>

#include "capture/inside.h"

void warn_once(int which, const char *format, ...) {
  static atomic_int said[WARNINGS];
  va_list args;
  if (atomic_exchange(&said[which], 1)) return;
  char text[1024];
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  fprintf(stderr, "cutecapture: %s\n", text);
}

Dlsym *real_dlsym(void) {
  static const char *const versions[] = {"GLIBC_2.34", "GLIBC_2.17",
                                         "GLIBC_2.2.5"};
  static Dlsym *real;
  // libcutecapture replaces dlsym, but not dlvsym
  for (int i = 0; i < 3 && !real; i++)
    *(void **)(void *)&real = dlvsym(RTLD_NEXT, "dlsym", versions[i]);
  return real;
}

static void *driver_library(void) {
  static void *_Atomic library;
  void *lib = library;
  if (!lib) library = lib = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  if (!lib) library = lib = dlopen("libcuda.so.1", RTLD_LAZY);
  return lib;
}

void *driver_function(const char *name) {
  void *lib = driver_library();
  Dlsym *real = real_dlsym();
  return lib && real ? real(lib, name) : NULL;
}
// SPDX-License-Identifier: MIT
