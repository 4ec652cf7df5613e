// Systematic schedules, for partial-order reduction. interleave.c runs the
// warps of a cluster, or of all clusters that communicate (SimProg.common), one
// scheduling step at a time. conflicts.c finds the steps that could have come
// in another order.
//
// A scheduling step (turn) is one synchronization operation of a warp: an
// ordered access, an atomic, or an operation on an mbarrier. The completion of
// an asynchronous operation of an agent (such as TMA) is also a step.
// Instructions between steps commute with those of other warps, except for
// races, which are reported separately.
#ifndef CUTE_EXPLORE_INTERLEAVE_H
#define CUTE_EXPLORE_INTERLEAVE_H

#include "sim/machine.h"
#include "sim/steps.h"

// The scheduler's functions, which the simulator calls (sim/steps.h).
extern const SimSteps turns_steps;

// ---- conflicts.c ----
// SimCauses is the part of happens-before between steps that holds in every
// schedule. Its vector clocks have a component for each warp, and a component
// for each mbarrier: the number of completed phases.
typedef struct SimCauses SimCauses;
typedef struct SimCause {    // identifies a step
  uint32_t turn;
  // number of the step's warp among all warps; -1: the step is an agent's
  int warp;
  // number of this step among the steps of its warp
  uint32_t seq;
} SimCause;
SimCauses *conflicts_new(const SimProg *p, uint32_t units);
void conflicts_free(SimCauses *s);
// Starts a new recording. first: index of the first cluster.
void conflicts_reset(SimCauses *s, uint64_t first);
// conflicts_begin starts step `turn` of warp g, or of an agent if g is -1. For
// an agent, `start` is the number of the vector clock that conflicts_start
// returned when the operation began. conflicts_end ends the step and returns
// the number of its vector clock. conflicts_seq returns the number of the step
// among the steps of its warp.
void conflicts_begin(SimCauses *s, uint32_t turn, int g, uint32_t start);
// Removes the last step, a warp's step that had no effect. If `pairs` is true,
// keeps the recorded pairs of this step with earlier steps.
void conflicts_void(SimCauses *s, bool pairs);
uint32_t conflicts_end(SimCauses *s);
uint32_t conflicts_seq(const SimCauses *s);
// Returns the number of w's current vector clock. Call it when w starts an
// asynchronous operation.
uint32_t conflicts_start(SimWarp *w);
// Reports whether the step with vector clock number k happens after step c. If
// c is an agent's step, its operation completed phase `phase` of mbarrier mbar.
bool conflicts_after(const SimCauses *s, uint32_t k, const SimCause *c,
                     int mbar, uint32_t phase);
// conflicts_hash returns the hash of a vector clock, with warps and clusters
// renumbered by `name`. conflicts_where returns the mbarrier and the phase in
// which the asynchronous operation of the current step completed.
uint64_t conflicts_hash(const SimCauses *s, uint32_t row, const uint32_t *name);
void conflicts_where(const SimCauses *s, int *mbar, uint32_t *phase);
// Two steps that another schedule could execute in the opposite order.
typedef struct SimPair { uint32_t first, second; } SimPair;
const SimPair *conflicts_pairs(const SimCauses *s, size_t *n);
// Reports whether pairs were dropped because of a memory limit.
bool conflicts_full(const SimCauses *s);

// Returns the index of a step in which several lanes access one granule and
// conflict, or -1.
int64_t conflicts_lanes(const SimCauses *s);

// The functions from here on record what the current step does. Call them only
// if SimCluster.causes is set.
//
// conflicts_give records an arrival at a barrier. conflicts_take records that
// the warp passed a barrier. conflicts_forget clears the record of a barrier.
// `at` is the number of a barrier of the CTA or, for the cluster barrier,
// CAUSE_OPEN or CAUSE_DONE.
void conflicts_give(SimWarp *w, int at);
void conflicts_take(SimWarp *w, int at);
void conflicts_forget(SimWarp *w, int at);
// Completes a round of the cluster barrier: CAUSE_OPEN becomes CAUSE_DONE.
void conflicts_meet(SimCluster *c);
// Record operations on mbarrier k of the cluster: an arrival, expected bytes, a
// look at the phase, and the end of a phase. `wait` says that the look is a
// wait that passed, not a test.
void conflicts_arrive(SimCluster *c, int k, uint32_t phase);
void conflicts_expect(SimCluster *c, int k, uint32_t phase);
void conflicts_look(SimWarp *w, int k, uint32_t phase, bool wait);
void conflicts_phase(SimCluster *c, int k);
// Records an ordered access to a granule by a lane. `how` is CAUSE_READ,
// CAUSE_WRITE, or CAUSE_ADD + AtomicKind for an atomic that commutes with
// others of its AtomicKind. `was` is the granule's bytes before the access.
enum { CAUSE_READ, CAUSE_WRITE, CAUSE_ADD };
void conflicts_access(SimWarp *w, uint64_t place, int how, uint64_t was);
// Reports whether warp g has only read memory since step `turn`, and everything
// that it read is unchanged.
bool conflicts_still(const SimCauses *s, int g, uint32_t turn);
// conflicts_earlier returns the last step before `turn` that changed the memory
// that w polls, and the value before that change. It returns UINT32_MAX if w
// comes after all changes in every schedule. conflicts_plain reports whether
// every schedule lets w's poll read only values that the polled memory had in
// this run.
bool conflicts_plain(const SimWarp *w, const SimAsk *a);
uint32_t conflicts_earlier(const SimWarp *w, const SimAsk *a, uint32_t turn,
                           uint64_t *found);

#endif
// SPDX-License-Identifier: MIT
