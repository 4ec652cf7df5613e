// Divergence: lanes of a warp that wait for other lanes (divergence.c).
#ifndef CUTE_SIM_DIVERGENCE_H
#define CUTE_SIM_DIVERGENCE_H

#include "sim/machine.h"

// Switches w to other lanes when the running lanes have polled many times
// without success.
void divergence_turn(SimWarp *w);
// Checks that all lanes of collective operation i have arrived at i. w->pc has
// already passed i. If lanes are missing, returns false and lets them run next.
bool divergence_together(SimWarp *w, const SimIns *i);
// Called when the running lanes of w have exited the kernel. Returns false if
// all lanes of the warp have exited. Otherwise lets other lanes run next.
bool divergence_ended(SimWarp *w);
// Called when no warp can run. Looks for a warp with lanes that can run instead
// of its waiting lanes, and runs them next. Returns false if there is none.
bool divergence_press(SimCluster *c);
void divergence_reset(SimWarp *w);
// Returns the number of parts into which the lanes of w are split.
uint32_t divergence_parts(const SimWarp *w);
// Returns a copy of w, for reading, in which part k of the lanes runs and no
// other parts exist. Part 0 is the one that runs in w.
SimWarp divergence_view(const SimWarp *w, uint32_t k);
// Moves w, which has no active lanes, to the next instruction with some.
void divergence_find(SimWarp *w);
// Returns true if exactly the lanes in `want` are active, else reports a fault.
bool divergence_are(SimWarp *w, const SimIns *i, uint32_t want);
// Splits the active lanes into groups whose lanes name the same mask (as in
// sync_warp). Reports a fault if a group is not exactly the lanes of its mask.
// Then calls `each` for every group, with w->active set to the group. If `each`
// is NULL, only synchronizes the lanes of each group.
typedef void (*SimGroup)(SimWarp *w, const SimIns *i);
void divergence_groups(SimWarp *w, const SimIns *i, SimGroup each);

#endif
// SPDX-License-Identifier: MIT
