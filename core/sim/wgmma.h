// Warpgroup MMAs (wgmma.c).
#ifndef CUTE_SIMWGMMA_H
#define CUTE_SIMWGMMA_H

#include "sim/machine.h"

bool simwgmma_init(SimCluster *c);   // returns false if memory is exhausted
void simwgmma_free(SimCluster *c);
void simwgmma_reset(SimCluster *c);  // prepares for the next cluster
void simwgmma_issue(SimWarp *w, const SimIns *i);
void simwgmma_commit(SimWarp *w);
// Waits for groups of MMAs. If another warp of the warpgroup has not issued all
// MMAs of these groups, returns false. w then waits (SW_TEAM) until such a warp
// issues an MMA.
bool simwgmma_wait(SimWarp *w, const SimIns *i);
// Returns the number, within its CTA, of a warp for which w waits.
int simwgmma_lacks(const SimWarp *w);
// Checks the waits of the warpgroup whose MMAs `actor` (a vector-clock entry)
// stands for. Returns the number, within the CTA, of a warp whose own wait for
// epoch `epoch` of `actor` does not happen before lane l of w. Returns -1 if
// there is no such warp, or if `actor` stands for no warpgroup.
int simwgmma_alone(SimWarp *w, int l, int actor, uint32_t epoch);
// Reports whether an MMA of w that is in flight writes unit (element) number
// `unit` of register object m.
bool simwgmma_flies(const SimWarp *w, const SimMem *m, int64_t unit);
// Reports whether MMA n is in one of the first `groups` groups that w
// committed. Sets *behind to the number of these groups after the group with
// MMA n.
bool simwgmma_closed(const SimWarp *w, uint32_t n, uint32_t groups,
                     uint32_t *behind);
// Called when all warps have exited or wait forever.
void simwgmma_end(SimCluster *c);

#endif
// SPDX-License-Identifier: MIT
