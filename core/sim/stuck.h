// Deadlocks (stuck.c).
#ifndef CUTE_SIMSTUCK_H
#define CUTE_SIMSTUCK_H

#include "sim/inside.h"

// No warp can go on: tells what each waits for, the cause first.
void simstuck_tell(SimCluster *c);

#endif
