// Launches the functions of the bundle `unit` that accept any extents, with
// many extents.
#include "unit.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(void) {
  void *library = dlopen("libcuda.so.1", RTLD_NOW), *p;
  int(*retain)(void **, int), (*set_current)(void *);
  void *context;
  char *memory = (char *)aligned_alloc(256, 1 << 20);
  int failed = 0;
  if (!library || !memory) return 2;
  p = dlsym(library, "cuDevicePrimaryCtxRetain");
  memcpy(&retain, &p, sizeof p);
  p = dlsym(library, "cuCtxSetCurrent");
  memcpy(&set_current, &p, sizeof p);
  if (retain(&context, 0) || set_current(context)) return 2;
  for (int i = 1; i <= 20; i++) {
    unit_tensor x = unit_vector(memory, UNIT_F32, 4 * i * i), y = x;
    y.data = memory + (1 << 19);
    failed += unit_axpy(&x, &y, (float)i, NULL) != UNIT_OK;
    x = unit_matrix(memory, UNIT_F32, i, 32);
    x.stride[0] = 32 + 4 * i;
    failed += unit_scale(&x, 2.0f, 20, NULL) != UNIT_OK;
    if (failed) printf("%d: %s\n", i, unit_error());
  }
  free(memory);
  return failed != 0;
}
// SPDX-License-Identifier: MIT
