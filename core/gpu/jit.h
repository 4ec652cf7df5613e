// Compiles CUDA C to a CUBIN: NVRTC with a disk cache.
#ifndef CUTE_JIT_H
#define CUTE_JIT_H

#include "base/base.h"

typedef struct JitJob {
  const char *source;   // NUL-terminated CUDA C without #include
  const char *arch;     // "sm_90a": the CUBIN is for exactly this target
  const char *const *options;  // further NVRTC options
  int noptions;
  bool no_cache;
  const char *waiting;  // message on stderr during a long compilation, or NULL
  double patience;      // seconds before it is printed
} JitJob;

// The result of a compilation. If it failed, only `log` is set.
typedef struct JitOut {
  const char *log, *cubin, *ptx;  // log lines name the source "k.cu"
  size_t log_n, cubin_n, ptx_n;
  bool cached;
  int major, minor;   // version of NVRTC
  char note[400];     // reason why the cache does not work, or ""
  void *mem[3];       // memory that holds the text and the code
} JitOut;

// Fails with ERR_NONVRTC without the library, and with ERR_COMPILE if it
// rejects the source. A cache hit does not even open NVRTC. Free `out` in every
// case.
bool jit_compile(const JitJob *job, JitOut *out, Why *w);
void jit_free(JitOut *out);

#endif
// SPDX-License-Identifier: MIT
