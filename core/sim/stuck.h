// Deadlocks (stuck.c).
#ifndef CUTE_SIMSTUCK_H
#define CUTE_SIMSTUCK_H

#include "sim/inside.h"

// Reports what each warp waits for when none can run, the root cause first.
void simstuck_tell(SimCluster *c);

#endif
// SPDX-License-Identifier: MIT
