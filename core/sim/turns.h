// Systematic schedules, for partial-order reduction. turns.c runs the warps of
// a cluster, or of all communicating clusters (SimProg.relay), one scheduling
// step at a time. causes.c finds the steps that could have come in another
// order.
//
// A scheduling step (turn) is one synchronisation operation of a warp: an
// ordered access, an atomic, an operation on an mbarrier; or the completion of
// an agent's operation. Between steps, warps only do what commutes with all
// that others do. Races are the exception, and are reported separately.
#ifndef CUTE_SIMTURNS_H
#define CUTE_SIMTURNS_H

#include "sim/inside.h"

typedef struct SimTurns SimTurns;

// Creates a scheduler; NULL: out of memory.
SimTurns *simturns_new(const SimProg *p, const SimOpts *o);
void simturns_free(SimTurns *t);
// Adds cluster c, which starts, to those whose steps t schedules.
void simturns_join(SimTurns *t, SimCluster *c);
// Executes one more step of n clusters. Returns the index of a cluster that
// ended, or -1 if none did. Returns TURNS_NONE if no step is possible, so that
// the remaining warps wait for ever.
enum { TURNS_NONE = -2 };
int simturns_next(SimTurns *t, SimCluster **c, int n);
// Returns the results since the first cluster joined; NULL: nothing of
// interest, or out of memory.
SimOrders *simturns_orders(SimTurns *t);
uint64_t simturns_count(const SimTurns *t);
void simturns_started(SimTurns *t, struct SimAsync *a);  // records that a->w
                                                         // starts agent a
void simturns_stray(SimTurns *t);  // sets SIM_TRIES

// ---- exec.c ----
// simexec_is_turn reports whether i is a scheduling step. simexec_turn executes
// one step of w. simexec_between runs w up to its next step.
bool simexec_is_turn(const SimIns *i);
void simexec_turn(SimWarp *w);
void simexec_between(SimWarp *w);

// ---- causes.c ----
// Happens-before of steps. It contains only what no other schedule can change:
// vector clocks with a component for each warp, and the completed phases of
// each mbarrier.
typedef struct SimCauses SimCauses;
typedef struct SimCause {    // identifies a step
  uint32_t turn;
  int warp;                  // number among all warps; -1: an agent
  uint32_t seq;              // number among its warp's steps
} SimCause;
SimCauses *simcauses_new(const SimProg *p, uint32_t units);
void simcauses_free(SimCauses *s);
// Starts a new recording. first: index of the first cluster.
void simcauses_reset(SimCauses *s, uint64_t first);
// simcauses_begin starts step `turn`. It is a step of warp g, or (g is -1) of
// an agent that was started with row `start`. simcauses_end ends the step and
// returns its row. simcauses_seq returns the step's number among its warp's
// steps.
void simcauses_begin(SimCauses *s, uint32_t turn, int g, uint32_t start);
// Removes the last step, which must be a warp's: later steps do not depend on
// it. pairs: its pairs with earlier steps stay.
void simcauses_void(SimCauses *s, bool pairs);
uint32_t simcauses_end(SimCauses *s);
uint32_t simcauses_seq(const SimCauses *s);
// Returns the current row of warp w, for an agent that the warp starts.
uint32_t simcauses_start(SimWarp *w);
// Reports whether a step with row k happens after step c.
bool simcauses_after(const SimCauses *s, uint32_t k, const SimCause *c,
                     int mbar, uint32_t phase);
// simcauses_hash returns the hash of a row, with warps and clusters renumbered
// by `name`. simcauses_where returns the mbarrier and phase at which the
// current step, an agent's, completed.
uint64_t simcauses_hash(const SimCauses *s, uint32_t row, const uint32_t *name);
void simcauses_where(const SimCauses *s, int *mbar, uint32_t *phase);
// Two steps that could have come in the opposite order.
typedef struct SimPair { uint32_t first, second; } SimPair;
const SimPair *simcauses_pairs(const SimCauses *s, size_t *n);
bool simcauses_full(const SimCauses *s);  // reports whether some pairs were not
                                          // kept

// Returns the index of a step in which lanes conflict at one granule; -1: none.
int64_t simcauses_lanes(const SimCauses *s);

// Record what the current step does; called if SimCluster.causes is set. The
// following two record barriers. at: number of a barrier of the CTA, or one of
// the following for the cluster barrier.
enum { CAUSE_OPEN = -1, CAUSE_DONE = -2 };
void simcauses_give(SimWarp *w, int at);
void simcauses_take(SimWarp *w, int at);
void simcauses_forget(SimWarp *w, int at);
// Completes a round of the cluster barrier: OPEN becomes DONE.
void simcauses_meet(SimCluster *c);
// Record operations on mbarrier k of the cluster: an arrival, expected bytes, a
// test of the phase (wait: a wait that passed), and the end of a phase.
void simcauses_arrive(SimCluster *c, int k, uint32_t phase);
void simcauses_expect(SimCluster *c, int k, uint32_t phase);
void simcauses_look(SimWarp *w, int k, uint32_t phase, bool wait);
void simcauses_phase(SimCluster *c, int k);
// Records a lane's ordered access to a granule. how: CAUSE_READ; CAUSE_ADD +
// AtomicKind for an operation that commutes with others of its kind; or
// CAUSE_WRITE for any other write. was: the granule's bytes before it.
enum { CAUSE_READ, CAUSE_WRITE, CAUSE_ADD };
void simcauses_access(SimWarp *w, uint64_t place, int how, uint64_t was);
// Reports whether warp g has only read since step `turn`, and every granule
// that it read still has its value.
bool simcauses_still(const SimCauses *s, int g, uint32_t turn);
// simcauses_earlier returns the last step before `turn` that changed what w
// polls, and the value before that change. UINT32_MAX: w happens after all
// changes in every schedule. simcauses_plain reports whether w could read only
// such values in this step.
bool simcauses_plain(const SimWarp *w, const SimAsk *a);
uint32_t simcauses_earlier(const SimWarp *w, const SimAsk *a, uint32_t turn,
                           uint64_t *found);

#endif
// SPDX-License-Identifier: MIT
