// A driver without a GPU, on which a script runs so that its kernels become
// known: kernels do nothing, and device memory is zero until the script copies
// something there. `cutelua compile` uses it in place of the real driver.
#ifndef CUTE_DRY_H
#define CUTE_DRY_H

#include "gpu/cudaapi.h"

// Returns the function table of a driver with one GPU: of target sm, such as
// 90, with this many multiprocessors, KiB of shared memory of a block, and this
// name. If `name` is NULL, the GPU's name says that there is no GPU.
const CudaApi *dry_driver(int sm, int sms, int smem_kb, const char *name);

#endif
// SPDX-License-Identifier: MIT
