// Executes instructions with raw pointers, which have a copy for each object.
#ifndef CUTE_SIM_ADDRESSED_H
#define CUTE_SIM_ADDRESSED_H

#include "decode/raw_pointer.h"
#include "sim/machine.h"

// addressed_lanes returns the lanes among `left` whose addresses are in object
// k. It writes the offsets of these lanes in the object to slot m->at.
// addressed_one returns the copy of instruction i that all active lanes
// execute, and writes their offsets to the slot of this copy. It returns i if i
// has no raw pointers, or if the lanes access several objects. addressed_next
// does the same for w's next instruction. addressed_wild reports a fault of the
// lanes in `lanes`, whose addresses are in no object.
uint32_t addressed_lanes(SimWarp *w, const SimAddressed *m, int k,
                         uint32_t left);
const SimIns *addressed_one(SimWarp *w, const SimIns *i);
const SimIns *addressed_next(SimWarp *w);
void addressed_wild(SimWarp *w, const SimIns *i, uint32_t lanes);

#endif
// SPDX-License-Identifier: MIT
