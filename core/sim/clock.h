// Cost model: estimates the time of an event log (tape.h) on multiprocessors.
#ifndef CUTE_SIMCLOCK_H
#define CUTE_SIMCLOCK_H

#include "sim/tape.h"

// The costs and dependences of a program's instructions on a machine.
typedef struct SimClock SimClock;
SimClock *simclock_new(Ctx *cx, const SimProg *p, const SimMachine *m);
// Simulates the event log; false: out of memory. Calls go(ud) periodically, and
// stops if it returns false.
bool simclock_play(SimClock *k, const SimTape *t, bool (*go)(void *ud),
                   void *ud, SimTiming *out);

#endif
// SPDX-License-Identifier: MIT
