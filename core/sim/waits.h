// Waits for groups that did not do: what a fault lacks (waits.c).
#ifndef CUTE_SIMWAITS_H
#define CUTE_SIMWAITS_H

#include "sim/shadow.h"

// Warp w waits at i.
void simwaits_note(SimWarp *w, SimGroups kind, const SimIns *i);
// Into f, where it lacks nothing yet: why lane l of x->w comes too early for
// what an actor reads, a bulk store or a warpgroup's MMA, in that epoch.
void simwaits_reader(SimFault *f, const Access *x, int l, int actor,
                     uint32_t epoch);
// ... for what a cp.async of warp u, or a bulk store, brings to granule g.
void simwaits_flight(SimFault *f, const Access *x, int l, const SimWarp *u,
                     uint32_t g);
// Into f, of two blocks: a bulk store whose reads alone are waited for.
void simwaits_store(SimFault *f, const SimProg *p);

#endif
