// Device memory. Buffers are handed out from a pool of blocks of the driver's
// and go back to it, so that neither costs a call of the driver. A block may
// be handed out again while streams still work with it: the first work of
// another stream waits for these.
#ifndef CUTE_GPU_MEMORY_H
#define CUTE_GPU_MEMORY_H

#include "gpu/cuda.h"

typedef struct GpuBlock {
  struct GpuBlock *next;  // in its list of free ones
  CUdeviceptr ptr;
  size_t bytes;
  Gpu *gpu;
  unsigned epoch;  // of the context
  int refs;        // the buffer, and graphs
  struct GpuGraph *of;  // the graph that was captured last of these, or NULL
  // Sets of streams by number: those that worked with it since it was handed
  // out, and those that did before; these are done once g->syncs is another.
  uint64_t used, before;
  unsigned syncs;
} GpuBlock;

typedef struct GpuPool {
  GpuBlock *free[64];  // by the logarithm of their bytes
  size_t used, peak;   // bytes handed out, and the most that ever were
  size_t held;         // bytes that the driver gave
  size_t hits, misses; // blocks from here, from the driver
} GpuPool;

// Gives free blocks back to the driver; how many bytes.
bool pool_trim(Gpu *g, size_t *bytes, Why *w);
// One more who needs it, one less.
void block_keep(GpuBlock *b);
void block_drop(GpuBlock *b);
// The stream begins to work with it.
bool block_use(GpuBlock *b, const GpuStream *s, Why *w);

// A buffer: the C side of MT_DEVBUF. A face looks at gpu_owns before it
// touches the memory.
typedef struct DevBuf {
  GpuOwned own;
  DType t;
  size_t count, bytes;
  uint64_t ptr;     // CUdeviceptr; 0 when closed
  GpuBlock *block;
} DevBuf;
// devbuf_reuse: false, without a reason, where no free block fits.
bool devbuf_alloc(DevBuf *b, Gpu *g, DType t, size_t count, Why *w);
bool devbuf_reuse(DevBuf *b, Gpu *g, DType t, size_t count);
// Bytes for the next work of a stream: such that it has to wait for no other.
bool devbuf_scratch(DevBuf *b, Gpu *g, size_t bytes, const GpuStream *s,
                    Why *w);
void devbuf_close(DevBuf *b);
// A stream begins to work with it; a graph that is captured keeps its memory.
bool devbuf_work(DevBuf *b, const GpuStream *s, Why *w);

// Copies of n bytes from byte `at` on; the caller has checked the ranges.
// These two wait until they are done.
bool devbuf_upload(DevBuf *b, size_t at, const void *p, size_t n, Why *w);
bool devbuf_download(const DevBuf *b, size_t at, void *p, size_t n, Why *w);
// These are in stream order; memory that is not pinned may make them wait.
bool devbuf_write(DevBuf *b, size_t at, const void *p, size_t n,
                  const GpuStream *s, Why *w);
bool devbuf_read(DevBuf *b, size_t at, void *p, size_t n, const GpuStream *s,
                 Why *w);
// From a buffer of any GPU; the stream is of b's.
bool devbuf_copy(DevBuf *b, size_t at, DevBuf *src, size_t from, size_t n,
                 const GpuStream *s, Why *w);
// n elements of 1, 2, 4 or 8 bytes from byte `at` on, in stream order.
bool devbuf_fill(DevBuf *b, size_t at, size_t n, uint64_t bits, int size,
                 const GpuStream *s, Why *w);

// Pins memory of the host, whole pages, so that copies need not wait.
bool gpu_pin(Gpu *g, void *p, size_t bytes, Why *w);
void gpu_unpin(Gpu *g, unsigned epoch, void *p);

#endif
