// A GPU's memory pool, buffers allocated from the pool, and copies between
// buffers and the host.
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/shared.h"
#include "gpu/inside.h"

// ---- blocks ----

enum { STEP = 512 };  // a block's size is a multiple of this many bytes

static size_t rounded(size_t bytes) {
  return bytes < STEP ? STEP : (bytes + STEP - 1) / STEP * STEP;
}

static int logarithm(size_t n) {
  int k = 0;
  while (n >>= 1) k++;
  return k;
}

// Returns the set of streams (a bit for each stream's number) whose earlier
// work may still use free block b. The set is empty if the host has waited for
// the GPU since the block was freed.
static uint64_t busy(const GpuBlock *b) {
  return b->syncs == b->gpu->syncs ? b->before : 0;
}

// Removes from a list the first block of n to n + n / 8 bytes, and returns it.
// Skips blocks that a stream in the set `none` may still use.
static GpuBlock *take(GpuBlock **at, size_t n, uint64_t none) {
  for (; *at; at = &(*at)->next) {
    GpuBlock *b = *at;
    if (b->bytes < n || b->bytes > n + n / 8 || (busy(b) & none)) continue;
    *at = b->next;
    return b;
  }
  return NULL;
}

// Returns a free block of n bytes or a little more, or NULL. Skips blocks that
// a stream in the set `none` may still use. During a graph capture, prefers a
// block that was freed in the same capture.
static GpuBlock *find(Gpu *g, size_t n, uint64_t none) {
  GpuBlock *b = g->capture ? take(&g->capture->spare, n, 0) : NULL;
  for (int k = logarithm(n); !b && k <= logarithm(n + n / 8); k++)
    b = take(&g->pool->free[k], n, none);
  return b;
}

static void put(GpuPool *p, GpuBlock *b) {
  GpuBlock **list = &p->free[logarithm(b->bytes)];
  b->next = *list;
  *list = b;
}

// Removes any free block from the pool and returns it, or NULL if none is left.
static GpuBlock *pop(GpuPool *p) {
  for (size_t k = 0; k < sizeof p->free / sizeof *p->free; k++) {
    GpuBlock *b = p->free[k];
    if (!b) continue;
    p->free[k] = b->next;
    return b;
  }
  return NULL;
}

static void hand_out(GpuPool *p, GpuBlock *b) {
  // The bytes of a spare block of a capture are already in p->used.
  if (b->refs++) return;
  p->used += b->bytes;
  if (p->used > p->peak) p->peak = p->used;
}

void block_keep(GpuBlock *b) { b->refs++; }

void block_drop(GpuBlock *b) {
  Gpu *g = b->gpu;
  // If the context was lost, the driver has freed the block.
  bool lost = b->epoch != g->epoch;
  bool captured = g->capture && b->of == g->capture;
  bool spare = --b->refs == 1 && !lost && !b->shared && captured;
  if (b->refs && !spare) return;
  if (b->shared) {
    shared_drop(b->shared);
    base_free(b);
    return;
  }
  if (lost) {
    base_free(b);
    return;
  }
  if (b->used) {
    b->before = b->used;
    b->syncs = g->syncs;
    b->used = 0;
  }
  if (spare) {
    b->next = g->capture->spare;
    g->capture->spare = b;
    return;
  }
  g->pool->used -= b->bytes;
  put(g->pool, b);
}

// ---- memory that other libraries use ----

// Blocks of device memory that other libraries have released, on any host
// thread. The Gpu object and each lent block hold a reference; the last one to
// drop it frees the struct.
typedef struct GpuReturns {
  pthread_mutex_t lock;
  int owners;
  // whether the Gpu object was closed, so that its blocks no longer exist
  bool closed;
  GpuBlock *list;
} GpuReturns;

static void returns_drop(GpuReturns *r) {
  bool last = --r->owners == 0;
  pthread_mutex_unlock(&r->lock);
  if (!last) return;
  pthread_mutex_destroy(&r->lock);
  base_free(r);
}

// A block that another library uses.
typedef struct Lent {
  GpuReturns *to;
  GpuBlock *block;
} Lent;

static void lent_release(void *p, size_t bytes) {
  Lent *l = p;
  (void)bytes;
  pthread_mutex_lock(&l->to->lock);
  if (l->to->closed) {
    base_free(l->block);
  } else {
    l->block->next = l->to->list;
    l->to->list = l->block;
  }
  returns_drop(l->to);
  base_free(l);
}

Shared *devbuf_share(DevBuf *b) {
  Gpu *g = b->own.gpu;
  if (b->block->shared) {
    shared_keep(b->block->shared);
    return b->block->shared;
  }
  if (!g->returns) {
    g->returns = base_zeros(sizeof *g->returns);
    if (!g->returns) return NULL;
    pthread_mutex_init(&g->returns->lock, NULL);
    g->returns->owners = 1;
  }
  Lent *l = base_zeros(sizeof *l);
  Shared *s = l ? shared_new(lent_release, l, 0) : NULL;
  if (!s) {
    base_free(l);
    return NULL;
  }
  *l = (Lent){g->returns, b->block};
  pthread_mutex_lock(&g->returns->lock);
  g->returns->owners++;
  pthread_mutex_unlock(&g->returns->lock);
  block_keep(b->block);
  return s;
}

// Takes back the blocks that other libraries have released. Waits for the GPU,
// since streams of these libraries may still use the blocks.
static void take_back(Gpu *g) {
  if (!g->returns || g->capture) return;
  pthread_mutex_lock(&g->returns->lock);
  GpuBlock *list = g->returns->list;
  g->returns->list = NULL;
  pthread_mutex_unlock(&g->returns->lock);
  if (list) g->api->cuCtxSynchronize();
  while (list) {
    GpuBlock *b = list;
    list = b->next;
    block_drop(b);
  }
}

static void returns_close(Gpu *g) {
  if (!g->returns) return;
  g->capture = NULL;
  take_back(g);
  pthread_mutex_lock(&g->returns->lock);
  g->returns->closed = true;
  returns_drop(g->returns);
  g->returns = NULL;
}

void pool_forget(Gpu *g) {
  if (!g->pool) return;
  for (GpuBlock *b = pop(g->pool); b; b = pop(g->pool)) base_free(b);
  *g->pool = (GpuPool){.peak = g->pool->peak};
}

void pool_close(Gpu *g) {
  returns_close(g);
  pool_forget(g);
  base_free(g->pool);
  g->pool = NULL;
}

// No wait is necessary before cuMemFree, because cuMemFree waits for work that
// uses the block.
bool pool_trim(Gpu *g, size_t *bytes, Why *w) {
  *bytes = 0;
  if (!g->pool || !g->ctx) return true;
  if (!gpu_waits(g, "giving memory back", w) || !gpu_use(g, w)) return false;
  take_back(g);
  for (GpuBlock *b = pop(g->pool); b; b = pop(g->pool)) {
    *bytes += b->bytes;
    g->pool->held -= b->bytes;
    bool ok = CU(cuMemFree_v2, (b->ptr));
    base_free(b);
    if (!ok) return false;
  }
  return true;
}

bool block_use(GpuBlock *b, const GpuStream *s, Why *w) {
  Gpu *g = b->gpu;
  // The driver makes the default stream (NULL) wait for all other streams. Work
  // on another library's memory is ordered by the user.
  if (!s || b->shared) return true;
  uint64_t bit = (uint64_t)1 << s->number;
  if (b->used & bit) return true;
  uint64_t others = busy(b) & ~bit;
  for (int k = 1; others >> k; k++)
    if ((others >> k & 1) && g->stream[k] &&
        !gpustream_follow(g, s->s, g->stream[k]->s, w))
      return false;
  b->used |= bit;
  return true;
}

// Allocates a block from the driver. If memory is exhausted, returns all free
// blocks of the pool to the driver and tries a second time.
static GpuBlock *new_block(Gpu *g, size_t asked, Why *w) {
  CUdeviceptr p = 0;
  size_t freed = 0, bytes = rounded(asked);
  Why first;
  CUresult r = g->api->cuMemAlloc_v2(&p, bytes);
  if (r == CUDA_ERROR_OUT_OF_MEMORY && !g->capture &&
      pool_trim(g, &freed, &first) && freed)
    r = g->api->cuMemAlloc_v2(&p, bytes);
  if (!gpu_check(g, r, "cuMemAlloc_v2", w)) {
    size_t left = 0, total;
    if (r != CUDA_ERROR_OUT_OF_MEMORY) return NULL;
    g->api->cuMemGetInfo_v2(&left, &total);
    why(w, ERR_MEMORY, "the GPU has no %zu bytes left (%zu free)", asked,
        left);
    return NULL;
  }
  GpuBlock *b = base_zeros(sizeof *b);
  if (!b) {
    g->api->cuMemFree_v2(p);
    why(w, ERR_MEMORY, "out of memory");
    return NULL;
  }
  *b = (GpuBlock){.ptr = p, .bytes = bytes, .gpu = g, .epoch = g->epoch};
  g->pool->held += bytes;
  return b;
}

// ---- buffers ----

static bool bytes_of(DType t, size_t count, size_t *bytes) {
  size_t bits = (size_t)dtype_bits(t);
  if (count > (SIZE_MAX - 7 - STEP) / bits) return false;
  *bytes = (count * bits + 7) / 8;
  return true;
}

static void init(DevBuf *b, Gpu *g, DType t, size_t count, size_t bytes,
                 GpuBlock *block) {
  hand_out(g->pool, block);
  *b = (DevBuf){.own = {g, g->epoch, false}, .t = t, .count = count,
                .bytes = bytes, .ptr = block->ptr, .block = block};
}

static bool reuse(DevBuf *b, Gpu *g, DType t, size_t count, uint64_t none) {
  size_t bytes;
  if (!g->pool || !bytes_of(t, count, &bytes)) return false;
  GpuBlock *block = find(g, rounded(bytes), none);
  if (!block) return false;
  g->pool->hits++;
  init(b, g, t, count, bytes, block);
  return true;
}

bool devbuf_foreign(DevBuf *b, Gpu *g, DType t, size_t count, uint64_t ptr,
                    Shared *shared, Why *w) {
  size_t bytes;
  if (!bytes_of(t, count, &bytes))
    return why(w, ERR_MEMORY, "%zu elements of %s are too many", count,
               dtype_name(t));
  if (!gpu_use(g, w)) return false;
  GpuBlock *block = base_zeros(sizeof *block);
  if (!block) return why(w, ERR_MEMORY, "out of memory");
  *block = (GpuBlock){.ptr = ptr, .bytes = bytes, .gpu = g, .epoch = g->epoch,
                      .refs = 1, .shared = shared};
  *b = (DevBuf){.own = {g, g->epoch, false}, .t = t, .count = count,
                .bytes = bytes, .ptr = ptr, .block = block};
  return true;
}

bool devbuf_reuse(DevBuf *b, Gpu *g, DType t, size_t count) {
  return !g->allocate && reuse(b, g, t, count, 0);
}

// Allocates a buffer by another library's allocator.
static bool allocate_foreign(DevBuf *b, Gpu *g, DType t, size_t count,
                             size_t bytes, Why *w) {
  uint64_t ptr;
  Shared *s;
  if (!g->allocate(g->allocator, g->ordinal, bytes, &ptr, &s, w)) return false;
  if (devbuf_foreign(b, g, t, count, ptr, s, w)) return true;
  shared_drop(s);
  return false;
}

// Allocates a buffer of `count` elements. Skips blocks of the pool that a
// stream in the set `none` may still use.
static bool allocate(DevBuf *b, Gpu *g, DType t, size_t count, uint64_t none,
                     Why *w) {
  size_t bytes;
  if (!bytes_of(t, count, &bytes))
    return why(w, ERR_MEMORY, "%zu elements of %s are too many", count,
               dtype_name(t));
  if (!gpu_use(g, w)) return false;
  if (g->allocate && !g->capture)
    return allocate_foreign(b, g, t, count, bytes, w);
  if (!g->pool && !(g->pool = base_zeros(sizeof *g->pool)))
    return why(w, ERR_MEMORY, "out of memory");
  take_back(g);
  if (reuse(b, g, t, count, none)) return true;
  GpuBlock *block = new_block(g, bytes, w);
  if (!block) return false;
  g->pool->misses++;
  init(b, g, t, count, bytes, block);
  return true;
}

bool devbuf_alloc(DevBuf *b, Gpu *g, DType t, size_t count, Why *w) {
  return allocate(b, g, t, count, 0, w);
}

bool devbuf_scratch(DevBuf *b, Gpu *g, size_t bytes, const GpuStream *s,
                    Why *w) {
  if (!s) s = g->now;
  return allocate(b, g, DT_U8, bytes, s ? ~((uint64_t)1 << s->number) : 0, w);
}

void devbuf_close(DevBuf *b) {
  if (!b->own.closed && b->block) block_drop(b->block);
  gpu_disown(&b->own);
  b->block = NULL;
  b->ptr = 0;
}

bool devbuf_work(DevBuf *b, const GpuStream *s, Why *w) {
  Gpu *g = b->own.gpu;
  return gpu_usable(&b->own, "device buffer", w) &&
         block_use(b->block, s ? s : g->now, w) &&
         (!g->capture || graph_keeps(g->capture, b->block, w));
}

// Checks, before operation `what`, that the buffer is usable and that the host
// may wait for the GPU.
static bool usable(const DevBuf *b, const char *what, Why *w) {
  Gpu *g = b->own.gpu;
  return gpu_usable(&b->own, "device buffer", w) && gpu_waits(g, what, w) &&
         gpu_use(g, w);
}

// Checks that the buffer is usable on stream s, records that s uses it, and
// stores the driver's handle of s in *out.
static bool ready(DevBuf *b, const GpuStream *s, CUstream *out, Why *w) {
  Gpu *g = b->own.gpu;
  return gpu_usable(&b->own, "device buffer", w) && gpu_use(g, w) &&
         gpustream_of(g, s, out, w) && devbuf_work(b, s, w);
}

// ---- copies ----

bool devbuf_upload(DevBuf *b, size_t at, const void *p, size_t n, Why *w) {
  Gpu *g = b->own.gpu;
  return usable(b, "a copy from the host", w) &&
         (n == 0 || CU(cuMemcpyHtoD_v2, (b->ptr + at, p, n)));
}

bool devbuf_download(const DevBuf *b, size_t at, void *p, size_t n, Why *w) {
  Gpu *g = b->own.gpu;
  if (!usable(b, "a copy to the host", w)) return false;
  if (n == 0) return true;
  if (!CU(cuMemcpyDtoH_v2, (p, b->ptr + at, n))) return false;
  // The copy on the default stream has waited for all other streams.
  g->nran = 0;
  g->syncs++;
  return true;
}

bool devbuf_write(DevBuf *b, size_t at, const void *p, size_t n,
                  const GpuStream *s, Why *w) {
  Gpu *g = b->own.gpu;
  CUstream to;
  return ready(b, s, &to, w) &&
         (n == 0 || CU(cuMemcpyHtoDAsync_v2, (b->ptr + at, p, n, to)));
}

bool devbuf_read(DevBuf *b, size_t at, void *p, size_t n, const GpuStream *s,
                 Why *w) {
  Gpu *g = b->own.gpu;
  CUstream from;
  return ready(b, s, &from, w) &&
         (n == 0 || CU(cuMemcpyDtoHAsync_v2, (p, b->ptr + at, n, from)));
}

// Copies memory from one GPU to another. The host waits for pending work of the
// source GPU.
static bool copy_peer(DevBuf *b, size_t at, DevBuf *src, size_t from, size_t n,
                      CUstream to, Why *w) {
  Gpu *g = b->own.gpu, *other = src->own.gpu;
  return gpu_waits(other, "a copy to another GPU", w) &&
         gpu_sync(other, w) && gpu_use(g, w) &&
         CU(cuMemcpyPeerAsync, (b->ptr + at, g->ctx, src->ptr + from,
                                other->ctx, n, to));
}

bool devbuf_copy(DevBuf *b, size_t at, DevBuf *src, size_t from, size_t n,
                 const GpuStream *s, Why *w) {
  Gpu *g = b->own.gpu;
  CUstream to;
  if (!gpu_usable(&src->own, "device buffer", w) || !ready(b, s, &to, w))
    return false;
  if (n == 0) return true;
  if (src->own.gpu != g) return copy_peer(b, at, src, from, n, to, w);
  return devbuf_work(src, s, w) &&
         CU(cuMemcpyDtoDAsync_v2, (b->ptr + at, src->ptr + from, n, to));
}

bool devbuf_fill(DevBuf *b, size_t at, size_t n, uint64_t bits, int size,
                 const GpuStream *s, Why *w) {
  Gpu *g = b->own.gpu;
  CUstream to;
  CUdeviceptr p = b->ptr + at;
  if (!ready(b, s, &to, w)) return false;
  if (n == 0) return true;
  uint32_t low = (uint32_t)bits, high = (uint32_t)(bits >> 32);
  switch (size) {
    case 1: return CU(cuMemsetD8Async, (p, (unsigned char)bits, n, to));
    case 2: return CU(cuMemsetD16Async, (p, (unsigned short)bits, n, to));
    case 4: return CU(cuMemsetD32Async, (p, low, n, to));
    default: break;
  }
  if (low == high) return CU(cuMemsetD32Async, (p, low, 2 * n, to));
  return CU(cuMemsetD2D32Async, (p, 8, low, 1, n, to)) &&
         CU(cuMemsetD2D32Async, (p + 4, 8, high, 1, n, to));
}

// ---- host memory ----

bool gpu_pin(Gpu *g, void *p, size_t bytes, Why *w) {
  return gpu_use(g, w) &&
         CU(cuMemHostRegister_v2, (p, bytes, CU_MEMHOSTREGISTER_PORTABLE));
}

void gpu_unpin(Gpu *g, unsigned epoch, void *p) {
  Why w;
  if (epoch != g->epoch || !g->ctx) return;
  // Wait, because a copy may still use the memory.
  if (!g->capture) gpu_sync(g, &w);
  if (g->ctx && gpu_use(g, &w)) g->api->cuMemHostUnregister(p);
}
// SPDX-License-Identifier: MIT
