// Detects warps that poll memory for a value that no thread will store
// (livelock.c).
#ifndef CUTE_WATCH_LIVELOCK_H
#define CUTE_WATCH_LIVELOCK_H

#include "sim/machine.h"

// Records that w polled memory at instruction i, and that memory had not
// changed.
void livelock_ask(SimWarp *w, const SimIns *i);
// Returns a hash of the state of w at an instruction of a loop. The hash
// ignores values that the loop recomputes. Returns 0 if w is in no loop.
uint64_t livelock_state(SimWarp *w);
// Reports whether the innermost loop of w has only loads and arithmetic.
bool livelock_only_reads(const SimWarp *w);
// livelock_fails reports whether the next poll of w (a load or atomic in a
// loop) would fail if it read the values of `a`. It executes the poll as a
// trial, and then restores w. It returns the number of scheduling steps after
// which w is in the same state again if memory does not change. It returns 0 if
// the poll succeeds, or if this number is unknown. `room` is scratch memory of
// livelock_room bytes.
size_t livelock_room(const SimProg *p);
int livelock_fails(SimWarp *w, const SimAsk *a, char *room);
// Reports whether w only repeats polls that fail until another warp changes the
// polled memory.
bool livelock_stuck(const SimWarp *w);
// Reports whether w and u poll the same element.
bool livelock_same(const SimWarp *w, const SimWarp *u);
// Reports whether all runnable warps repeat polls that fail (livelock_stuck).
// Sets *global to whether one of them polls global memory.
bool livelock_all(const SimCluster *c, bool *global);
// Reports that w is deadlocked. Returns the fault, or NULL if it was reported
// before.
SimFault *livelock_tell(SimWarp *w);

#endif
// SPDX-License-Identifier: MIT
