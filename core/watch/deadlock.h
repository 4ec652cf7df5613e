// Deadlocks (deadlock.c).
#ifndef CUTE_WATCH_DEADLOCK_H
#define CUTE_WATCH_DEADLOCK_H

#include "sim/machine.h"

// Called when no warp can run. Reports what each warp waits for, root cause
// first.
void deadlock_tell(SimCluster *c);

#endif
// SPDX-License-Identifier: MIT
