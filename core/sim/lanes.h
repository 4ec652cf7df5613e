// Divergence (lanes.c): lanes of a warp that wait for other lanes of the warp.
#ifndef CUTE_SIMLANES_H
#define CUTE_SIMLANES_H

#include "sim/inside.h"

// The running lanes have polled in vain for long; runs other lanes of the warp.
void simlanes_turn(SimWarp *w);
// The running lanes are at i, a collective operation; w->pc is behind it.
// false: some lanes are missing and run now.
bool simlanes_together(SimWarp *w, const SimIns *i);
// The running lanes have ended. true: other lanes of the warp have not, and run
// now.
bool simlanes_ended(SimWarp *w);
// No warp can run. true: other lanes of a warp may be able to.
bool simlanes_press(SimCluster *c);
void simlanes_reset(SimWarp *w);

#endif
