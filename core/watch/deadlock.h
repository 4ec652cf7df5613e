// Deadlocks (deadlock.c).
#ifndef CUTE_WATCH_DEADLOCK_H
#define CUTE_WATCH_DEADLOCK_H

#include "sim/machine.h"

// Reports what each warp waits for. It is called when no warp can run. The wait
// that is the root cause is reported first.
void deadlock_tell(SimCluster *c);

#endif
// SPDX-License-Identifier: MIT
