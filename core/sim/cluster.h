// A cluster of CTAs: scheduling of its warps, barriers, distributed shared
// memory, register reallocation (cluster.c).
#ifndef CUTE_SIMCLUSTER_H
#define CUTE_SIMCLUSTER_H

#include "sim/state.h"

// Creates the CTAs of a cluster whose warps exist; false: out of memory.
bool simcluster_init(SimCluster *c);
void simcluster_free(SimCluster *c);
void simcluster_begin(SimCluster *c, uint64_t index);
bool simcluster_run(SimCluster *c);     // false: it waits for other clusters
void simcluster_end(SimCluster *c);     // no warp can continue
// Reports progress periodically, and stops a cluster whose run has ended.
void simcluster_tick(SimCluster *c);
// simcluster_meet arrives at the cluster barrier. simcluster_wait waits there,
// and returns false if w must wait (SW_CLUSTER).
void simcluster_meet(SimWarp *w, const SimIns *i);
bool simcluster_wait(SimWarp *w, const SimIns *i);
uint32_t simcluster_missing(const SimWarp *w);  // lanes that have not arrived
// Called after lanes of a warp exited the kernel.
void simcluster_left(SimCluster *c);
// Records that lane l accesses shared memory of CTA `rank`. keep: CTA `rank`
// must know of the access before it exits.
void simcluster_reach(SimWarp *w, const SimIns *i, int l, int rank,
                      bool keep);
// Reports whether lane l knows that a thread of CTA `rank` has started.
bool simcluster_runs(SimWarp *w, int l, int rank);
// Executes setmaxnreg. Returns false if w must wait (SW_REGISTERS).
bool simcluster_registers(SimWarp *w, const SimIns *i);
// Returns the grid position of CTA `number`, counted cluster by cluster.
void simcluster_place(const SimProg *p, uint64_t number, int32_t id[3]);
void simcluster_arrive(SimWarp *w, const SimIns *i, int64_t id,
                       int64_t threads, bool wait);
// Reports misuse `how` of barrier `id`. n and others: as in report.h.
void simcluster_misuse(SimWarp *w, const SimIns *i, uint32_t src2,
                       SimMisuse how, int64_t id, int64_t n, int64_t others);

#endif
// SPDX-License-Identifier: MIT
