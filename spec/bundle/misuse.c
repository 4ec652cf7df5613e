// Calls functions of the bundle `unit` with each kind of wrong argument and
// prints, for each call, its name, the status and the text of the error.
#define _POSIX_C_SOURCE 200809L
#include "unit.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef void *Context;

static void *library;

static void *need(const char *name) {
  void *f = dlsym(library, name);
  if (!f) abort();
  return f;
}

static int retain(Context *c) {
  int(*f)(Context *, int);
  void *p = need("cuDevicePrimaryCtxRetain");
  memcpy(&f, &p, sizeof f);
  return f(c, 0);
}
static int release(void) {
  int(*f)(int);
  void *p = need("cuDevicePrimaryCtxRelease_v2");
  memcpy(&f, &p, sizeof f);
  return f(0);
}
static int set_current(Context c) {
  int(*f)(Context);
  void *p = need("cuCtxSetCurrent");
  memcpy(&f, &p, sizeof f);
  return f(c);
}
static unit_stream new_stream(void) {
  unit_stream s;
  int(*f)(unit_stream *, unsigned);
  void *p = need("cuStreamCreate");
  memcpy(&f, &p, sizeof f);
  if (f(&s, 1)) abort();
  return s;
}
static void free_stream(unit_stream s) {
  int(*f)(unit_stream);
  void *p = need("cuStreamDestroy_v2");
  memcpy(&f, &p, sizeof f);
  f(s);
}

static void say(const char *name, int status) {
  printf("%s: %s: %s\n", name, unit_status_name(status),
         status ? unit_error() : "");
}

// The arguments of a call of unit_linear.
typedef struct Linear {
  unit_tensor A, B, bias, D;
} Linear;

static char *memory;

// Returns correct arguments, whose tensors do not overlap.
static Linear right(void) {
  Linear x = {unit_matrix(memory, UNIT_BF16, 256, 128),
              unit_matrix(memory + (1 << 20), UNIT_BF16, 512, 128),
              unit_vector(memory + (2 << 20), UNIT_F32, 512),
              unit_matrix(memory + (3 << 20), UNIT_BF16, 256, 512)};
  return x;
}

static int linear(const Linear *x, unit_stream s) {
  return unit_linear(&x->A, &x->B, &x->bias, &x->D, 0.5f, s);
}

static void tensors(void) {
  Linear x = right();
  say("right", linear(&x, NULL));
  x.B = unit_matrix(x.B.data, UNIT_BF16, 256, 128);
  x.bias.extent[0] = 256;
  x.D = unit_matrix(x.D.data, UNIT_BF16, 256, 256);
  say("other size", linear(&x, NULL));
  x = right();
  say("tensor NULL", unit_linear(NULL, &x.B, &x.bias, &x.D, 0.5f, NULL));
  x.bias.data = NULL;
  say("address NULL", linear(&x, NULL));
  x = right(), x.A.dtype = UNIT_F32;
  say("dtype", linear(&x, NULL));
  x = right(), x.A.dtype = 99;
  say("no dtype", linear(&x, NULL));
  x = right(), x.A.rank = 1;
  say("rank", linear(&x, NULL));
  x = right(), x.A.rank = 9;
  say("large rank", linear(&x, NULL));
  x = right(), x.A.rank = -1;
  say("negative rank", linear(&x, NULL));
  x = right(), x.D.extent[1] = 511;
  say("extent", linear(&x, NULL));
  x = right(), x.A.stride[0] = 136;
  say("stride", linear(&x, NULL));
  x = right(), x.A.data = (char *)x.A.data + 2;
  say("align", linear(&x, NULL));
  x = right(), x.D.data = (char *)x.A.data + 1024;
  say("overlap", linear(&x, NULL));
  x = right(), x.B.data = x.A.data;
  say("shared operands", linear(&x, NULL));
  x = right();
  say("version", unit_linear_v(UNIT_VERSION + 1, &x.A, &x.B, &x.bias, &x.D,
                               0.5f, NULL));
}

static void dynamic(void) {
  unit_tensor x = unit_vector(memory, UNIT_F32, 1000), y = x;
  y.data = memory + (1 << 20);
  say("axpy", unit_axpy(&x, &y, 2, NULL));
  y.extent[0] = 1004;
  say("unequal", unit_axpy(&x, &y, 2, NULL));
  x.extent[0] = y.extent[0] = 1002;
  say("divisor", unit_axpy(&x, &y, 2, NULL));
  x.extent[0] = y.extent[0] = -4;
  say("negative", unit_axpy(&x, &y, 2, NULL));
  x.extent[0] = y.extent[0] = INT64_C(1) << 40;
  say("huge", unit_axpy(&x, &y, 2, NULL));
  x.extent[0] = y.extent[0] = 0;
  say("empty", unit_axpy(&x, &y, 2, NULL));
  x = unit_matrix(memory, UNIT_F32, 3, 32);
  say("scale", unit_scale(&x, 2, 20, NULL));
  x.stride[0] = 34;
  say("pitch", unit_scale(&x, 2, 20, NULL));
  x.stride[0] = 36, x.extent[1] = 31;
  say("columns", unit_scale(&x, 2, 20, NULL));
  x.extent[1] = 32, x.extent[0] = INT64_C(1) << 30;
  say("reach", unit_scale(&x, 2, 20, NULL));
}

static void works(void) {
  unit_tensor x = unit_vector(memory, UNIT_F32, 100000);
  unit_tensor y = unit_vector(memory + (1 << 20), UNIT_F32, 1);
  size_t bytes = 0;
  say("query", unit_total_workspace(&x, &y, &bytes));
  char *work = memory + (2 << 20);
  say("no workspace", unit_total(&x, &y, NULL, bytes, NULL));
  say("small workspace", unit_total(&x, &y, work, bytes - 1, NULL));
  say("odd workspace", unit_total(&x, &y, work + 4, bytes, NULL));
  say("workspace", unit_total(&x, &y, work, bytes, NULL));
  x.extent[0] = 99;
  say("query of another size", unit_total_workspace(&x, &y, &bytes));
  printf("bytes %zu\n", bytes);
}

static char *allocate(size_t n) {
  unsigned long long at;
  int(*f)(unsigned long long *, size_t);
  void *p = need("cuMemAlloc_v2");
  memcpy(&f, &p, sizeof f);
  if (f(&at, n)) abort();
  return (char *)(uintptr_t)at;
}

// Passes tensors that are entirely or partly outside of the GPU's memory.
static void careful(void) {
  unit_tensor x = unit_vector(memory, UNIT_F32, 1000), y = x;
  char *own = allocate(8192), *other = allocate(8193);
  unit_careful(1);
  y.data = own;
  say("host memory", unit_axpy(&x, &y, 2, NULL));
  x.data = other;
  say("another GPU", unit_axpy(&x, &y, 2, NULL));
  x.data = own + 4096;
  say("own memory", unit_axpy(&x, &y, 2, NULL));
  x.extent[0] = y.extent[0] = 1024;
  say("all memory", unit_axpy(&x, &y, 2, NULL));
  x.data = own + 4112;
  say("little memory", unit_axpy(&x, &y, 2, NULL));
  x = unit_vector(own, UNIT_F32, 100000);
  y = unit_vector(own, UNIT_F32, 1);
  x.data = allocate(400000);
  say("a workspace of the host", unit_total(&x, &y, memory, 1 << 20, NULL));
  unit_careful(0);
}

// Passes a stream whose context was destroyed; a new context has its
// address.
static void contexts(Context c) {
  Linear x = right();
  unit_stream s = new_stream();
  Context d;
  say("stream", linear(&x, s));
  if (release()) abort();
  say("destroyed context", linear(&x, s));
  if (retain(&d) || set_current(d)) abort();
  printf("same address: %d\n", c == d);
  say("old stream", linear(&x, s));
  say("new context", linear(&x, NULL));
  free_stream(s);
  s = new_stream();
  say("new stream", linear(&x, s));
  free_stream(s);
  set_current(NULL);
  say("no context", linear(&x, NULL));
  set_current(d);
  say("unload", unit_unload());
  say("load", unit_load());
  say("unload again", unit_unload());
  release();
}

int main(void) {
  Linear x = right();
  Context c;
  memory = (char *)aligned_alloc(256, 4 << 20);
  if (!memory) return 1;
  x = right();
  library = dlopen("libcuda.so.1", RTLD_NOW);
  if (!library) {
    say("no driver", linear(&x, NULL));
    free(memory);
    return 0;
  }
  say("before a context", linear(&x, NULL));
  if (retain(&c) || set_current(c)) return 1;
  if (getenv("FAKE_ONE")) {
    say("call", linear(&x, NULL));
  } else {
    tensors();
    dynamic();
    works();
    careful();
    contexts(c);
  }
  printf("%s\n", unit_archs());
  free(memory);
  return 0;
}
// SPDX-License-Identifier: MIT
