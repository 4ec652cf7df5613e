// Launches the functions of the bundle `sizes` with each of their sizes, then
// with sizes and strides that they reject.
#include "sizes.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void find(void *library, const char *name, void *to) {
  void *f = dlsym(library, name);
  if (!f) exit(2);
  memcpy(to, &f, sizeof f);
}

static void say(const char *name, int status) {
  printf("%s: %s: %s\n", name, sizes_status_name(status), sizes_error());
}

int main(void) {
  void *library = dlopen("libcuda.so.1", RTLD_NOW), *context;
  int(*retain)(void **, int), (*set_current)(void *);
  int(*allocate)(unsigned long long *, size_t);
  unsigned long long at[4];
  int failed = 0;
  if (!library) return 2;
  find(library, "cuDevicePrimaryCtxRetain", &retain);
  find(library, "cuCtxSetCurrent", &set_current);
  find(library, "cuMemAlloc_v2", &allocate);
  if (retain(&context, 0) || set_current(context)) return 2;
  for (int i = 0; i < 4; i++)
    if (allocate(&at[i], 1 << 20)) return 2;
  void *p = (void *)(uintptr_t)at[0], *q = (void *)(uintptr_t)at[1],
       *r = (void *)(uintptr_t)at[2], *work = (void *)(uintptr_t)at[3];
  sizes_tensor x, y, z;
  for (int m = 3; m <= 48; m += 3) {
    x = sizes_matrix(p, SIZES_F32, m, 32);
    x.stride[0] = 2 * m + 32;
    y = sizes_vector(q, SIZES_F32, 3200);
    failed += sizes_rows(&x, &y, 20, NULL) != SIZES_OK;
  }
  for (int m = 8; m <= 128; m += 8) {
    x = sizes_matrix(p, SIZES_BF16, m, 64);
    y = sizes_matrix(q, SIZES_BF16, 64, 64);
    z = sizes_matrix(r, SIZES_BF16, m, 64);
    failed += sizes_hopper(&x, &y, &z, NULL) != SIZES_OK;
  }
  for (int m = 100000; m <= 101000; m += 1000) {
    x = sizes_vector(p, SIZES_F32, m);
    y = sizes_vector(q, SIZES_F32, 1);
    failed += sizes_total(&x, &y, work, 1 << 20, NULL) != SIZES_OK;
  }
  if (failed) printf("%s\n", sizes_error());
  x = sizes_matrix(p, SIZES_F32, 4, 32);
  x.stride[0] = 40;
  y = sizes_vector(q, SIZES_F32, 3200);
  say("between", sizes_rows(&x, &y, 20, NULL));
  x.extent[0] = 51, x.stride[0] = 134;
  say("beyond", sizes_rows(&x, &y, 20, NULL));
  x.extent[0] = 6, x.stride[0] = 45;
  say("stride", sizes_rows(&x, &y, 20, NULL));
  x.rank = 0;
  say("rank", sizes_rows(&x, &y, 20, NULL));
  x = sizes_matrix(p, SIZES_BF16, 72, 64);
  y = sizes_matrix(q, SIZES_BF16, 64, 64);
  z = sizes_matrix(r, SIZES_BF16, 80, 64);
  say("unequal", sizes_hopper(&x, &y, &z, NULL));
  return failed != 0;
}
// SPDX-License-Identifier: MIT
