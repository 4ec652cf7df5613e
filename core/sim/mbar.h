// mbarriers in shared memory (mbar.c): their state, operations by threads, and
// completion of bytes by agents.
#ifndef CUTE_SIMMBAR_H
#define CUTE_SIMMBAR_H

#include "sim/async.h"

// Indices of SimMbar.past. Each entry holds the releases in a phase of the
// mbarrier, which waiting threads acquire. OPEN is for the current phase, DONE
// for the previous phase. FAR_OPEN and FAR_DONE hold releases by threads of
// other CTAs in these two phases, which only threads that wait with cluster
// scope acquire.
enum { OPEN, DONE, FAR_OPEN, FAR_DONE, PASTS };

struct SimMbar {
  uint32_t at;  // byte offset of the storage in the cluster's shared memory
  int32_t mem;             // memory object and element, for reports
  int64_t element;
  // `expected` is the number of arrivals that complete a phase. `missing` is
  // the number of arrivals that the current phase still lacks.
  uint32_t expected, missing;
  int64_t bytes;           // expected bytes minus completed bytes
  // number of completed phases: now, and when the mbarrier was initialized
  uint32_t phase, born;
  // the initialization of the mbarrier: warp, lanes, epoch (clk) and line (src)
  int warp;
  uint32_t lanes, clk, src;
  // line of the instruction that invalidated the mbarrier; 0: no instruction
  // did
  uint32_t gone;
  bool fenced;             // whether a fence followed the initialization
  // round of the cluster barrier that followed the fence; 0: none yet
  uint32_t shared;
  // The last event of two kinds: an agent completed bytes, or a thread of
  // another CTA arrived. landed: the mbarrier's epoch. land: the instruction.
  // lander, lane: the thread's warp and lane. left: the warp's epoch. moved:
  // whether an agent copied or arrived.
  uint32_t landed;
  const SimIns *land;
  int lander, lane;
  uint32_t left;
  bool moved;
  bool fed[2];  // whether the current and the previous phase expected bytes
  // epochs of each warp's arrivals in the current and in the previous phase
  uint32_t *came[2];
  struct SimUse *use;      // for each warp: its last use of the mbarrier
  struct SimPassed *passed;  // for each warp: its last wait that succeeded
  // the first wait for a phase that does not happen before the end of the
  // following phase; NULL: none
  struct SimPassed *missed;
  int misser;              // warp of the wait `missed`
  // source line, warp and lane of the last arrival
  uint32_t last;
  int comer, at_lane;
  uint32_t expect;         // line of the last expect_tx
  // `begun`: the current phase has an arrival. `early`: a wait succeeded before
  // the first phase was complete.
  bool begun, early;
  // completed bytes: in the current phase (sum), in the previous phase (had)
  int64_t sum, had;
  SimPast past[PASTS];  // accesses that the phases release, indexed by OPEN to
                        // FAR_DONE
};

// Execute mbarrier instructions of w's active lanes. simmbar_wait returns false
// if w must wait (SW_MBAR).
void simmbar_init(SimWarp *w, const SimIns *i);
void simmbar_inval(SimWarp *w, const SimIns *i);
void simmbar_arrive(SimWarp *w, const SimIns *i);
void simmbar_expect(SimWarp *w, const SimIns *i);
bool simmbar_wait(SimWarp *w, const SimIns *i);
void simmbar_try(SimWarp *w, const SimIns *i);
void simmbar_cpasync(SimWarp *w, const SimIns *i);
void simmbar_fence(SimWarp *w);
// Starts, for the only active lane, an operation of an agent that arrives once
// at the mbarrier of i in the CTA of this rank, with `data` zeroed bytes.
// Returns NULL and reports a fault if the mbarrier is unusable.
SimAsync *simmbar_commit(SimWarp *w, const SimIns *i, int rank, SimRun *run,
                         size_t data);
// Counts the arrival of an operation of simmbar_commit. Threads that wait for
// the phase acquire epoch `epoch` of `actor`.
void simmbar_arrived_by(SimCluster *c, const SimAsync *a, int actor,
                        uint32_t epoch);
void simmbar_share(SimCluster *c, uint32_t met);
// Returns the mbarrier at address addr of the cluster's shared memory, an
// element of m, which lane l passes to an agent. Returns NULL and reports a
// fault if the mbarrier is unusable. proxy: the agent does not use the generic
// proxy.
SimMbar *simmbar_for(SimWarp *w, const SimIns *i, int l, const SimMem *m,
                     uint32_t addr, bool proxy);
// simmbar_complete records that an agent completes `bytes` bytes at b.
// simmbar_epoch and simmbar_actor return the epoch and the actor under which
// the agent's writes become visible.
void simmbar_complete(SimCluster *c, SimMbar *b, uint32_t bytes);
uint32_t simmbar_epoch(const SimMbar *b);
int simmbar_actor(const SimCluster *c, const SimMbar *b);
// Each mbarrier has two actors. A thread that acquired an epoch of
// simmbar_actor sees what a phase releases. An epoch of simmbar_twin, a turn
// actor, only means that a phase is complete. (For other actors, simmbar_twin
// returns the actor itself.) A thread acquires an epoch of a turn actor even
// without memory order: it does so when it arrives at an mbarrier, or observes
// that a copy is complete, after another thread that had the epoch. There is
// also a turn actor for the arrivals of each warp. simmbar_turns returns the
// part of a vector clock for the turn actors, warps first.
static inline uint32_t *simmbar_turns(const SimProg *p, uint32_t *vc) {
  return vc + actors_first(&p->actors, ACTOR_TURN);
}
static inline int simmbar_twin(const SimProg *p, int actor) {
  return actors_is(&p->actors, ACTOR_MBAR, actor) ? actor - p->nmbar : actor;
}
void simmbar_land(SimMbar *b, const SimWarp *w, int lane, const SimIns *i,
                  bool moved);
// Adds epochs of turn actors to b's phase. Threads that see the phase complete
// acquire these epochs.
void simmbar_turned(SimCluster *c, SimMbar *b, const uint32_t *turns);
// called after all warps of the cluster have exited
void simmbar_end(SimCluster *c);
// Reports whether warp u arrived at the mbarrier in its last complete phase,
// before its epoch clk.
bool simmbar_arrived(const SimMbar *b, const SimWarp *u, uint32_t clk);
// Returns the number of mbarriers in the array of b.
int simmbar_array(const SimCluster *c, const SimMbar *b);
// Reports whether w waited several times at one mbarrier of a ring, and no warp
// waited at another mbarrier of that ring, which w did not use either. used:
// whether the other mbarrier must be in use.
bool simmbar_stays(const SimWarp *w, bool used);
// Sets the fields of f that tell why warp w accesses the bytes of a copy too
// early. `phase` is the number of the mbarrier's phase when the copy started.
// `landed`: the copy is complete.
void simmbar_late(SimFault *f, const SimWarp *w, int l, const SimMbar *b,
                  uint32_t phase, bool landed);
// Returns the number of successful waits of w at b, minus the number of
// completed phases of b.
int64_t simmbar_ahead(const SimWarp *w, const SimMbar *b);
// Returns the line of w's last successful wait at b.
uint32_t simmbar_waited(const SimWarp *w, const SimMbar *b);
// Records in r how many phases the mbarriers in the CTA of mbarrier `of` began,
// summed over each array of mbarriers. The array of `of` comes first.
void simmbar_rounds(const SimCluster *c, const SimMbar *of, SimReport *r);
// Reports whether w, which waits at b, waits for the phase after the one that
// is next for w. The wait then has the wrong parity.
bool simmbar_skipped(const SimWarp *w, const SimMbar *b);
// Returns the pending arrival at an mbarrier that follows w's cp.asyncs, or
// NULL if no such arrival is pending.
const struct SimAsync *simmbar_landing(const SimWarp *w);
void simmbar_reset(SimCluster *c);
void simmbar_free(SimCluster *c);

#endif
// SPDX-License-Identifier: MIT
