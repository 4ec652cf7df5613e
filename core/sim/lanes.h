// Divergence (lanes.c): lanes of a warp that wait for other lanes of the warp.
#ifndef CUTE_SIMLANES_H
#define CUTE_SIMLANES_H

#include "sim/inside.h"

// Switches to other lanes of w after the running ones have polled in vain for a
// long time.
void simlanes_turn(SimWarp *w);
// Checks, before collective operation i, that its lanes are there; w->pc is
// already behind i. Returns false if lanes are missing. Those lanes run next.
bool simlanes_together(SimWarp *w, const SimIns *i);
// Handles the end of the running lanes. Returns true if other lanes of the warp
// have not ended. Those lanes run next.
bool simlanes_ended(SimWarp *w);
// Looks, when no warp can run, for other lanes of a warp that can. Returns true
// if there are some.
bool simlanes_press(SimCluster *c);
void simlanes_reset(SimWarp *w);

#endif
// SPDX-License-Identifier: MIT
