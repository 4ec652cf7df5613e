// Shadow of shared memory, and of the global memory that a kernel writes. Each
// granule records this cluster's last write, the reads since then, and the
// proxies of these accesses. An access
// must happen after the last write. A write must also happen after the reads
// since then. There are two exceptions: both accesses are strong (atomics, and
// ordered loads and stores), or both are writes of the same value. Strong
// writes are unordered among each other. Therefore a weaker access before a
// strong write is kept until all warps know of it.
//
// Shared memory has pages. The granules of a page have 1 << WIDEST bytes at
// first; an access that is narrower splits them. All granules of one width are
// a level: a range of granules for all shared memory, CTA by CTA, of which a
// page uses its part. Pages keep their width from cluster to cluster. A granule
// of global memory is as wide as the kernel's narrowest access to its area.
// These come in lines of LINE granules, which are created on first use.
#ifndef CUTE_SIMSHADOW_H
#define CUTE_SIMSHADOW_H

#include "sim/blocks.h"

// Flags of a granule. STRONG: an atomic, or an instruction with a memory order,
// wrote it. RELEASED: a location record holds what its writer released. FAR: it
// has a list of reads. AGENT: it was written through the async proxy. NARROW:
// it is STRONG, with CTA scope. KEPT: weaker writes before a strong one are in
// its list.
enum { GF_DEFINED = 1, GF_PENDING = 2, GF_STRONG = 4, GF_RELEASED = 8,
       GF_FAR = 16, GF_AGENT = 32, GF_NARROW = 64, GF_KEPT = 128 };
// Returns the flags of a granule that an instruction writes.
static inline uint8_t shadow_flags(const SimIns *i) {
  if (!i->sem) return GF_DEFINED;
  bool narrow = i->scope && i->scope < SCOPE_CLUSTER;
  return GF_DEFINED | GF_STRONG | (narrow ? GF_NARROW : 0);
}
struct SimGran {   // last write of a granule, and warps that read it since
  uint32_t clk, src, lanes;
  uint32_t readers;        // shared memory: warps of its CTA that read; global
                           // memory: hash of the bytes that this cluster stored
  uint32_t also;           // warps of the granule's CTA that stored the same
                           // value
  uint16_t warp;           // last writer: a warp of the cluster, or another
                           // actor
  uint8_t flags;
};
// Kinds of recorded accesses: a read with memory order; one with CTA scope; one
// without order. WROTE: a write, either without order or strong with CTA scope.
enum { READ_STRONG, READ_NARROW, READ_WEAK, READ_WROTE };
// The last reads of one warp since the last write. Only the weakest kind among
// the reads is kept.
struct SimRead {
  uint32_t clk, lanes;
  uint32_t src : 29, kind : 2, strong : 1;  // strong: some of the reads had a
                                            // memory order
};
struct SimFar {    // reads by an actor that is not a warp of the CTA
  uint32_t next;
  int actor;
  SimRead read;
};

// An access of lanes of a warp to elements of m.
typedef struct Access {
  SimWarp *w;
  const SimIns *i;
  const SimMem *m;
  const int64_t *off;     // offsets in elements
  int64_t at[LANES];      // byte offsets from the object's first element
  int64_t piece;          // global memory: position of the granule being
                          // checked
  uint32_t home[LANES];   // if m->rank: first byte of the owner's memory
  int bytes;
  int64_t unit;           // alignment of the access; 0: `bytes`
  bool write;
  bool agent;             // whether the access uses the async proxy
  bool flying;            // a cp.async's read, which may happen later
  const struct SimMbar *ends;  // mbarrier at which the access completes
  bool barrier;           // an mbarrier operation: threads that wait acquire it
} Access;

static inline uint32_t shadow_address(const Access *x, int l) {
  uint32_t home = x->m->rank ? x->home[l] : x->w->home;
  return home + x->m->base + (uint32_t)x->at[l];
}

enum { WIDEST = 4, SHADOW_PAGE = 128 };
typedef struct SimLevel {  // granules of one width
  uint32_t first, n;       // range in SimCluster.gran; n is 0 until a
                           // page needs the level
  int shift;               // log2 of a granule's bytes
  SimRead *read;           // last reads, by granule and warp of its CTA
} SimLevel;
struct SimPages {
  SimLevel level[WIDEST + 1];  // by shift
  uint32_t bytes;          // shared memory of the cluster
  uint8_t shift[];         // by page
};

// Granules g to g + n - 1 of shared memory, which are in one page and have
// `bytes` bytes in all.
typedef struct Granules {
  uint32_t g, n, bytes;
  const SimLevel *level;
} Granules;

// Splits a page for an access of these bytes of it.
void shadow_split(SimCluster *c, uint32_t addr, uint32_t bytes);
// Returns the granules of an access, up to the end of the page of addr. May
// move all granules.
static inline Granules shadow_run(SimCluster *c, uint32_t addr,
                                  uint32_t bytes) {
  const uint8_t *shift = &c->pages->shift[addr / SHADOW_PAGE];
  uint32_t left = SHADOW_PAGE - addr % SHADOW_PAGE;
  if (bytes > left) bytes = left;
  if ((addr | bytes) & ((1u << *shift) - 1)) shadow_split(c, addr, bytes);
  const SimLevel *v = &c->pages->level[*shift];
  return (Granules){v->first + (addr >> *shift), bytes >> *shift, bytes, v};
}
// Returns the granule that contains a byte of shared memory.
static inline uint32_t shadow_shared(const SimCluster *c, uint32_t addr) {
  const SimLevel *v = &c->pages->level[c->pages->shift[addr / SHADOW_PAGE]];
  return v->first + (addr >> v->shift);
}
// Returns the first byte of granule g of shared memory; UINT32_MAX: it is in
// global memory.
uint32_t shadow_byte(const SimCluster *c, uint32_t g);

enum { LINE = 32, NO_GRANULE = -1 };
// Returns the cluster's granule g of an area; NO_GRANULE: out of memory.
int64_t shadow_granule(SimCluster *c, const SimArea *a, size_t g);
// Reports whether an object in global memory has a shadow.
static inline bool shadow_has(const SimMem *m) {
  return m->area && m->area->written;
}
// Returns the granule of the area at byte `at` of m.
static inline size_t shadow_place(const SimMem *m, int64_t at) {
  return (size_t)(m->p - m->area->p + at) >> m->area->shift;
}
// Check and record a read, or a write, by lane l of x->bytes bytes at x->at[l]
// of global memory. data: the written bytes (NULL: unknown). flags: see
// shadow_write.
void shadow_read_global(Access *x, int l);
void shadow_write_global(Access *x, int l, const uint8_t *data,
                         uint8_t flags);

// Makes what an agent of lane l wrote visible, as if the lane wrote it now.
void shadow_settle_global(Access *x, int l);
// Records that the read of a cp.async of lane l is complete. From now on the
// read belongs to `epoch` of `actor`.
void shadow_landed_global(Access *x, int l, int actor, uint32_t epoch);
// Records that an agent reads x->bytes bytes at x->at[l] of global memory for
// lane l, until `epoch` of `actor`.
void shadow_lend_global(Access *x, int l, int actor, uint32_t epoch);

// Check and record a read, or a write, by lane l of x->bytes bytes at addr.
// same: the written bytes equal the present ones. flags: new flags of the
// granules.
void shadow_read(Access *x, int l, uint32_t addr);
void shadow_write(Access *x, int l, uint32_t addr, bool same, uint8_t flags);
// Reports the granules of x->bytes bytes at addr that were never written.
void shadow_defined(Access *x, int l, uint32_t addr);
// Records that an agent reads x->bytes bytes at addr for lane l, until `epoch`
// of `actor`. actor -1: the agent already reads these bytes for another lane.
void shadow_lend(Access *x, int l, uint32_t addr, int actor, uint32_t epoch);
// Removes granule g's list of reads and writes (GF_FAR).
void shadow_drop(SimCluster *c, uint32_t g);
// Records that an actor wrote granule g, and that it was not read since.
static inline void shadow_set(SimCluster *c, uint32_t g, int actor,
                              uint32_t lanes, uint32_t clk, uint32_t src,
                              uint8_t flags) {
  SimGran *q = &c->gran[g];
  if (q->flags & GF_FAR) shadow_drop(c, g);
  q->clk = clk;
  q->src = src;
  q->lanes = lanes;
  q->readers = q->also = 0;
  q->warp = (uint16_t)actor;
  q->flags = flags;
}
// Does the same for all granules of these bytes of shared memory.
void shadow_set_all(SimCluster *c, uint32_t addr, uint32_t bytes, int actor,
                    uint32_t lanes, uint32_t clk, uint32_t src, uint8_t flags);
bool shadow_init(SimCluster *c);  // false: out of memory
void shadow_reset(SimCluster *c);
void shadow_free(SimCluster *c);

#endif
// SPDX-License-Identifier: MIT
