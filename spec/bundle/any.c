// Launches the functions of the bundle `any` with many sizes, then with sizes
// and tensors that they reject.
#include "any.h"

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
  printf("%s: %s: %s\n", name, any_status_name(status), any_error());
}

static void *p, *q, *r, *s;

static int product(int64_t m, int64_t rows) {
  any_tensor a = any_matrix(p, ANY_BF16, m, 64);
  any_tensor b = any_matrix(q, ANY_BF16, 96, 64);
  any_tensor bias = any_vector(r, ANY_F32, 96);
  any_tensor d = any_matrix(s, ANY_BF16, rows, 96);
  return any_product(&a, &b, &bias, &d, NULL);
}

static int fused9(int64_t m) {
  any_tensor x = any_matrix(p, ANY_F32, m, 9), y = any_matrix(q, ANY_F32, m, 9);
  any_tensor w = any_vector(r, ANY_F32, 9), d = any_matrix(s, ANY_F32, m, 9);
  return any_fused9(&x, &y, &w, &d, NULL);
}

static int line(int64_t m) {
  any_tensor x = any_vector(p, ANY_F32, m), d = any_vector(s, ANY_F32, m);
  return any_line(&x, &d, NULL);
}

static int mixed(int64_t m) {
  any_tensor a = any_matrix(p, ANY_BF16, m, 256);
  any_tensor b = any_matrix(q, ANY_BF16, 512, 256);
  any_tensor d = any_matrix(s, ANY_BF16, m, 512);
  return any_mixed(&a, &b, &d, NULL);
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
    if (allocate(&at[i], 1 << 24)) return 2;
  p = (void *)(uintptr_t)at[0], q = (void *)(uintptr_t)at[1];
  r = (void *)(uintptr_t)at[2], s = (void *)(uintptr_t)at[3];
  for (int64_t m = 1; m < 70000; m += m < 400 ? 1 : 997) {
    failed += product(m, m) != ANY_OK;
    failed += fused9(m) != ANY_OK;
    failed += line(4 * m) != ANY_OK;
  }
  for (int64_t m = 255; m <= 257; m++) failed += mixed(m) != ANY_OK;
  if (failed) printf("%s\n", any_error());
  say("none", product(0, 0));
  say("negative", product(-1, -1));
  say("unequal", product(7, 8));
  say("large", product((int64_t)1 << 30, (int64_t)1 << 30));
  say("step", line(6));
  return failed != 0;
}
// SPDX-License-Identifier: MIT
