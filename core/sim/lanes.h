// Lanes of a warp that go their own way (lanes.c): where some of them wait for
// what others of the same warp are still to do.
#ifndef CUTE_SIMLANES_H
#define CUTE_SIMLANES_H

#include "sim/inside.h"

// The lanes that run asked in vain for long: others of the warp have a turn.
void simlanes_turn(SimWarp *w);
// They are at i, behind which w->pc is, and which lanes do together. false: it
// lacks some that are not there yet, who go on now.
bool simlanes_together(SimWarp *w, const SimIns *i);
// They have ended. true: others of the warp have not, who go on now.
bool simlanes_ended(SimWarp *w);
// Nobody can go on. true: other lanes of a warp can, perhaps.
bool simlanes_press(SimCluster *c);
void simlanes_reset(SimWarp *w);

#endif
