// Shadow of shared memory, and of the global memory that a kernel writes. The
// unit of shadow memory is a granule. Each granule records this cluster's last
// write, the reads since that write, and the proxies of these accesses. The
// last write must happen before every access, and the reads since the last
// write must happen before the next write. There are two exceptions: both
// accesses are strong (atomics, and loads and stores with a memory order), or
// both are writes of the same value. Strong writes are unordered among each
// other. Therefore a weaker access before a strong write stays recorded until
// it happens before all warps.
//
// Shared memory is divided into pages. The granules of a page have 1 << WIDEST
// bytes at first. A narrower access splits them. A page keeps its granule width
// for later clusters. All granules of one width form a level, which covers all
// shared memory, CTA by CTA. A page uses its part of one level. A granule of
// global memory is as wide as the kernel's narrowest access to its area.
// Granules of global memory are created on first use, in lines of LINE
// granules.
#ifndef CUTE_WATCH_SHADOW_H
#define CUTE_WATCH_SHADOW_H

#include "decode/areas.h"
#include "sim/machine.h"
#include "watch/hb_cluster.h"
#include "watch/own.h"

// Flags of a granule (unit of shadow memory).
// - DEFINED: it was written.
// - PENDING: an operation in flight will write it.
// - STRONG: an atomic, or an instruction with a memory order, wrote it.
// - RELEASED: a location record (hb_cluster.c) holds what its writer released.
// - FAR: it has a list of reads.
// - AGENT: it was written through the async proxy.
// - NARROW: it is STRONG, and the write had CTA scope.
// - KEPT: its list has writes that precede the last strong write: weaker writes
//   and, if only atomics without a result followed, strong writes of other
//   actors.
enum { GF_DEFINED = 1, GF_PENDING = 2, GF_STRONG = 4, GF_RELEASED = 8,
       GF_FAR = 16, GF_AGENT = 32, GF_NARROW = 64, GF_KEPT = 128 };
// Returns the flags of a granule after instruction i writes it.
static inline uint8_t shadow_flags(const SimIns *i) {
  if (!i->sem) return GF_DEFINED;
  bool narrow = i->scope && i->scope < SCOPE_CLUSTER;
  return GF_DEFINED | GF_STRONG | (narrow ? GF_NARROW : 0);
}
// a granule (unit of shadow memory): its last write, and the warps that have
// read it since that write
typedef struct SimGran {
  uint32_t clk, src, lanes;
  // Shared memory: mask of the warps of the owning CTA that read the granule
  // since the last write. Global memory: hash of the bytes that this cluster
  // stored.
  uint32_t readers;
  // mask of the warps of the owning CTA that also stored the same value as the
  // last write
  uint32_t also;
  // actor (vector-clock entry, hb_cluster.c) of the last write: a warp of the
  // cluster, or an asynchronous operation
  uint16_t warp;
  uint8_t flags;
  uint8_t used;  // shared memory: READ_EVER, READ_SINCE (unread.c)
} SimGran;
// whether the granule was ever read, and whether it was read since its last
// write
enum { READ_EVER = 1, READ_SINCE = 2 };
// Kinds of recorded accesses.
// - STRONG: a read with a memory order.
// - NARROW: a read with a memory order and CTA scope.
// - WEAK: a read without a memory order.
// - WROTE: a write.
enum { READ_STRONG, READ_NARROW, READ_WEAK, READ_WROTE };
// The reads of a granule by one warp since the last write. `kind` is the
// weakest kind of these reads.
typedef struct SimRead {
  uint32_t clk, lanes;
  // strong: whether some of the reads had a memory order. narrow: whether a
  // recorded strong write has CTA scope.
  uint32_t src : 28, kind : 2, strong : 1, narrow : 1;
} SimRead;
// entry of a granule's list: the accesses by an actor (vector-clock entry) that
// is not a warp of the CTA that owns the memory
typedef struct SimFar {
  uint32_t next;
  int actor;
  SimRead read;
} SimFar;

enum { WIDEST = 4, SHADOW_PAGE = 128, WROTE = 1024 };
typedef struct SimLevel {  // all granules of one width in shared memory
  // The level has granules first to first + n - 1 of Shadow.gran. n is 0 until
  // a page needs the level.
  uint32_t first, n;
  int shift;               // log2 of the bytes of a granule
  // for each granule and each warp of its CTA: the reads since the last write
  SimRead *read;
} SimLevel;
typedef struct SimPages {
  SimLevel level[WIDEST + 1];  // indexed by log2 of the width
  uint32_t bytes;          // bytes of shared memory of the cluster
  // writes: number of writes so far. wrote[k]: number of the last write to the
  // k-th WROTE bytes of shared memory.
  uint64_t writes, *wrote;
  uint8_t shift[];         // for each page: log2 of its granules' width
} SimPages;

typedef struct Shadow {        // the shadow memory of a cluster
  SimGran *gran;  // granules of shared memory: ngran in use, maxgran allocated
  uint32_t ngran, maxgran;
  struct SimLines *lines;      // tracked lines of global memory
  SimPages *pages;             // pages of shared memory
  // Entries of the lists of all granules; entry 0 is unused. The list of
  // granule g starts at far[farat[g]].
  SimFar *far;
  uint32_t *farat;             // NULL: no list exists yet
  uint32_t nfar, maxfar, farfree;
  // for each granule: 1 + number of the record of what its last strong write
  // released (hb_cluster.c); 0: no record. NULL until a record is needed.
  uint32_t *place;
} Shadow;
static inline Shadow *shadow_of(const SimCluster *c) {
  return c->own[OWN_SHADOW];
}

// Granules (units of shadow memory) g to g + n - 1 of shared memory. They are
// in one page and have `bytes` bytes in total.
typedef struct Granules {
  uint32_t g, n, bytes;
  const SimLevel *level;
} Granules;

// Splits the granules of the page that contains address addr, until an access
// to `bytes` bytes at addr covers whole granules.
void shadow_split(SimCluster *c, uint32_t addr, uint32_t bytes);
// Returns the granules of an access to `bytes` bytes at addr, up to the end of
// addr's page. May reallocate Shadow.gran.
static inline Granules shadow_run(SimCluster *c, uint32_t addr,
                                  uint32_t bytes) {
  const uint8_t *shift = &shadow_of(c)->pages->shift[addr / SHADOW_PAGE];
  uint32_t left = SHADOW_PAGE - addr % SHADOW_PAGE;
  if (bytes > left) bytes = left;
  if ((addr | bytes) & ((1u << *shift) - 1)) shadow_split(c, addr, bytes);
  const SimLevel *v = &shadow_of(c)->pages->level[*shift];
  return (Granules){v->first + (addr >> *shift), bytes >> *shift, bytes, v};
}
// shadow_shared returns the number of the granule that contains byte addr of
// shared memory. shadow_at returns the granule.
static inline uint32_t shadow_shared(const SimCluster *c, uint32_t addr) {
  const SimPages *t = shadow_of(c)->pages;
  const SimLevel *v = &t->level[t->shift[addr / SHADOW_PAGE]];
  return v->first + (addr >> v->shift);
}
static inline SimGran *shadow_at(const SimCluster *c, uint32_t addr) {
  return &shadow_of(c)->gran[shadow_shared(c, addr)];
}
// Returns the address of the first byte of granule g of shared memory, or
// UINT32_MAX if g is a granule of global memory.
uint32_t shadow_byte(const SimCluster *c, uint32_t g);

enum { LINE = 32, NO_GRANULE = -1 };
// Returns the index in Shadow.gran of granule g of area a, or NO_GRANULE if
// memory is exhausted.
int64_t shadow_granule(SimCluster *c, const SimArea *a, size_t g);
// Returns the granule of byte `at` of m, or NO_GRANULE if the byte has none.
// `home` is the byte of the cluster's shared memory at which m's CTA begins.
static inline int64_t shadow_find(SimCluster *c, const SimMem *m, uint32_t home,
                                  int64_t at) {
  switch (m->memory) {
    case MEMORY_SHARED: return shadow_shared(c, home + m->base + (uint32_t)at);
    case MEMORY_GLOBAL:
      if (!areas_recorded(m)) return NO_GRANULE;
      return shadow_granule(c, m->area, areas_granule(m, at));
    case MEMORY_REGISTERS: case MEMORY_TENSOR: case MEMORY_NONE: break;
  }
  return NO_GRANULE;
}
// Check and record that lane l reads or writes x->bytes bytes at x->at[l] of
// global memory. `data` has the written bytes; NULL: unknown. `flags` are the
// flags of the granules after the write.
void shadow_read_global(Access *x, int l);
void shadow_write_global(Access *x, int l, const uint8_t *data,
                         uint8_t flags);

// Makes the write of lane l's asynchronous operation visible, as if lane l
// wrote these bytes now.
void shadow_settle_global(Access *x, int l);
// Records that the read by lane l's cp.async is complete. From now on, it
// counts as a read by `actor` (a vector-clock entry) in `epoch`.
void shadow_landed_global(Access *x, int l, int actor, uint32_t epoch);
// Records that an asynchronous operation reads x->bytes bytes at x->at[l] of
// global memory for lane l. The read is complete for threads that have acquired
// `epoch` of `actor` (a vector-clock entry).
void shadow_lend_global(Access *x, int l, int actor, uint32_t epoch);

// Check and record that lane l reads or writes x->bytes bytes at addr of shared
// memory. `same` is true if the written bytes equal the present bytes. `flags`
// are the flags of the granules after the write.
void shadow_read(Access *x, int l, uint32_t addr);
void shadow_write(Access *x, int l, uint32_t addr, bool same, uint8_t flags);
// Reports granules among x->bytes bytes at addr that were never written.
void shadow_defined(Access *x, int l, uint32_t addr);
// Records that an asynchronous operation reads x->bytes bytes at addr of shared
// memory for lane l. The read is complete for threads that have acquired
// `epoch` of `actor` (a vector-clock entry). actor = -1: the operation already
// reads these bytes for another lane.
void shadow_lend(Access *x, int l, uint32_t addr, int actor, uint32_t epoch);
// Reports whether an asynchronous operation of lane l may read the bytes that
// *t describes, which shadow_lend recorded for another warp. May return false
// although the operation may read them.
bool shadow_lent(Access *x, int l, const SimLent *t);
// Removes the list of accesses to granule g (GF_FAR).
void shadow_drop(SimCluster *c, uint32_t g);
// Records that an actor wrote granule g, and that nothing has read it since.
static inline void shadow_set(SimCluster *c, uint32_t g, int actor,
                              uint32_t lanes, uint32_t clk, uint32_t src,
                              uint8_t flags) {
  SimGran *q = &shadow_of(c)->gran[g];
  if (q->flags & GF_FAR) shadow_drop(c, g);
  q->clk = clk;
  q->src = src;
  q->lanes = lanes;
  q->readers = q->also = 0;
  q->used &= READ_EVER;
  q->warp = (uint16_t)actor;
  q->flags = flags;
}
// Calls shadow_set for all granules of `bytes` bytes of shared memory at addr.
void shadow_set_all(SimCluster *c, uint32_t addr, uint32_t bytes, int actor,
                    uint32_t lanes, uint32_t clk, uint32_t src, uint8_t flags);
bool shadow_init(SimCluster *c);  // returns false if memory is exhausted
void shadow_reset(SimCluster *c);
void shadow_free(SimCluster *c);

#endif
// SPDX-License-Identifier: MIT
