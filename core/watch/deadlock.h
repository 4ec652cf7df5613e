// Deadlocks (deadlock.c).
#ifndef CUTE_WATCH_DEADLOCK_H
#define CUTE_WATCH_DEADLOCK_H

#include "sim/machine.h"

// Reports what each warp waits for, beginning with the root cause. Called when
// no warp can run.
void deadlock_tell(SimCluster *c);

#endif
// SPDX-License-Identifier: MIT
