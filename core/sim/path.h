// Program order of the accesses of a race (path.c).
#ifndef CUTE_SIMPATH_H
#define CUTE_SIMPATH_H

#include "sim/report.h"

// Orders the two sides of a race of threads that run the same code: its first
// line becomes the later one in the program, whichever came first in this
// schedule. Sets r.way and r.loop to the path between them. Races of agents and
// warp roles stay unchanged.
void simpath_turn(const SimProg *p, SimFault *f);

#endif
// SPDX-License-Identifier: MIT
