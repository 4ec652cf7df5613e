// The MMAs of warpgroups (wgmma.c).
#ifndef CUTE_SIMWGMMA_H
#define CUTE_SIMWGMMA_H

#include "sim/inside.h"

bool simwgmma_init(SimCluster *c);   // false: out of memory
void simwgmma_free(SimCluster *c);
void simwgmma_reset(SimCluster *c);  // for the next cluster
void simwgmma_issue(SimWarp *w, const SimIns *i);
void simwgmma_commit(SimWarp *w);
// False: others of the warpgroup have not issued what it waits for; it comes
// back when one does (SW_TEAM).
bool simwgmma_wait(SimWarp *w, const SimIns *i);
int simwgmma_lacks(const SimWarp *w);  // the warp of its CTA that w waits for
// The warp of its CTA whose own wait for that epoch of a warpgroup's agent is
// not ordered before lane l of w; -1: there is none, or the actor is another.
int simwgmma_alone(SimWarp *w, int l, int actor, uint32_t epoch);
// Does an MMA of w that is in flight write that unit of registers?
bool simwgmma_flies(const SimWarp *w, const SimMem *m, int64_t unit);
// Is MMA number n in one of the first `groups` that w committed? behind: how
// many of these come behind its group.
bool simwgmma_closed(const SimWarp *w, uint32_t n, uint32_t groups,
                     uint32_t *behind);
void simwgmma_end(SimCluster *c);    // all warps are done, or stuck

#endif
