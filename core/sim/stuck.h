// Deadlocks (stuck.c).
#ifndef CUTE_SIMSTUCK_H
#define CUTE_SIMSTUCK_H

#include "sim/inside.h"

// Reports, when no warp can run, what each warp waits for. The root cause comes
// first.
void simstuck_tell(SimCluster *c);

#endif
// SPDX-License-Identifier: MIT
