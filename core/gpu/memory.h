// Device memory. A pool keeps blocks (ranges of device memory) that the driver
// allocated. Creating a buffer takes a block from the pool, and closing the
// buffer returns the block, without a driver call. A new buffer may get a block
// that streams still use. The first work of another stream on the buffer then
// waits for these streams.
#ifndef CUTE_GPU_MEMORY_H
#define CUTE_GPU_MEMORY_H

#include "gpu/cuda.h"

typedef struct GpuBlock {
  struct GpuBlock *next;  // next block in a list of free blocks
  CUdeviceptr ptr;
  size_t bytes;
  Gpu *gpu;
  unsigned epoch;  // epoch of the GPU when the block was allocated
  int refs;        // number of references, by a buffer and by graphs
  struct GpuGraph *of;  // the graph that uses the block and is being captured,
                        // or NULL
  // Two sets of streams, with a bit for each stream's number. Streams in `used`
  // have used the block since it was last taken from the pool; streams in
  // `before` used it earlier. If g->syncs differs from `syncs`, the host has
  // since waited for the GPU, and the work of the streams in `before` is done.
  uint64_t used, before;
  unsigned syncs;
  // reference count of the memory if another library owns it, else NULL
  struct Shared *shared;
} GpuBlock;

typedef struct GpuPool {
  GpuBlock *free[64];  // lists of free blocks, by log2 of their size
  size_t used, peak;   // bytes in use by buffers, and the maximum so far
  size_t held;         // bytes allocated from the driver
  // hits: number of buffers that got a block from the pool. misses: number of
  // those that got one from the driver.
  size_t hits, misses;
} GpuPool;

// Returns all free blocks to the driver. Sets *bytes to their total size.
bool pool_trim(Gpu *g, size_t *bytes, Why *w);
// Add or remove a reference to a block. Removing the last reference frees the
// block.
void block_keep(GpuBlock *b);
void block_drop(GpuBlock *b);
// Records that stream s uses the block. Makes s wait for streams that used the
// block for an earlier buffer.
bool block_use(GpuBlock *b, const GpuStream *s, Why *w);

// A buffer in device memory. Lua sees it as a userdata (MT_DEVBUF in bind). A
// binding checks gpu_owns before it accesses the memory.
typedef struct DevBuf {
  GpuOwned own;
  DType t;
  size_t count, bytes;
  uint64_t ptr;     // CUdeviceptr; 0 when closed
  GpuBlock *block;
  bool readonly;    // whether the buffer belongs to another library, which
                    // allows only reads
} DevBuf;
// Allocate a buffer of count elements. devbuf_reuse only takes free blocks of
// the pool, and returns false if none fits.
bool devbuf_alloc(DevBuf *b, Gpu *g, DType t, size_t count, Why *w);
bool devbuf_reuse(DevBuf *b, Gpu *g, DType t, size_t count);
// Makes a buffer of count elements in memory at ptr that another library owns.
// On success, the buffer takes over the caller's reference to `shared`.
bool devbuf_foreign(DevBuf *b, Gpu *g, DType t, size_t count, uint64_t ptr,
                    struct Shared *shared, Why *w);
// Returns a new reference to the buffer's memory, for another library. The
// owner of the reference must call shared_drop, from any host thread. Returns
// NULL if host memory is exhausted.
struct Shared *devbuf_share(DevBuf *b);
// Allocates bytes for the next work on stream s. Skips blocks that another
// stream may still use, so that s need not wait for that stream.
bool devbuf_scratch(DevBuf *b, Gpu *g, size_t bytes, const GpuStream *s,
                    Why *w);
void devbuf_close(DevBuf *b);
// Records that work on stream s uses the buffer. If a graph is being captured,
// the graph keeps the buffer's memory.
bool devbuf_work(DevBuf *b, const GpuStream *s, Why *w);

// Copy n bytes between the host and the buffer, from byte `at` of the buffer
// on. The caller has checked the range. Both functions wait until the copy is
// complete.
bool devbuf_upload(DevBuf *b, size_t at, const void *p, size_t n, Why *w);
bool devbuf_download(const DevBuf *b, size_t at, void *p, size_t n, Why *w);
// Copy like devbuf_upload and devbuf_download, but in stream order. The host
// may wait if the host memory is not pinned.
bool devbuf_write(DevBuf *b, size_t at, const void *p, size_t n,
                  const GpuStream *s, Why *w);
bool devbuf_read(DevBuf *b, size_t at, void *p, size_t n, const GpuStream *s,
                 Why *w);
// Copies n bytes from buffer src, which may be on another GPU, to buffer b, on
// a stream of b's GPU.
bool devbuf_copy(DevBuf *b, size_t at, DevBuf *src, size_t from, size_t n,
                 const GpuStream *s, Why *w);
// Fills n elements of `size` bytes (1, 2, 4 or 8), from byte `at` on, in stream
// order.
bool devbuf_fill(DevBuf *b, size_t at, size_t n, uint64_t bits, int size,
                 const GpuStream *s, Why *w);

// Pins whole pages of host memory, so that copies can be asynchronous.
bool gpu_pin(Gpu *g, void *p, size_t bytes, Why *w);
void gpu_unpin(Gpu *g, unsigned epoch, void *p);

#endif
// SPDX-License-Identifier: MIT
