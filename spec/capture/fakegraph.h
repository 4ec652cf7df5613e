// Types and functions that fakecuda.c, fakegraph.c and program.c share.
#ifndef FAKEGRAPH_H
#define FAKEGRAPH_H

#include <stdbool.h>

#include "gpu/cudaapi.h"

// CUDA_KERNEL_NODE_PARAMS_v2 and CUDA_MEMSET_NODE_PARAMS.
typedef struct KernelNode {
  CUfunction func;
  unsigned grid[3], block[3], smem;
  void **params, **extra;
  void *kern, *context;
} KernelNode;
typedef struct SetNode {
  CUdeviceptr to;
  size_t pitch;
  unsigned value, bytes;
  size_t width, height;
} SetNode;

// Runs a kernel.
void fake_run(CUfunction f, void **params);
// Reports whether a stream is being captured.
bool fake_capturing(void);
// Adds a launch to the graph that is being captured; false if there is none.
bool fake_capture(CUfunction f, const unsigned grid[3], const unsigned block[3],
                  unsigned smem, void **params);

#endif
// SPDX-License-Identifier: MIT
