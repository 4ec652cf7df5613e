// Finds the path in the program between the two accesses of a race (path.c).
#ifndef CUTE_WATCH_PATH_H
#define CUTE_WATCH_PATH_H

#include "sim/report.h"

// Puts the two accesses of race f in program order, if their threads run the
// same code. The first line of the report is then the later line of the
// program, whichever access was executed first. Sets f->r.way and f->r.loop to
// the path between the accesses. Does not change races with asynchronous
// operations (agents), or between warp roles.
void path_turn(const SimProg *p, SimFault *f);

#endif
// SPDX-License-Identifier: MIT
