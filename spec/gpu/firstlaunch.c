// Ends a process when its first kernel has run, for spec/bench/cold.lua. It is
// preloaded, and replaces dlsym, through which cutelua finds cuLaunchKernel and
// cuLaunchKernelEx in the CUDA driver. The exit code is 3 if the kernel failed.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>
#include <unistd.h>

typedef unsigned U;
typedef int Launch(void *f, U gx, U gy, U gz, U bx, U by, U bz, U shared,
                   void *stream, void **params, void **extra);
typedef int LaunchEx(const void *config, void *f, void **params, void **extra);

// The functions of the driver. They return 0 if they succeed.
static Launch *launch;
static LaunchEx *launch_ex;
static int (*synchronize)(void);

static int end(int result) {
  if (!result) result = synchronize();
  _exit(result ? 3 : 0);
}

static int first(void *f, U gx, U gy, U gz, U bx, U by, U bz, U shared,
                 void *stream, void **params, void **extra) {
  return end(launch(f, gx, gy, gz, bx, by, bz, shared, stream, params, extra));
}

static int first_ex(const void *config, void *f, void **params, void **extra) {
  return end(launch_ex(config, f, params, extra));
}

void *dlsym(void *lib, const char *name) {
  static void *(*find)(void *lib, const char *name);
  if (!find) find = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34");
  if (!find) find = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
  void *p = find(lib, name);
  if (!p) return NULL;
  if (!strcmp(name, "cuCtxSynchronize")) synchronize = p;
  if (!strcmp(name, "cuLaunchKernel")) {
    launch = p;
    return first;
  }
  if (!strcmp(name, "cuLaunchKernelEx")) {
    launch_ex = p;
    return first_ex;
  }
  return p;
}
// SPDX-License-Identifier: MIT
