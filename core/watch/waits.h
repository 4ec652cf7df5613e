// Explains why waits did not suffice (waits.c).
#ifndef CUTE_WATCH_WAITS_H
#define CUTE_WATCH_WAITS_H

#include "watch/shadow.h"

// Records a wait for groups by warp w at instruction i.
void waits_note(SimWarp *w, SimGroups kind, const SimIns *i);
// Fills in why lane l of x->w does not come after a read by `actor` (a bulk
// store or a warpgroup's MMA) in `epoch`, unless the fault already has a
// reason.
void waits_reader(SimFault *f, const Access *x, int l, int actor,
                  uint32_t epoch);
// Reports whether a later iteration than that of lane l of x started the
// cp.async of warp u that fills granule g: warp u committed more groups before
// it than lane l committed so far.
bool waits_ahead(const Access *x, int l, const SimWarp *u, uint32_t g);
// Does the same as waits_reader for a write to granule g in flight, by a
// cp.async of warp u or by a bulk copy.
void waits_flight(SimFault *f, const Access *x, int l, const SimWarp *u,
                  uint32_t g);
// Fills in the reason of a race between two blocks if the wait for a bulk store
// used .read.
void waits_store(SimFault *f, const SimProg *p);
// Says in f, a race of two warp roles about granule g, whether x came after a
// wait for another stage. For a write after a read, u is the warp that read at
// epoch clk: says whether u had released the stage before.
void waits_stray(SimFault *f, const Access *x, uint32_t g, const SimWarp *u,
                 uint32_t clk);
// Fills in what the other stages hold at the place of a read by lane l of
// granule g, which nothing wrote or an operation in flight writes.
void waits_look(SimFault *f, const Access *x, int l, uint32_t g);

#endif
// SPDX-License-Identifier: MIT
