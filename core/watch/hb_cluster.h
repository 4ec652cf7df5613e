// Happens-before inside a cluster (hb_cluster.c).
#ifndef CUTE_WATCH_HB_CLUSTER_H
#define CUTE_WATCH_HB_CLUSTER_H

#include "sim/machine.h"
#include "watch/own.h"

// number of the latest proxy fences that are recorded for each warp
enum { FENCES = 16 };

// The accesses that happen before a warp and its lanes, as vector clocks.
typedef struct HbWarp {
  uint32_t *vc;  // vector clock: accesses that happen before all lanes
  // lanes that have a row (a vector clock for single lanes) of each kind;
  // hb_cluster.c describes the kinds
  uint32_t seen, pending, distant, fenced;
  bool level;              // whether lane 0's row is the row of all lanes
  // sent: mask of the lanes that executed a fence with GPU scope. started: mask
  // of the CTAs that are known to have started.
  uint32_t sent, started;
  // for each kind of asynchronous operation: the warp's last wait for groups of
  // such operations
  SimWaited waited[AGENT_COUNT];
  // The latest proxy fences; number k is fence[k % FENCES]. `clk` and `lanes`
  // are the epoch and the lanes of the fence. `spaces` has bit 0 for shared and
  // bit 1 for global memory. `met` is the warp's epoch in vc at the fence.
  struct { uint32_t clk, met, lanes, spaces; } fence[FENCES];
  uint32_t nfence;
  // for each actor (vector-clock entry): the last epoch that a proxy fence of
  // the warp covers; first for shared memory, then for global memory
  uint32_t *proxied;
  // wider: lanes that executed a fence with cluster scope or wider. fresh[0]:
  // lanes that acquired nothing since their last proxy fence for shared memory;
  // fresh[1]: the same for global memory.
  uint32_t wider, fresh[2];
} HbWarp;
static inline HbWarp *hb_of(const SimWarp *w) {
  return w->own[OWN_HB_CLUSTER];
}

// Orders the lanes of mask: accesses of any of these lanes before this point
// happen before later accesses of all these lanes.
void hb_cluster_meet(SimWarp *w, uint32_t mask);
// hb_cluster_give executes a release: it adds to `to` the accesses of the lanes
// of mask, and everything that happens before these lanes. hb_cluster_take
// executes an acquire of `from` by the lanes of mask.
void hb_cluster_give(SimWarp *w, uint32_t mask, SimPast *to);
void hb_cluster_take(SimWarp *w, uint32_t mask, const SimPast *from);
void hb_cluster_forget(const SimCluster *c, SimPast *p);
// Reports whether `past` covers epoch `clk` of an actor (vector-clock entry)
// that is not a warp.
bool hb_cluster_holds(const SimProg *p, const SimPast *past, int actor,
                      uint32_t clk);
// Functions that release or acquire only some accesses. An actor is an entry of
// the vector clocks (decode/actors.h).
// - hb_cluster_give_agents releases the epochs of all actors except warps and
//   mbarriers.
// - hb_cluster_give_turns releases only the epochs of turn actors, which order
//   phases but no memory accesses (mbar.h).
// - hb_cluster_give_fenced releases the accesses before the lanes' last fence
//   with cluster or wider scope.
// - hb_cluster_learn makes the lanes of mask acquire the accesses up to epoch
//   `epoch` of `actor`, which is not a warp.
void hb_cluster_give_agents(SimWarp *w, uint32_t mask, SimPast *to);
void hb_cluster_give_turns(SimWarp *w, uint32_t mask, uint32_t *turns);
void hb_cluster_give_fenced(SimWarp *w, uint32_t mask, SimPast *to);
void hb_cluster_learn(SimWarp *w, uint32_t mask, int actor, uint32_t epoch);
// Reports whether the accesses that `lanes` of actor u made in epoch clk happen
// before the current instruction of lane l of warp w.
bool hb_cluster_before(SimWarp *w, int l, int u, uint32_t lanes, uint32_t clk);
// Returns the last epoch of actor u (a vector-clock entry that is not a warp)
// that happens before the current instruction of lane l.
uint32_t hb_cluster_epoch(SimWarp *w, int l, int u);
// Reports whether the accesses that `lanes` of actor u made in epoch clk happen
// before the current instruction of at least one lane of warp w.
bool hb_cluster_some(SimWarp *w, int u, uint32_t lanes, uint32_t clk);
// Reports whether the start of at least one thread of CTA `rank` happens before
// lane l.
bool hb_cluster_runs(SimWarp *w, int l, int rank);
// Record that lane l reads or writes granule g (a unit of memory) with a memory
// order. g is NO_GRANULE for memory that is never written. `keep` is true if
// the write replaces a value that its thread released or read. Acquires that
// read the new value then still acquire the older releases.
void hb_cluster_read(SimWarp *w, const SimIns *i, int l, int64_t g);
void hb_cluster_write(SimWarp *w, const SimIns *i, int l, int64_t g, bool keep);
// hb_cluster_view returns the vector clock of the accesses that happen before
// lane l. hb_cluster_released returns the vector clock that a strong write of
// lane l releases. Both clocks have an epoch for each thread of the cluster,
// warp by warp. Both functions return NULL if the clock is empty, or if memory
// is exhausted.
const uint32_t *hb_cluster_view(SimWarp *w, int l);
const uint32_t *hb_cluster_released(SimWarp *w, const SimIns *i, int l);
void hb_cluster_fence(SimWarp *w, FenceKind kind);
bool hb_cluster_init(SimCluster *c);  // returns false if memory is exhausted
void hb_cluster_reset(SimCluster *c);
void hb_cluster_free(SimCluster *c);

#endif
// SPDX-License-Identifier: MIT
