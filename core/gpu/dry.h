// A driver without a GPU, for running a script to find its kernels. Kernels do
// nothing, and device memory is zero until the script copies data there.
// `cutelua compile` uses it in place of the real driver.
#ifndef CUTE_DRY_H
#define CUTE_DRY_H

#include "gpu/cudaapi.h"

// Returns the function table of a driver with one GPU: its target, such as sm =
// 90, number of multiprocessors, KiB of shared memory of a block, and name. If
// `name` is NULL, the GPU's name says that there is no GPU.
const CudaApi *dry_driver(int sm, int sms, int smem_kb, const char *name);

#endif
// SPDX-License-Identifier: MIT
