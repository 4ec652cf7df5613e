// Cost model: estimates the time of an event log (tape.h) on multiprocessors.
#ifndef CUTE_SIMCLOCK_H
#define CUTE_SIMCLOCK_H

#include "sim/tape.h"

// State of the cost model: costs and dependences of a program's instructions on
// one machine.
typedef struct SimClock SimClock;
SimClock *simclock_new(Ctx *cx, const SimProg *p, const SimMachine *m);
// Simulates the event log and fills in `out`. Calls go(ud) periodically, and
// stops when it returns false. Returns false if memory is exhausted.
bool simclock_play(SimClock *k, const SimTape *t, bool (*go)(void *ud),
                   void *ud, SimTiming *out);

extern const SimLog clock_log;  // writes an event log and plays it

#endif
// SPDX-License-Identifier: MIT
