// Schedules that are decided, not left to chance: turns.c runs the warps of a
// cluster, or of all clusters where they hand over (SimProg.relay), one
// operation of synchronisation at a time; causes.c follows what of it could
// have come in another order.
//
// A turn is one such operation of a warp (an access with an order, an atomic,
// what is done at an mbarrier), or what an agent does at its end. Between them
// warps only do what commutes with all that others do, races aside, which are
// told by themselves.
#ifndef CUTE_SIMTURNS_H
#define CUTE_SIMTURNS_H

#include "sim/inside.h"

typedef struct SimTurns SimTurns;

SimTurns *simturns_new(const SimProg *p, const SimOpts *o);  // NULL: no memory
void simturns_free(SimTurns *t);
// Cluster c begins: its turns are those of t.
void simturns_join(SimTurns *t, SimCluster *c);
// One more turn of n clusters: which of them ended; -1: none; TURNS_NONE: it
// is nobody's turn, those who are left wait for ever.
enum { TURNS_NONE = -2 };
int simturns_next(SimTurns *t, SimCluster **c, int n);
// What was found of the turns since the first cluster joined; NULL: nothing
// that is worth telling, or no memory.
SimOrders *simturns_orders(SimTurns *t);
uint64_t simturns_count(const SimTurns *t);
void simturns_started(SimTurns *t, struct SimAsync *a);  // an agent, by a->w
void simturns_stray(SimTurns *t);  // SIM_TRIES

// ---- exec.c ----
// Is it a turn; that of w which comes next; all until then.
bool simexec_is_turn(const SimIns *i);
void simexec_turn(SimWarp *w);
void simexec_between(SimWarp *w);

// ---- causes.c ----
// Who did what before what, as far as another schedule could not have changed
// it: an epoch for each warp, and for each mbarrier the phases that are over.
typedef struct SimCauses SimCauses;
typedef struct SimCause {    // somebody's turn
  uint32_t turn;
  int warp;                  // its number in all; -1: an agent
  uint32_t seq;              // its warp's turn
} SimCause;
SimCauses *simcauses_new(const SimProg *p, uint32_t units);
void simcauses_free(SimCauses *s);
void simcauses_reset(SimCauses *s, uint64_t first);  // cluster
// Turn number `turn` of warp g begins, or (-1) of an agent that was started
// with row `start`; it is over: its row; which of its warp's it is.
void simcauses_begin(SimCauses *s, uint32_t turn, int g, uint32_t start);
// Removes the last turn, one of a warp, from what later turns depend on; with
// `pairs` the pairs that it forms with earlier turns stay.
void simcauses_void(SimCauses *s, bool pairs);
uint32_t simcauses_end(SimCauses *s);
uint32_t simcauses_seq(const SimCauses *s);
// The row of warp w now, for what an agent does later.
uint32_t simcauses_start(SimWarp *w);
// Is row k of what comes after turn c?
bool simcauses_after(const SimCauses *s, uint32_t k, const SimCause *c,
                     int mbar, uint32_t phase);
// Its hash, with warps, and clusters, in the order of `name`; the mbarrier and
// phase where the agent's turn ended.
uint64_t simcauses_hash(const SimCauses *s, uint32_t row, const uint32_t *name);
void simcauses_where(const SimCauses *s, int *mbar, uint32_t *phase);
// Two turns could have come the other way round.
typedef struct SimPair { uint32_t first, second; } SimPair;
const SimPair *simcauses_pairs(const SimCauses *s, size_t *n);
bool simcauses_full(const SimCauses *s);  // there are more than are kept

// A turn in which lanes did what does not commute at one place; -1: none.
int64_t simcauses_lanes(const SimCauses *s);

// What operations say, where SimCluster.causes is. Barriers of a CTA (at), the
// cluster's.
enum { CAUSE_OPEN = -1, CAUSE_DONE = -2 };
void simcauses_give(SimWarp *w, int at);
void simcauses_take(SimWarp *w, int at);
void simcauses_forget(SimWarp *w, int at);
void simcauses_meet(SimCluster *c);          // of the cluster: OPEN is DONE
// mbarrier k of the cluster: arrivals, bytes that are expected, a look at the
// phase (wait: one that passed), its end.
void simcauses_arrive(SimCluster *c, int k, uint32_t phase);
void simcauses_expect(SimCluster *c, int k, uint32_t phase);
void simcauses_look(SimWarp *w, int k, uint32_t phase, bool wait);
void simcauses_phase(SimCluster *c, int k);
// A lane's access with an order at a place: a read, something that commutes
// with its like (how: CAUSE_ADD + AtomicKind), or all else; `was`: the bytes
// before it.
enum { CAUSE_READ, CAUSE_WRITE, CAUSE_ADD };
void simcauses_access(SimWarp *w, uint64_t place, int how, uint64_t was);
// Reports whether warp g only read since that turn, and every place that it
// read still has its value.
bool simcauses_still(const SimCauses *s, int g, uint32_t turn);
// Returns the last change before `turn` of what w polls, and the value that
// was there before it; UINT32_MAX: w follows all of them in every schedule.
// plain: those values are all that w could find at this turn.
bool simcauses_plain(const SimWarp *w, const SimAsk *a);
uint32_t simcauses_earlier(const SimWarp *w, const SimAsk *a, uint32_t turn,
                           uint64_t *found);

#endif
