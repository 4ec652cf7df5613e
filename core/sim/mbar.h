// mbarriers in shared memory (mbar.c): their state, operations by threads, and
// the bytes that asynchronous operations complete.
#ifndef CUTE_SIMMBAR_H
#define CUTE_SIMMBAR_H

#include "sim/async.h"

// Indices of SimMbar.past. Each entry holds the accesses that arrivals in a
// phase released and that waiting threads acquire. OPEN is for the current
// phase, DONE for the previous phase. FAR_OPEN and FAR_DONE hold releases by
// threads of other CTAs in these two phases. Only threads that wait with
// cluster scope acquire them.
enum { OPEN, DONE, FAR_OPEN, FAR_DONE, PASTS };

// The last use of an mbarrier by a warp: epoch (clk), lanes and line (src).
// waited: line of the warp's last successful wait at the mbarrier.
struct SimUse { uint32_t clk, lanes, src, waited; };

// The last successful wait of a warp at an mbarrier: its epoch (clk), lanes and
// line (src). phase: 1 + number of the completed phase. serial: value of
// SimCluster.serial, or 0 if the warp has not waited.
struct SimPassed { uint32_t phase, clk, lanes, src; uint64_t serial; };

struct SimMbar {
  uint32_t at;  // byte offset of the storage in the cluster's shared memory
  // memory object and index of the mbarrier's element in it, for reports
  int32_t mem;
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
  // line of the instruction that invalidated the mbarrier; 0: still valid
  uint32_t gone;
  bool fenced;             // whether a fence followed the initialization
  // round of the cluster barrier that followed the fence; 0: none yet
  uint32_t shared;
  // The last asynchronous operation that completed bytes, or the last arrival
  // by a thread of another CTA. landed: epoch of the mbarrier. land: the
  // instruction. lander, lane: the thread's warp and lane. left: epoch of that
  // warp. moved: whether an asynchronous operation copied or arrived.
  uint32_t landed;
  const SimIns *land;
  int lander, lane;
  uint32_t left;
  bool moved;
  bool fed[2];  // whether the current and the previous phase expected bytes
  // for each warp: epochs of its arrivals in the current and the previous phase
  uint32_t *came[2];
  struct SimUse *use;      // for each warp: its last use of the mbarrier
  struct SimPassed *passed;  // for each warp: its last wait that succeeded
  // The first wait that may come late because it does not happen before the end
  // of the following phase. NULL: no such wait.
  struct SimPassed *missed;
  int misser;              // warp of the wait `missed`
  // last: source line of the last arrival. comer, at_lane: its warp and lane.
  uint32_t last;
  int comer, at_lane;
  uint32_t expect;         // line of the last expect_tx
  // `begun`: the current phase has an arrival. `early`: a wait succeeded before
  // the first phase was complete.
  bool begun, early;
  // completed bytes in the current phase (sum) and the previous phase (had)
  int64_t sum, had;
  // the accesses that arrivals released; the indices are OPEN to FAR_DONE
  SimPast past[PASTS];
};

// Execute mbarrier instructions for w's active lanes. simmbar_wait returns
// false if w must wait (SW_MBAR).
void simmbar_init(SimWarp *w, const SimIns *i);
void simmbar_inval(SimWarp *w, const SimIns *i);
void simmbar_arrive(SimWarp *w, const SimIns *i);
void simmbar_expect(SimWarp *w, const SimIns *i);
bool simmbar_wait(SimWarp *w, const SimIns *i);
void simmbar_try(SimWarp *w, const SimIns *i);
void simmbar_cpasync(SimWarp *w, const SimIns *i);
void simmbar_fence(SimWarp *w);
// Starts an asynchronous operation for the only active lane. The operation
// arrives once at the mbarrier of i in the CTA of rank `rank`. It has `data`
// zeroed bytes. Returns NULL and reports a fault if the mbarrier is unusable.
SimAsync *simmbar_commit(SimWarp *w, const SimIns *i, int rank, SimRun *run,
                         size_t data);
// Counts the arrival of operation a, which simmbar_commit started. Threads that
// wait for the phase acquire epoch `epoch` of `actor` (a vector-clock entry).
void simmbar_arrived_by(SimCluster *c, const SimAsync *a, int actor,
                        uint32_t epoch);
void simmbar_share(SimCluster *c, uint32_t met);
// Returns the mbarrier at address addr of the cluster's shared memory, an
// element of m. Lane l starts an asynchronous operation that completes at this
// mbarrier. Returns NULL and reports a fault if the mbarrier is unusable.
// `proxy` is true if the operation does not use the generic proxy.
SimMbar *simmbar_for(SimWarp *w, const SimIns *i, int l, const SimMem *m,
                     uint32_t addr, bool proxy);
// simmbar_complete records that an asynchronous operation completes `bytes`
// bytes at b. The operation's writes become visible as writes of the actor
// simmbar_actor (a vector-clock entry), in epoch simmbar_epoch.
void simmbar_complete(SimCluster *c, SimMbar *b, uint32_t bytes);
uint32_t simmbar_epoch(const SimMbar *b);
int simmbar_actor(const SimCluster *c, const SimMbar *b);
// Each mbarrier has two actors (vector-clock entries): simmbar_actor, and a
// turn actor, simmbar_twin. (For other actors, simmbar_twin returns the actor
// itself.) A thread that acquired an epoch of simmbar_actor sees what a phase
// releases. An epoch of the turn actor only means that a phase is complete; it
// orders no memory. An arrival or a copy adds the turn epochs of its thread to
// the current phase. Threads that wait for the phase acquire these epochs. Each
// warp also has a turn actor, for its arrivals. simmbar_turns returns the
// part of a vector clock for turn actors, warps first.
static inline uint32_t *simmbar_turns(const SimProg *p, uint32_t *vc) {
  return vc + actors_first(&p->actors, ACTOR_TURN);
}
static inline int simmbar_twin(const SimProg *p, int actor) {
  return actors_is(&p->actors, ACTOR_MBAR, actor) ? actor - p->nmbar : actor;
}
void simmbar_land(SimMbar *b, const SimWarp *w, int lane, const SimIns *i,
                  bool moved);
// Adds epochs of turn actors (see simmbar_twin) to b's current phase. Threads
// that see the phase complete acquire these epochs.
void simmbar_turned(SimCluster *c, SimMbar *b, const uint32_t *turns);
// Called after all warps of the cluster have exited.
void simmbar_end(SimCluster *c);
// Reports whether w waited several times at one mbarrier of a ring, and never
// used another one, at which no warp has waited. With `used`, the other one
// must be in use.
bool simmbar_stays(const SimWarp *w, bool used);
// Returns the mbarrier that simmbar_stays finds in the ring of b, or NULL.
const SimMbar *simmbar_skipped(const SimWarp *w, const SimMbar *b, bool used);
// Reports whether a and b are probably stages of one ring.
bool simmbar_ring(const SimCluster *c, const SimMbar *a, const SimMbar *b);
// Returns a pointer to the number of waits at b that warp k has passed.
static inline uint32_t *simmbar_waits(const SimCluster *c, int k,
                                      const SimMbar *b) {
  return &c->mbars.waits[k * c->prog->nmbar + (b - c->mbars.p)];
}
// Returns the number of w's successful waits at b, minus b's completed phases.
static inline int64_t simmbar_ahead(const SimWarp *w, const SimMbar *b) {
  return (int64_t)*simmbar_waits(w->cluster, w->id, b) - b->phase;
}
// Records in r how many phases began at the mbarriers in the CTA of `of`. There
// is one sum for each array of mbarriers. The array of `of` comes first.
void simmbar_rounds(const SimCluster *c, const SimMbar *of, SimReport *r);
// Returns the pending arrival that w's cp.asyncs will make at an mbarrier, or
// NULL if no such arrival is pending.
const struct SimAsync *simmbar_landing(const SimWarp *w);
void simmbar_reset(SimCluster *c);
void simmbar_free(SimCluster *c);

#endif
// SPDX-License-Identifier: MIT
