// A cluster of CTAs: its warps in turns, barriers, memory of other CTAs,
// registers (cluster.c).
#ifndef CUTE_SIMCLUSTER_H
#define CUTE_SIMCLUSTER_H

#include "sim/state.h"

// Makes the CTAs of a cluster that has warps; false: out of memory.
bool simcluster_init(SimCluster *c);
void simcluster_free(SimCluster *c);
void simcluster_begin(SimCluster *c, uint64_t index);
bool simcluster_run(SimCluster *c);     // false: it waits for other clusters
void simcluster_end(SimCluster *c);     // nobody goes on
// Reports progress now and then, and stops a cluster whose run has ended.
void simcluster_tick(SimCluster *c);
// The cluster's barrier: wait is false when w must (SW_CLUSTER).
void simcluster_meet(SimWarp *w, const SimIns *i);
bool simcluster_wait(SimWarp *w, const SimIns *i);
uint32_t simcluster_missing(const SimWarp *w);  // lanes still to come there
// Lanes of w left the kernel, or all of them.
void simcluster_left(SimCluster *c);
// Lane l reaches shared memory of that CTA; keep: what is left behind must be
// known there before it ends.
void simcluster_reach(SimWarp *w, const SimIns *i, int l, int rank,
                      bool keep);
// Does lane l know that a thread of that CTA has begun?
bool simcluster_runs(SimWarp *w, int l, int rank);
// setmaxnreg: false when w must wait (SW_REGISTERS).
bool simcluster_registers(SimWarp *w, const SimIns *i);
// Where CTA number k, in the order of clusters, is in the grid.
void simcluster_place(const SimProg *p, uint64_t number, int32_t id[3]);
void simcluster_arrive(SimWarp *w, const SimIns *i, int64_t id,
                       int64_t threads, bool wait);
// A fault of barrier `id`; n and others as report.h has them.
void simcluster_misuse(SimWarp *w, const SimIns *i, uint32_t src2,
                       SimMisuse how, int64_t id, int64_t n, int64_t others);

#endif
