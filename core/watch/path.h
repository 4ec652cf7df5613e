// Finds the program order of the two accesses of a race (path.c).
#ifndef CUTE_WATCH_PATH_H
#define CUTE_WATCH_PATH_H

#include "sim/report.h"

// Puts the sides of a race in program order, if threads on both sides run the
// same code. The first line then is the later line in the program, whichever
// access came first in this schedule. Sets r.way and r.loop to the path between
// the sides. Races of agents and warp roles are not changed.
void path_turn(const SimProg *p, SimFault *f);

#endif
// SPDX-License-Identifier: MIT
