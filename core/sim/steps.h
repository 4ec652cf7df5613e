// The machine's calls to the scheduler of systematic schedules (interleave.h).
#ifndef CUTE_SIMSTEPS_H
#define CUTE_SIMSTEPS_H

#include "sim/hooks.h"
#include "sim/orders.h"

enum { TURNS_NONE = -2 };     // result of SimSteps.next: no step is possible
// the cluster barrier's current and previous round, as values of `at` below
enum { CAUSE_OPEN = -1, CAUSE_DONE = -2 };
struct SimAsync;

// SimCluster.steps is NULL unless the cluster has a systematic schedule.
typedef struct SimSteps {
  // ---- scheduling, see interleave.h ----
  // start creates a scheduler, and returns NULL if memory is exhausted. stop
  // frees it. join adds cluster c, which is about to start, to the clusters of
  // t. next executes one more step of n clusters. It returns the index of a
  // cluster that ended in this step, or -1 if none ended. It returns TURNS_NONE
  // if no step is possible, because the remaining warps wait forever. orders
  // returns the results since the first cluster joined. It returns NULL if
  // there is nothing to report, or if memory is exhausted. count returns the
  // number of steps of all clusters so far.
  struct SimTurns *(*start)(const SimProg *p, const SimOpts *o);
  void (*stop)(struct SimTurns *t);
  void (*join)(struct SimTurns *t, SimCluster *c);
  int (*next)(struct SimTurns *t, SimCluster **c, int n);
  SimOrders *(*orders)(struct SimTurns *t);
  uint64_t (*count)(const struct SimTurns *t);

  // ---- what the current step does ----
  // The lanes of mask access memory with a memory order; called before bytes
  // move.
  void (*access)(const Access *x, uint32_t mask);
  // give: w arrives at a barrier. take: w passes the barrier. forget: the
  // barrier's round ends. `at` is the number of a barrier of the CTA. For the
  // cluster barrier, it is CAUSE_OPEN or CAUSE_DONE. meet: a round of the
  // cluster barrier is complete, so that CAUSE_OPEN becomes CAUSE_DONE.
  void (*give)(SimWarp *w, int at);
  void (*take)(SimWarp *w, int at);
  void (*forget)(SimWarp *w, int at);
  void (*meet)(SimCluster *c);
  // Operations on mbarrier k of the cluster. arrive: an arrival. expect: an
  // expect_tx. look: a test of the phase. `wait` is true if the test is a wait
  // that succeeded. phase: the end of a phase.
  void (*arrive)(SimCluster *c, int k, uint32_t phase);
  void (*expect)(SimCluster *c, int k, uint32_t phase);
  void (*look)(SimWarp *w, int k, uint32_t phase, bool wait);
  void (*phase)(SimCluster *c, int k);
  // Warp a->w starts asynchronous operation a.
  void (*started)(struct SimAsync *a);
  // A wait was for another phase than its preceding try_wait. Sets SIM_TRIES.
  void (*stray)(SimCluster *c);
} SimSteps;

#endif
// SPDX-License-Identifier: MIT
