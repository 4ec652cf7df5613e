// Eight threads launch the functions of the bundle `unit` 1000 times each, on
// streams of their own. The first launches race to load the kernels. Prints the
// number of launches that failed.
#include "unit.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 8, TIMES = 1000 };

static void *context;
static int(*retain)(void **, int);
static int(*set_current)(void *);
static int(*new_stream)(unit_stream *, unsigned);
static int(*free_stream)(unit_stream);

static char *memory;

static void find(void *library, const char *name, void *to) {
  void *f = dlsym(library, name);
  if (!f) exit(2);
  memcpy(to, &f, sizeof f);
}

static void *run(void *out) {
  long failed = 0;
  char *own = memory + ((long)*(int *)out << 21);
  unit_stream s;
  if (set_current(context) || new_stream(&s, 1)) exit(2);
  unit_tensor A = unit_matrix(memory, UNIT_BF16, 256, 128);
  unit_tensor B = unit_matrix(memory + (1 << 20), UNIT_BF16, 512, 128);
  unit_tensor D = unit_matrix(own + (2 << 20), UNIT_BF16, 256, 512);
  unit_tensor x = unit_vector(own + (3 << 20), UNIT_F32, 1000), y = x;
  y.data = own + (3 << 20) + 65536;
  for (int i = 0; i < TIMES; i++) {
    x.extent[0] = y.extent[0] = 4 * (i % 250);
    failed += unit_hopper(&A, &B, &D, s) != UNIT_OK;
    failed += unit_axpy(&x, &y, 1.0f, s) != UNIT_OK;
    x.dtype = 99;  // each thread has its own error
    failed += unit_axpy(&x, &y, 1.0f, s) != UNIT_E_DTYPE ||
              !strstr(unit_error(), "tensor x");
    x.dtype = UNIT_F32;
  }
  free_stream(s);
  *(int *)out = (int)failed;
  return NULL;
}

int main(void) {
  pthread_t t[THREADS];
  int failed[THREADS], all = 0;
  void *library = dlopen("libcuda.so.1", RTLD_NOW);
  if (!library) return 2;
  find(library, "cuDevicePrimaryCtxRetain", &retain);
  find(library, "cuCtxSetCurrent", &set_current);
  find(library, "cuStreamCreate", &new_stream);
  find(library, "cuStreamDestroy_v2", &free_stream);
  memory = (char *)aligned_alloc(256, 24 << 20);
  if (!memory || retain(&context, 0)) return 2;
  for (int i = 0; i < THREADS; i++) {
    failed[i] = i;  // the thread's number, which run() replaces by its result
    if (pthread_create(&t[i], NULL, run, &failed[i])) return 2;
  }
  for (int i = 0; i < THREADS; i++) {
    pthread_join(t[i], NULL);
    all += failed[i];
  }
  printf("%d threads, %d failed\n", THREADS, all);
  free(memory);
  return all != 0;
}
// SPDX-License-Identifier: MIT
