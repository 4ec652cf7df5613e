// The CUDA libraries, opened with dlopen on first use and never closed.
//
// Libraries are searched for in the loader's own path, $CUDA_HOME, $CUDA_PATH,
// /usr/local/cuda*, and the nvidia packages of the python3 on PATH, in this
// order. With CUTELUA_NO_CUDA=1 in the environment, no library is found.
#ifndef CUTE_DL_H
#define CUTE_DL_H

#include "gpu/cudaapi.h"
#include "base/base.h"

// Returns the function table of a library, or NULL with the reason in w. The
// comments on the right name the kind of the error.
const CudaApi *dl_cuda(Why *w);          // ERR_NOGPU
const NvrtcApi *dl_nvrtc(Why *w);        // ERR_NONVRTC
const CublasApi *dl_cublas(Why *w);      // ERR_DRIVER
const CublasLtApi *dl_cublaslt(Why *w);  // ERR_DRIVER

bool dl_disabled(void);  // reports whether CUTELUA_NO_CUDA is set

// Returns the path of the NVRTC library (after dl_nvrtc succeeded).
const char *dl_nvrtc_path(void);

// Returns a hash of everything that determines which files a search would find.
// These are the environment variables above, and the times of the folders and
// of the loader's cache. Does not search.
uint64_t dl_fingerprint(void);

#endif
// SPDX-License-Identifier: MIT
