// Checks accesses to shared memory of other CTAs of the cluster (peer.c).
#ifndef CUTE_WATCH_PEER_H
#define CUTE_WATCH_PEER_H

#include "sim/machine.h"

bool peer_init(SimCluster *c);         // returns false if memory is exhausted
void peer_free(SimCluster *c);
void peer_reset(SimCluster *c);
// Records that lane l accesses shared memory of CTA `rank`. `keep` is true if
// the CTA must not exit before the access.
void peer_reach(SimWarp *w, const SimIns *i, int l, int rank, bool keep);
// Called after all warps exited. Reports CTAs that may have exited before other
// CTAs or asynchronous operations accessed their shared memory.
void peer_exited(SimCluster *c);

#endif
// SPDX-License-Identifier: MIT
