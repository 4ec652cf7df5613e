// Finds elements of shared tensors that a launch stores and never reads
// (unread.c).
#ifndef CUTE_WATCH_UNREAD_H
#define CUTE_WATCH_UNREAD_H

#include "sim/machine.h"

// Begins to record which bytes of shared memory the blocks store and read.
void unread_start(Ctx *cx, SimProg *p);
// Adds the accesses of a cluster that has ended.
void unread_add(const SimCluster *c);
// Writes to `unread` the shared tensors that have unread elements. Returns the
// number of these tensors.
int unread_find(Ctx *cx, SimProg *p, SimUnread unread[SIM_GAPS]);

#endif
// SPDX-License-Identifier: MIT
