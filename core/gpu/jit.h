// Compiles CUDA C to a CUBIN: NVRTC with disk caches.
#ifndef CUTE_JIT_H
#define CUTE_JIT_H

#include "base/base.h"

typedef struct JitJob {
  // CUDA C, NUL-terminated. If the source has an #include, set `no_cache`,
  // because the cache does not read headers.
  const char *source;
  const char *name;     // the source's path in the log and .loc; NULL: "k.cu"
  const char *arch;     // target, such as "sm_90a"; the CUBIN runs only on it
  const char *const *options;  // NVRTC options in addition to cutelua's own
  int noptions;
  bool no_cache;
  // folder of a container image's cache (cache.h), to which the result is also
  // written, or NULL
  const char *into;
  // Message to print on stderr if a compilation takes longer than `patience`
  // seconds, or NULL.
  const char *waiting;
  double patience;
} JitJob;

// The result of a compilation. If it failed, only `log` is set.
typedef struct JitOut {
  // all messages in `log` name the file JitJob.name
  const char *log, *cubin, *ptx;
  size_t log_n, cubin_n, ptx_n;
  bool cached, image;  // image: whether it is from the container image's cache
  int major, minor;    // version of NVRTC
  // One message for each possible problem, or "": [0] the user's own cache does
  // not work; [1] the image's cache does not work; [2] the driver may reject
  // the code; [3] others could write to the folder of the user's own cache. [3]
  // is set even if the compilation failed.
  char notes[4][480];
  void *mem[3];        // memory of log, cubin and ptx
} JitOut;

// Returns false with ERR_NONVRTC if NVRTC is not found, with ERR_COMPILE if
// NVRTC rejects the source, and with ERR_IO if `into` cannot be written. A
// cache hit does not open NVRTC. Call jit_free in every case.
bool jit_compile(const JitJob *job, JitOut *out, Why *w);
void jit_free(JitOut *out);

#endif
// SPDX-License-Identifier: MIT
