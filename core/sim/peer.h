// Accesses to shared memory of other CTAs of the cluster (peer.c).
#ifndef CUTE_SIMPEER_H
#define CUTE_SIMPEER_H

#include "sim/machine.h"

// The last access of a warp to shared memory of another CTA: epoch, lanes and
// line.
struct SimReach { uint32_t clk, lanes, src; };

// Records that lane l accesses shared memory of CTA `rank`. keep: the access
// must happen before CTA `rank` exits.
void simpeer_reach(SimWarp *w, const SimIns *i, int l, int rank, bool keep);
// Reports whether lane l happens after the start of some thread of CTA `rank`.
bool simpeer_runs(SimWarp *w, int l, int rank);

#endif
// SPDX-License-Identifier: MIT
