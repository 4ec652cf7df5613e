// The shadow of shared memory: who wrote and who read each granule (the
// narrowest access of the kernel), and through which proxy. An access must be
// ordered (order.c) after the last write, a write after the reads since, too,
// unless both are strong: atomics, and loads and stores with an order.
#ifndef CUTE_SIMSHADOW_H
#define CUTE_SIMSHADOW_H

#include "sim/inside.h"

// An access of lanes of a warp to elements of m.
typedef struct Access {
  SimWarp *w;
  const SimIns *i;
  const SimMem *m;
  const int64_t *off;     // elements
  int64_t at[LANES];      // bytes from the object's first element
  uint32_t home[LANES];   // where m->rank says: first byte of that CTA's
  int bytes;
  bool write;
} Access;

static inline uint32_t shadow_address(const Access *x, int l) {
  uint32_t home = x->m->rank ? x->home[l] : x->w->home;
  return home + x->m->base + (uint32_t)x->at[l];
}

// Lane l reads, or writes, x->bytes bytes at addr. same: the bytes that lie
// there are those being written now; flags: of the granules from now on.
void shadow_read(Access *x, int l, uint32_t addr);
void shadow_write(Access *x, int l, uint32_t addr, bool same, uint8_t flags);
// Granule g was written by an actor, and nobody read it since.
void shadow_set(SimCluster *c, uint32_t g, int actor, uint32_t lanes,
                uint32_t clk, uint32_t src, uint8_t flags);
void shadow_reset(SimCluster *c);
void shadow_free(SimCluster *c);

#endif
