// Explains why a wait for groups did not order an access, and why two blocks
// are unordered (waits.c).
#ifndef CUTE_WATCH_WAITS_H
#define CUTE_WATCH_WAITS_H

#include "watch/shadow.h"

// Records that warp w executes instruction i, which waits for groups of
// asynchronous operations such as cp.async or wgmma.
void waits_note(SimWarp *w, const SimIns *i);
// Fills in f with the reason why lane l of x->w is not ordered after a read by
// `actor` in `epoch`. The actor (a vector-clock entry) stands for bulk stores
// of a warp or MMAs of a warpgroup. Does nothing if f already has a reason.
void waits_reader(SimFault *f, const Access *x, int l, int actor,
                  uint32_t epoch);
// Reports whether the cp.async of warp u that fills granule g belongs to a
// later loop iteration than the access of lane l of x. This is the case if warp
// u had committed at least as many groups before this cp.async as lane l has
// committed so far.
bool waits_ahead(const Access *x, int l, const SimWarp *u, uint32_t g);
// Fills in f with the reason why lane l of x->w does not wait for the pending
// write to granule g. A cp.async of warp u or a bulk copy makes this write.
void waits_flight(SimFault *f, const Access *x, int l, const SimWarp *u,
                  uint32_t g);
// Fills in f with the reason of a race between two blocks: an access or a fence
// has a scope below that of the GPU, or the wait for a bulk store used .read.
void waits_blocks(SimFault *f, const SimProg *p);
// Returns the number of mbarriers in the memory object of b in b's CTA.
int waits_ring(const SimCluster *c, const SimMbar *b);
// Explains a race f between two warp roles at granule g. Sets in f whether x
// came after a wait for another stage. If x is a write after a read, warp u
// made the read in epoch clk; then sets in f whether u had released the stage
// before this read.
void waits_stray(SimFault *f, const Access *x, uint32_t g, const SimWarp *u,
                 uint32_t clk);
// Handles a read by lane l of a granule g that has not been written. Fills in f
// with the state of the same element in the other stages of the ring.
void waits_look(SimFault *f, const Access *x, int l, uint32_t g);

#endif
// SPDX-License-Identifier: MIT
