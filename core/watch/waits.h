// Explains why waits did not suffice (waits.c).
#ifndef CUTE_WATCH_WAITS_H
#define CUTE_WATCH_WAITS_H

#include "watch/shadow.h"

// Records a wait for groups by warp w at instruction i.
void waits_note(SimWarp *w, const SimIns *i);
// Fills in why lane l of x->w is not ordered after a read by `actor` (a bulk
// store or a warpgroup's MMA) in `epoch`, unless the fault already has a
// reason.
void waits_reader(SimFault *f, const Access *x, int l, int actor,
                  uint32_t epoch);
// Reports whether the cp.async of warp u that fills granule g belongs to a
// later iteration than the current one of lane l of x: warp u committed more
// groups before this cp.async than lane l has committed so far.
bool waits_ahead(const Access *x, int l, const SimWarp *u, uint32_t g);
// Fills in why lane l of x->w does not wait for a pending write to granule g,
// by a cp.async of warp u or by a bulk copy.
void waits_flight(SimFault *f, const Access *x, int l, const SimWarp *u,
                  uint32_t g);
// Fills in the reason of a race between two blocks if the wait for a bulk store
// used .read.
void waits_store(SimFault *f, const SimProg *p);
// For a race f between two warp roles at granule g: sets in f whether x came
// after a wait for another stage. If x writes after a read, u is the warp that
// read in epoch clk; sets in f whether u had released the stage before this
// read.
void waits_stray(SimFault *f, const Access *x, uint32_t g, const SimWarp *u,
                 uint32_t clk);
// Fills in the state of the other stages at the same place, for a read by lane
// l of granule g that nothing wrote or a pending operation writes.
void waits_look(SimFault *f, const Access *x, int l, uint32_t g);

#endif
// SPDX-License-Identifier: MIT
