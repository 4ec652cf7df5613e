// A substitute for the CUDA driver that needs no GPU, for running a script to
// find its kernels. Kernels do nothing, and device memory is zero until the
// script copies data there. `cutelua compile` uses it in place of the real
// driver.
#ifndef CUTE_DRY_H
#define CUTE_DRY_H

#include "gpu/cudaapi.h"

// Returns the function table of a driver that reports one GPU with this target
// (such as sm = 90), number of multiprocessors, KiB of shared memory per block,
// and name. If `name` is NULL, the reported name says that there is no GPU.
const CudaApi *dry_driver(int sm, int sms, int smem_kb, const char *name);

#endif
// SPDX-License-Identifier: MIT
