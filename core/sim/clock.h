// How long multiprocessors take for what a tape says (tape.h).
#ifndef CUTE_SIMCLOCK_H
#define CUTE_SIMCLOCK_H

#include "sim/tape.h"

// What each instruction of a program costs and waits for, on a machine.
typedef struct SimClock SimClock;
SimClock *simclock_new(Ctx *cx, const SimProg *p, const SimMachine *m);
// Plays the tape; false: out of memory. Calls go(ud) now and then, which ends
// the play by false.
bool simclock_play(SimClock *k, const SimTape *t, bool (*go)(void *ud),
                   void *ud, SimTiming *out);

#endif
