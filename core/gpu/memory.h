// Device memory. Buffers use blocks of the driver's memory from a pool and
// return them to it, so that neither needs a driver call. A block may be reused
// while streams still work with it; the first work of another stream then waits
// for them.
#ifndef CUTE_GPU_MEMORY_H
#define CUTE_GPU_MEMORY_H

#include "gpu/cuda.h"

typedef struct GpuBlock {
  struct GpuBlock *next;  // next block in a list of free blocks
  CUdeviceptr ptr;
  size_t bytes;
  Gpu *gpu;
  unsigned epoch;  // epoch of its context
  int refs;        // number of references: by the buffer, and by graphs
  struct GpuGraph *of;  // last graph that captured it, or NULL
  // Sets of streams by number: those that have used the block since its last
  // allocation, and those before. The latter have finished if g->syncs has
  // changed.
  uint64_t used, before;
  unsigned syncs;
} GpuBlock;

typedef struct GpuPool {
  GpuBlock *free[64];  // lists of free blocks by the logarithm of their bytes
  size_t used, peak;   // bytes in use, and their maximum
  size_t held;         // bytes obtained from the driver
  size_t hits, misses; // number of blocks from the pool, and from the driver
} GpuPool;

// Returns free blocks to the driver; sets the number of bytes.
bool pool_trim(Gpu *g, size_t *bytes, Why *w);
// Adds or removes a reference.
void block_keep(GpuBlock *b);
void block_drop(GpuBlock *b);
// Records that the stream uses the block; makes it wait for earlier users.
bool block_use(GpuBlock *b, const GpuStream *s, Why *w);

// A buffer: the C side of MT_DEVBUF. A binding checks gpu_owns before it
// accesses the memory.
typedef struct DevBuf {
  GpuOwned own;
  DType t;
  size_t count, bytes;
  uint64_t ptr;     // CUdeviceptr; 0 when closed
  GpuBlock *block;
} DevBuf;
// devbuf_reuse returns false, without a reason, if no free block fits.
bool devbuf_alloc(DevBuf *b, Gpu *g, DType t, size_t count, Why *w);
bool devbuf_reuse(DevBuf *b, Gpu *g, DType t, size_t count);
// Allocates bytes for the next work of a stream, so that this work need not
// wait for another stream.
bool devbuf_scratch(DevBuf *b, Gpu *g, size_t bytes, const GpuStream *s,
                    Why *w);
void devbuf_close(DevBuf *b);
// Records that a stream uses the buffer; a captured graph keeps its memory.
bool devbuf_work(DevBuf *b, const GpuStream *s, Why *w);

// Copies of n bytes starting at byte `at`; the caller has checked the ranges.
// These two wait for completion.
bool devbuf_upload(DevBuf *b, size_t at, const void *p, size_t n, Why *w);
bool devbuf_download(const DevBuf *b, size_t at, void *p, size_t n, Why *w);
// These two run in stream order; memory that is not pinned may make them wait.
bool devbuf_write(DevBuf *b, size_t at, const void *p, size_t n,
                  const GpuStream *s, Why *w);
bool devbuf_read(DevBuf *b, size_t at, void *p, size_t n, const GpuStream *s,
                 Why *w);
// Copies from a buffer of any GPU, on a stream of b's GPU.
bool devbuf_copy(DevBuf *b, size_t at, DevBuf *src, size_t from, size_t n,
                 const GpuStream *s, Why *w);
// Fills n elements of 1, 2, 4 or 8 bytes from byte `at`, in stream order.
bool devbuf_fill(DevBuf *b, size_t at, size_t n, uint64_t bits, int size,
                 const GpuStream *s, Why *w);

// Pins host memory, in whole pages, so that copies need not wait.
bool gpu_pin(Gpu *g, void *p, size_t bytes, Why *w);
void gpu_unpin(Gpu *g, unsigned epoch, void *p);

#endif
// SPDX-License-Identifier: MIT
