// Launches the kernel of axpy.lua on a GPU, from C without Lua.
//
//     cutelua bundle --arch sm_80,sm_90a axpy.lua
//     cc main.c axpy.c -l:libcuda.so.1 -ldl -pthread -o main
//     ./main
#include <stdint.h>
#include <stdio.h>

#include "axpy.h"

// Functions of the CUDA driver. A program that has the toolkit includes cuda.h
// instead.
typedef uint64_t Address;
typedef void *Context;
int cuInit(unsigned flags);
int cuDevicePrimaryCtxRetain(Context *context, int device);
int cuDevicePrimaryCtxRelease_v2(int device);
int cuCtxSetCurrent(Context context);
int cuMemAlloc_v2(Address *p, size_t size);
int cuMemFree_v2(Address p);
int cuMemcpyHtoD_v2(Address to, const void *from, size_t size);
int cuMemcpyDtoH_v2(void *to, Address from, size_t size);
int cuStreamSynchronize(axpy_stream stream);

enum { N = 1000 };

static float x[N], y[N];

// Copies the vectors to the GPU, launches the kernel, and copies y back.
static int run(Address dx, Address dy) {
  if (cuMemcpyHtoD_v2(dx, x, sizeof x) || cuMemcpyHtoD_v2(dy, y, sizeof y))
    return fprintf(stderr, "the copy to the GPU failed\n"), 1;
  axpy_tensor a = axpy_vector((void *)(uintptr_t)dx, AXPY_F32, N);
  axpy_tensor b = axpy_vector((void *)(uintptr_t)dy, AXPY_F32, N);
  axpy_stream stream = NULL;  // the default stream
  // A launch with wrong arguments, here one tensor as x and as y, does nothing.
  // It returns an error, and axpy_error() returns the text.
  int status = axpy_axpy(&b, &b, 3.0f, stream);
  printf("%s\n", axpy_error());
  if (status != AXPY_E_OVERLAP) return 1;
  if (axpy_axpy(&a, &b, 3.0f, stream))
    return fprintf(stderr, "%s\n", axpy_error()), 1;
  if (cuStreamSynchronize(stream) || cuMemcpyDtoH_v2(y, dy, sizeof y))
    return fprintf(stderr, "the kernel failed\n"), 1;
  printf("y[%d] = %g, by the code for %s\n", N - 1, (double)y[N - 1],
         axpy_arch());
  return y[N - 1] != 3 * (N - 1) + 1;
}

int main(void) {
  Context context;
  Address dx, dy;
  if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) ||
      cuCtxSetCurrent(context) || cuMemAlloc_v2(&dx, sizeof x) ||
      cuMemAlloc_v2(&dy, sizeof y))
    return fprintf(stderr, "there is no GPU\n"), 1;
  for (int i = 0; i < N; i++) x[i] = (float)i, y[i] = 1;
  int bad = run(dx, dy);
  cuMemFree_v2(dx);
  cuMemFree_v2(dy);
  axpy_unload();
  cuDevicePrimaryCtxRelease_v2(0);
  return bad;
}
// SPDX-License-Identifier: MIT
