// The shadow of shared memory, and of the global memory that a kernel writes:
// who in this cluster wrote and who read each granule (the narrowest access of
// the kernel), and through which proxy. An access must be ordered (order.c)
// after the last write, a write after the reads since, too, unless both are
// strong: atomics, and loads and stores with an order; or unless both writes
// store the same. Strong writes have no order among them: what was before one
// that is weaker, and not known to all, stays to be asked for.
//
// Granules of shared memory stand first, CTA by CTA; those of global memory
// behind them, in lines of LINE that are made when first touched.
#ifndef CUTE_SIMSHADOW_H
#define CUTE_SIMSHADOW_H

#include "sim/blocks.h"

// STRONG: written by an atomic or with an order; RELEASED: and what that
// carries is kept. FAR: read from elsewhere, too. AGENT: written through the
// proxy of agents. NARROW: STRONG for its CTA only. KEPT: weaker writes before
// a strong one stand among the readers.
enum { GF_DEFINED = 1, GF_PENDING = 2, GF_STRONG = 4, GF_RELEASED = 8,
       GF_FAR = 16, GF_AGENT = 32, GF_NARROW = 64, GF_KEPT = 128 };
// What an instruction writes there.
static inline uint8_t shadow_flags(const SimIns *i) {
  if (!i->sem) return GF_DEFINED;
  bool narrow = i->scope && i->scope < SCOPE_CLUSTER;
  return GF_DEFINED | GF_STRONG | (narrow ? GF_NARROW : 0);
}
struct SimGran {   // the last write, and who read since
  uint32_t clk, src, lanes;
  uint32_t readers;        // warps of its CTA; of global memory a hash of
                           // what it wrote: others may have stored since
  uint32_t also;           // warps of its CTA that stored the same before
  uint16_t warp;           // of the cluster
  uint8_t flags;
};
// Reads: with an order, for their CTA only, or without one; or a write, without
// an order, or (strong) for its CTA only.
enum { READ_STRONG, READ_NARROW, READ_WEAK, READ_WROTE };
struct SimRead {   // of one warp: its last reads since the write, of
  uint32_t clk, lanes;     // the weakest kind that there is
  uint32_t src : 29, kind : 2, strong : 1;  // strong: with an order, too
};
struct SimFar {    // reads by an actor of no warp of the CTA
  uint32_t next;
  int actor;
  SimRead read;
};

// An access of lanes of a warp to elements of m.
typedef struct Access {
  SimWarp *w;
  const SimIns *i;
  const SimMem *m;
  const int64_t *off;     // elements
  int64_t at[LANES];      // bytes from the object's first element
  int64_t piece;          // of these, the granule of global memory
  uint32_t home[LANES];   // where m->rank says: first byte of that CTA's
  int bytes;
  int64_t unit;           // its alignment, 0: `bytes`
  bool write;
  bool agent;             // through the proxy of agents
  bool flying;            // a cp.async's read, which may come later
  const struct SimMbar *ends;  // who is told of its end
  bool barrier;           // an mbarrier: who waited there knows of it
} Access;

static inline uint32_t shadow_address(const Access *x, int l) {
  uint32_t home = x->m->rank ? x->home[l] : x->w->home;
  return home + x->m->base + (uint32_t)x->at[l];
}

enum { LINE = 32, NO_GRANULE = -1 };
// The cluster's granule g of an area; NO_GRANULE: out of memory.
int64_t shadow_granule(SimCluster *c, const SimArea *a, size_t g);
// Is there a shadow of an object in global memory?
static inline bool shadow_has(const SimMem *m) {
  return m->area && m->area->written;
}
// The area's granule at byte `at` of m.
static inline size_t shadow_place(const SimMem *m, int64_t at) {
  return (size_t)(m->p - m->area->p + at) >> m->area->shift;
}
// Lane l reads, or writes, x->bytes bytes at x->at[l] of global memory: those
// at data (NULL: whatever they are), flags as below.
void shadow_read_global(Access *x, int l);
void shadow_write_global(Access *x, int l, const uint8_t *data,
                         uint8_t flags);

// What an agent of lane l wrote is there, as if the lane did it now.
void shadow_settle_global(Access *x, int l);
// What a cp.async of lane l read is read: until that epoch of an actor.
void shadow_landed_global(Access *x, int l, int actor, uint32_t epoch);
// An agent begins to read for lane l, or to write (strong: as atomics do): the
// granules from the first one on in its line, of `bytes` at x->at[l], or NULL.
void shadow_lend_global(Access *x, int l, int actor, uint32_t epoch);

// Lane l reads, or writes, x->bytes bytes at addr. same: the bytes that lie
// there are those being written now; flags: of the granules from now on.
void shadow_read(Access *x, int l, uint32_t addr);
void shadow_write(Access *x, int l, uint32_t addr, bool same, uint8_t flags);
// An agent begins to read for lane l: an actor does, until that epoch. Actor
// -1: it did for another lane already, and for this one, too.
void shadow_lend(Access *x, int l, uint32_t addr, int actor, uint32_t epoch);
// Forgets who read granule g from elsewhere (GF_FAR).
void shadow_drop(SimCluster *c, uint32_t g);
// Granule g was written by an actor, and nobody read it since.
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
bool shadow_init(SimCluster *c);  // false: out of memory
void shadow_reset(SimCluster *c);
void shadow_free(SimCluster *c);

#endif
