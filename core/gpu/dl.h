// The libraries of the driver and of cuBLAS, opened with dlopen on first use
// and never closed. nvrtc.h describes NVRTC.
//
// Libraries are searched for in the loader's own path, $CUDA_HOME, $CUDA_PATH,
// /usr/local/cuda*, and the nvidia packages of python, in this order. With
// CUTELUA_NO_CUDA=1 in the environment, no library is found.
#ifndef CUTE_DL_H
#define CUTE_DL_H

#include "gpu/cudaapi.h"
#include "base/base.h"

// Returns the function table of a library, or NULL with the reason in w. The
// comments on the right name the kind of the error.
const CudaApi *dl_cuda(Why *w);          // ERR_NOGPU
const CublasApi *dl_cublas(Why *w);      // ERR_DRIVER
const CublasLtApi *dl_cublaslt(Why *w);  // ERR_DRIVER

bool dl_disabled(void);  // reports whether CUTELUA_NO_CUDA is set

bool dl_cuda_open(void);  // reports whether the driver's library is open
// Returns the path of the driver's library, or "" if it is not open or has been
// replaced.
const char *dl_cuda_path(void);
// Replaces the driver by a substitute that needs no GPU (dry.h) for the rest of
// the process. Returns false if the real driver is open. cuBLAS cannot be used
// with this driver.
bool dl_dry(int sm, int sms, int smem_kb, const char *name);
bool dl_is_dry(void);

// Writes glob patterns of folders to search for libraries, in order of
// preference; returns their number.
#define DL_FOLDERS 16
int dl_folders(char out[DL_FOLDERS][1024]);

// A function of a library, and the offset of its pointer in a function table.
typedef struct DlSym {
  const char *name;
  size_t offset;
  bool optional;
} DlSym;

// Fills a function table from an open library. `path` names the library in the
// reason of a failure.
bool dl_table(void *lib, const char *path, const DlSym *syms, void *table,
              ErrKind kind, Why *w);
// Stores in w the reason why no library was found, and returns false. `what`
// names the library in the message. `names` lists the file names that were
// tried.
bool dl_not_found(const char *what, const char *names, ErrKind kind, Why *w);

#endif
// SPDX-License-Identifier: MIT
