// Divergence (lanes.c): lanes of a warp that wait for other lanes of the warp.
#ifndef CUTE_SIMLANES_H
#define CUTE_SIMLANES_H

#include "sim/inside.h"

// Runs other lanes of w after the running ones have polled in vain for long.
void simlanes_turn(SimWarp *w);
// Called at i, a collective operation, with w->pc behind it. Returns false if
// lanes are missing; they run now.
bool simlanes_together(SimWarp *w, const SimIns *i);
// Called when the running lanes have ended. Returns true if other lanes of the
// warp have not; they run now.
bool simlanes_ended(SimWarp *w);
// Called when no warp can run. Returns true if other lanes of a warp may.
bool simlanes_press(SimCluster *c);
void simlanes_reset(SimWarp *w);

#endif
// SPDX-License-Identifier: MIT
