// Elements of shared tensors that a launch stores and never reads (unread.c).
#ifndef CUTE_SIMUNREAD_H
#define CUTE_SIMUNREAD_H

#include "sim/inside.h"

// Begins to record which bytes of shared memory the blocks store and read.
void simunread_start(Ctx *cx, SimProg *p);
// Adds the accesses of a cluster that has finished.
void simunread_add(const SimCluster *c);
// Writes the tensors with such elements to `unread`. Returns their number.
int simunread_find(Ctx *cx, SimProg *p, SimUnread unread[SIM_GAPS]);

#endif
// SPDX-License-Identifier: MIT
