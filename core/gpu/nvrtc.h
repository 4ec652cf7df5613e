// The NVRTC libraries of this machine, and the choice among them.
//
// Libraries are searched for in the loader's own path and in the folders of
// dl_folders. CUTELUA_NVRTC, the path of a library or of a folder, replaces the
// search. The newest library that the driver supports is used: a driver for
// CUDA 13 loads the code of every NVRTC up to 13.x. Without a driver, the
// newest is used. If a library does not support the target, as NVRTC 13 does
// not support sm_70, the next older one is used.
#ifndef CUTE_NVRTC_H
#define CUTE_NVRTC_H

#include "base/base.h"
#include "gpu/cudaapi.h"

#define NVRTC_ARCHS 64

typedef struct Nvrtc {
  char path[1024];
  // version; 0.0 until the library is open, unless the file's name contains it
  int major, minor;
  // Reason why the library is not used for a target that it supports, or "".
  char why[400];
  bool tried, open;  // tried: nvrtc_pick has tried to open the library
  void *lib;
  NvrtcApi api;
  // The targets that the library supports, as numbers such as 90 for sm_90.
  // narchs is 0 if the library cannot list its targets.
  int narchs, archs[NVRTC_ARCHS];
} Nvrtc;

// Returns the library to use for a target such as "sm_90a" (NULL: any target).
// Returns NULL with ERR_NONVRTC if there is none.
const Nvrtc *nvrtc_pick(const char *arch, Why *w);
// Stores the libraries found, newest first, in list; returns their number.
int nvrtc_list(const Nvrtc *list[], int most);
// Returns the driver's version of CUDA, such as 13000, or 0 without a driver.
int nvrtc_driver(void);
// Reports whether the driver can load code that NVRTC version `major` compiled.
// Never opens the driver; returns true if it is not open.
bool nvrtc_loads(int major);

// Returns a hash of everything that determines which libraries a search would
// find and choose: environment variables, the times of folders and of the
// loader's cache, and the driver's version at the first call. Does not search.
uint64_t nvrtc_fingerprint(void);

#endif
// SPDX-License-Identifier: MIT
