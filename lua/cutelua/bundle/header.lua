--- The part of the C header that all bundles have. "bun_" and "BUN_" stand for
-- the bundle's name.
return [==[
#ifndef BUN_H
#define BUN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// Identifies this pair of files. Each launch passes the header's number to the
// code, which returns BUN_E_VERSION if the header belongs to another bundle.
#define BUN_VERSION UINT64_C(@VERSION@)

typedef struct CUstream_st *bun_stream;  // a CUstream or a cudaStream_t

// A tensor in GPU memory. Extents and strides count elements; the last mode of
// a row-major tensor has stride 1. The stride of a mode with one element has no
// effect.
typedef struct bun_tensor {
  void *data;  // address of the first element
  int32_t dtype;  // BUN_F32 ..
  int32_t rank;
  int64_t extent[BUN_RANK], stride[BUN_RANK];
} bun_tensor;

// The result of every function: BUN_OK, or the kind of an error. bun_error()
// describes the error in a sentence.
enum bun_status {
  BUN_OK = 0,
  BUN_E_NULL = 1,        // a tensor, its address or the workspace is NULL
  BUN_E_DTYPE = 2,       // a tensor has another element type
  BUN_E_RANK = 3,        // a tensor has another number of modes
  BUN_E_EXTENT = 4,      // an extent that no kernel of the bundle takes
  BUN_E_STRIDE = 5,      // a stride that no kernel of the bundle takes
  BUN_E_ALIGN = 6,       // an address is aligned to fewer bytes than assumed
  BUN_E_OVERLAP = 7,     // a written tensor shares memory with another one
  BUN_E_WORKSPACE = 8,   // the workspace is too small
  BUN_E_GRID = 9,        // the grid is too large, or not whole clusters
  BUN_E_VERSION = 10,    // the header belongs to another bundle
  BUN_E_NO_DRIVER = 11,  // libcuda.so.1 is missing, or too old
  BUN_E_NO_CONTEXT = 12, // no CUDA context is current, or it was destroyed
  BUN_E_NO_CUBIN = 13,   // the bundle has no code for this GPU
  BUN_E_LIMIT = 14,      // the GPU has too little shared memory or room
  BUN_E_STREAM = 15,     // the stream was destroyed, or is of another context
  BUN_E_MEMORY = 16,     // memory ran out
  BUN_E_CORRUPT = 17,    // the code in the bundle was changed
  BUN_E_DRIVER = 18,     // the driver reported another error
  BUN_E_DEVICE = 19      // a tensor is not in memory of this GPU (bun_careful)
};

// Returns the name of a status: "BUN_E_RANK".
const char *bun_status_name(int status);
// Returns a sentence about the last call of this thread that failed.
const char *bun_error(void);
// Returns the architectures for which the bundle has code: "sm_80 sm_90a".
const char *bun_archs(void);
// Returns the architecture whose code the current context uses, or NULL after
// an error.
const char *bun_arch(void);
// With on = 1, all later launches also ask the driver whether each tensor is in
// memory of the context's GPU, as a whole. Launches then take longer.
void bun_careful(int on);
// Loads all kernels into the current context. A launch loads only the kernels
// that it needs, at the first use in a context.
int bun_load(void);
// Unloads the kernels from the current context, where none may be running.
int bun_unload(void);

// Returns a row-major tensor with n elements, or with rows and columns.
static inline bun_tensor bun_vector(void *data, int32_t dtype, int64_t n) {
  bun_tensor t;
  for (int i = 0; i < BUN_RANK; i++) t.extent[i] = t.stride[i] = 1;
  t.data = data;
  t.dtype = dtype;
  t.rank = 1;
  t.extent[0] = n;
  return t;
}

static inline bun_tensor bun_matrix(void *data, int32_t dtype, int64_t rows,
                                    int64_t columns) {
  bun_tensor t = bun_vector(data, dtype, rows);
  t.rank = 2;
  t.stride[0] = columns;
  t.extent[1] = columns;
  return t;
}
]==]
-- SPDX-License-Identifier: MIT
