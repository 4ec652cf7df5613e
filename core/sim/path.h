// Which access of a race comes first in the program (path.c).
#ifndef CUTE_SIMPATH_H
#define CUTE_SIMPATH_H

#include "sim/report.h"

// Turns a race of threads that run the same code so that its first line is the
// later one in the program, whichever came first in this schedule, and says how
// the program goes from the one to the other: r.way, r.loop. What agents
// and roles do stays as it is.
void simpath_turn(const SimProg *p, SimFault *f);

#endif
