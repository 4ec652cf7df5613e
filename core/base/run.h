// Host and device memory as the Lua faces hand it around: the C side of the
// userdata MT_BUFFER and MT_DEVBUF (made in bind/runlib.c and bind/gpulib.c).
//
// A face gets one with face_check(L, i, MT_BUFFER, "buffer") and must look at
// hostbuf_open / devbuf_open before it touches the memory.
#ifndef CUTE_RUN_H
#define CUTE_RUN_H

#include "base/dtype.h"

// Host memory: `count` packed elements of type t. Sub-byte types are packed,
// low bits first, so bytes = (count * bits + 7) / 8.
typedef struct HostBuf {
  DType t;
  size_t count, bytes;
  void *p;       // first element, aligned to HOSTBUF_ALIGN; NULL when closed
  void *raw;     // what base_realloc gave
  bool closed;
  bool defined;  // the whole buffer was written at least once (fills, copies,
                 // strings); the simulator poisons buffers that were not
} HostBuf;

#define HOSTBUF_ALIGN 256

static inline bool hostbuf_open(const HostBuf *b) { return !b->closed; }

// Device memory of one CUDA context. A context that died of an illegal
// address takes its buffers along: they are closed from then on.
typedef struct Gpu Gpu;
typedef struct DevBuf {
  DType t;
  size_t count, bytes;
  uint64_t ptr;    // CUdeviceptr; 0 when closed
  Gpu *gpu;
  unsigned epoch;  // of the context that owns ptr
  bool closed;
} DevBuf;

bool devbuf_open(const DevBuf *b);  // gpu/cuda.c

// What went wrong in the world outside (no driver, NVRTC refused, ...).
// Functions that take a Why return false (or NULL) and fill it in; their
// faces return nil, "msg [kind]".
typedef struct Why {
  ErrKind kind;
  char msg[1400];
} Why;

// Fills w (which may be NULL) and returns false.
bool why(Why *w, ErrKind kind, const char *fmt, ...) PRINTF_LIKE(3, 4);

#endif
