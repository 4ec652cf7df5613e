// Cost model: estimates the time of an event log (event_log.h) on
// multiprocessors.
#ifndef CUTE_TIMING_COST_MODEL_H
#define CUTE_TIMING_COST_MODEL_H

#include "timing/event_log.h"

// State of the cost model: the costs of a program's instructions on one
// machine, and the dependences between these instructions.
typedef struct SimClock SimClock;
SimClock *cost_model_new(Ctx *cx, const SimProg *p, const SimMachine *m);
// Simulates the event log and fills in `out`. Calls go(ud) periodically, and
// stops when it returns false. Returns false if memory is exhausted.
bool cost_model_play(SimClock *k, const SimTape *t, bool (*go)(void *ud),
                   void *ud, SimTiming *out);

extern const SimLog clock_log;  // writes an event log and plays it

#endif
// SPDX-License-Identifier: MIT
