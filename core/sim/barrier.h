// Barriers of a CTA, the barrier of a cluster, and setmaxnreg (barrier.c).
#ifndef CUTE_SIMBARRIER_H
#define CUTE_SIMBARRIER_H

#include "sim/machine.h"

// simbarrier_meet arrives at the cluster barrier. simbarrier_wait waits at the
// cluster barrier, and returns false if w must wait (SW_CLUSTER).
void simbarrier_meet(SimWarp *w, const SimIns *i);
bool simbarrier_wait(SimWarp *w, const SimIns *i);
// Returns the lanes that have not arrived at the cluster barrier.
uint32_t simbarrier_missing(const SimWarp *w);
// Called after lanes of a warp exited the kernel. Updates the barriers.
void simbarrier_exited(SimCluster *c);
// Executes setmaxnreg. Returns false if w must wait (SW_REGISTERS).
bool simbarrier_registers(SimWarp *w, const SimIns *i);
void simbarrier_arrive(SimWarp *w, const SimIns *i, int64_t id,
                       int64_t threads, bool wait);
// Reports misuse `how` of barrier `id`. For n and others, see SimFault.barrier.
void simbarrier_misuse(SimWarp *w, const SimIns *i, uint32_t src2,
                       SimMisuse how, int64_t id, int64_t n, int64_t others);
// Begins a new round of barrier b.
void simbarrier_forget(const SimCluster *c, SimBar *b);
// Called after all warps exited. simbarrier_left reports barriers with
// incomplete rounds. simbarrier_allotments reports warps without a setmaxnreg
// that their warpgroup executed.
void simbarrier_left(SimCluster *c);
void simbarrier_allotments(SimCluster *c);

#endif
// SPDX-License-Identifier: MIT
