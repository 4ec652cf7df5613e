// A cluster of CTAs: initial state and scheduling of its warps (cluster.c).
#ifndef CUTE_SIMCLUSTER_H
#define CUTE_SIMCLUSTER_H

#include "sim/state.h"

// Allocates the CTAs of a cluster. The caller has allocated the cluster's
// warps. Returns false if memory is exhausted.
bool simcluster_init(SimCluster *c);
void simcluster_free(SimCluster *c);
void simcluster_begin(SimCluster *c, uint64_t index);
// Runs the cluster. Returns false if it waits for other clusters.
bool simcluster_run(SimCluster *c);
void simcluster_end(SimCluster *c);     // ends the run: no warp can continue
// Writes to id the grid position of CTA `number`, counted cluster by cluster.
void simcluster_place(const SimProg *p, uint64_t number, int32_t id[3]);

#endif
// SPDX-License-Identifier: MIT
