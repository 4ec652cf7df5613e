// Deadlocks (deadlock.c).
#ifndef CUTE_WATCH_DEADLOCK_H
#define CUTE_WATCH_DEADLOCK_H

#include "sim/machine.h"

// Reports, when no warp can run, what each warp waits for. The root cause comes
// first.
void deadlock_tell(SimCluster *c);

#endif
// SPDX-License-Identifier: MIT
