// Finds clusters that load the same elements and store equal sums
// (same_reads.c).
#ifndef CUTE_WATCH_SAME_READS_H
#define CUTE_WATCH_SAME_READS_H

#include "sim/hooks.h"

// Starts recording the loads of each cluster, if the sums that the kernel
// stores depend on the block only through loads.
void same_reads_start(Ctx *cx, SimProg *p);
// Records that the lanes of mask read global memory.
void same_reads_add(const Access *x, uint32_t mask);
// Sets *out to two clusters that loaded the same elements, if most clusters
// have such a counterpart.
void same_reads_find(Ctx *cx, const SimProg *p, SimTwins *out);

#endif
// SPDX-License-Identifier: MIT
