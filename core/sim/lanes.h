// Divergence (lanes.c): lanes of a warp that wait for other lanes of the warp.
#ifndef CUTE_SIMLANES_H
#define CUTE_SIMLANES_H

#include "sim/machine.h"

// Switches to other lanes of w after the running lanes have polled in vain for
// a long time.
void simlanes_turn(SimWarp *w);
// Checks that all lanes of collective operation i are present. w->pc has
// already passed i. If lanes are missing, returns false and lets them run next.
bool simlanes_together(SimWarp *w, const SimIns *i);
// Called when the running lanes of w have ended. Returns false if the whole
// warp has ended. Otherwise lets other lanes run next.
bool simlanes_ended(SimWarp *w);
// Called when no warp can run. Looks for a warp with other lanes that can run,
// and lets these lanes run next. Returns false if there is none.
bool simlanes_press(SimCluster *c);
void simlanes_reset(SimWarp *w);
// Moves w, which has no active lanes, to the next instruction that has active
// lanes.
void simlanes_find(SimWarp *w);
// Reports whether exactly the lanes in `want` are active. If not, reports a
// fault.
bool simlanes_are(SimWarp *w, const SimIns *i, uint32_t want);

#endif
// SPDX-License-Identifier: MIT
