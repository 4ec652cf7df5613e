// A cluster of CTAs: scheduling of its warps, barriers, distributed shared
// memory, register reallocation (cluster.c).
#ifndef CUTE_SIMCLUSTER_H
#define CUTE_SIMCLUSTER_H

#include "sim/state.h"

// Allocates the CTAs of a cluster whose warps are allocated. Returns false if
// memory is exhausted.
bool simcluster_init(SimCluster *c);
void simcluster_free(SimCluster *c);
void simcluster_begin(SimCluster *c, uint64_t index);
// Runs the cluster. Returns false if it waits for other clusters.
bool simcluster_run(SimCluster *c);
void simcluster_end(SimCluster *c);     // ends the run: no warp can continue
// Reports progress, and stops the cluster if the run of all clusters must end.
void simcluster_tick(SimCluster *c);
// simcluster_meet arrives at the cluster barrier. simcluster_wait waits at the
// cluster barrier. It returns false if w must wait (SW_CLUSTER).
void simcluster_meet(SimWarp *w, const SimIns *i);
bool simcluster_wait(SimWarp *w, const SimIns *i);
// Returns the lanes that have not arrived at the cluster barrier.
uint32_t simcluster_missing(const SimWarp *w);
// Must be called after lanes of a warp exited the kernel.
void simcluster_left(SimCluster *c);
// Records that lane l accesses shared memory of CTA `rank`. keep: the access
// must happen before CTA `rank` exits.
void simcluster_reach(SimWarp *w, const SimIns *i, int l, int rank,
                      bool keep);
// Reports whether lane l happens after the start of some thread of CTA `rank`.
bool simcluster_runs(SimWarp *w, int l, int rank);
// Executes setmaxnreg. Returns false if w must wait (SW_REGISTERS).
bool simcluster_registers(SimWarp *w, const SimIns *i);
// Writes to id the grid position of CTA `number`, counted cluster by cluster.
void simcluster_place(const SimProg *p, uint64_t number, int32_t id[3]);
void simcluster_arrive(SimWarp *w, const SimIns *i, int64_t id,
                       int64_t threads, bool wait);
// Reports misuse `how` of barrier `id`. n and others are described in report.h.
void simcluster_misuse(SimWarp *w, const SimIns *i, uint32_t src2,
                       SimMisuse how, int64_t id, int64_t n, int64_t others);

#endif
// SPDX-License-Identifier: MIT
