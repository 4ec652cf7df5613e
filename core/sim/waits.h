// Waits for groups that did not suffice (waits.c).
#ifndef CUTE_SIMWAITS_H
#define CUTE_SIMWAITS_H

#include "sim/shadow.h"

// Records a wait of warp w at i.
void simwaits_note(SimWarp *w, SimGroups kind, const SimIns *i);
// Fills in f, unless its reason is known, with the reason why lane l of x->w
// comes too early for a read by `actor` (a bulk store or a warpgroup's MMA) in
// `epoch`.
void simwaits_reader(SimFault *f, const Access *x, int l, int actor,
                     uint32_t epoch);
// Does the same as simwaits_reader for a write to granule g by a cp.async of
// warp u, or by a bulk copy.
void simwaits_flight(SimFault *f, const Access *x, int l, const SimWarp *u,
                     uint32_t g);
// Fills in f, a race of two blocks, if the wait for a bulk store used .read.
void simwaits_store(SimFault *f, const SimProg *p);

#endif
// SPDX-License-Identifier: MIT
