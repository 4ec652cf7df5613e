// CUDA C text to CUBIN: NVRTC behind the disk cache.
#ifndef CUTE_JIT_H
#define CUTE_JIT_H

#include "base/base.h"

typedef struct JitJob {
  const char *source;   // NUL-terminated CUDA C that includes nothing
  const char *arch;     // "sm_90a": the CUBIN is for exactly this
  const char *const *options;  // further NVRTC options
  int noptions;
  bool no_cache;
  const char *waiting;  // told on stderr when the compiler takes longer than
  double patience;      // so many seconds; NULL: nothing is
} JitJob;

// What came out. Also after a failed compile: then only `log` is set.
typedef struct JitOut {
  const char *log, *cubin, *ptx;  // log lines name the source "k.cu"
  size_t log_n, cubin_n, ptx_n;
  bool cached;
  int major, minor;   // version of NVRTC
  char note[400];     // why the cache does not work, or ""
  void *mem[3];       // owns the text and bytes
} JitOut;

// ERR_NONVRTC without the library, ERR_COMPILE when it refused the source.
// A cache hit does not even open NVRTC. `out` is to be freed in either case.
bool jit_compile(const JitJob *job, JitOut *out, Why *w);
void jit_free(JitOut *out);

#endif
