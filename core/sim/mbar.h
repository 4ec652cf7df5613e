// mbarriers of shared memory (mbar.c): state, operations of threads, completion
// by agents.
#ifndef CUTE_SIMMBAR_H
#define CUTE_SIMMBAR_H

#include "sim/inside.h"

// Indices of SimMbar.past, the releases of a phase. OPEN: of the current phase.
// DONE: of the previous one. FAR_OPEN, FAR_DONE: the releases of threads of
// other CTAs, which threads acquire that wait with cluster scope.
enum { OPEN, DONE, FAR_OPEN, FAR_DONE, PASTS };

// -
struct SimMbar {
  uint32_t at;             // byte offset in the cluster's shared memory
  int32_t mem;             // object and element, for reports
  int64_t element;
  uint32_t expected, missing;  // arrivals that a phase expects, and those that
                               // are missing
  int64_t bytes;           // expected bytes minus completed bytes
  uint32_t phase, born;    // phase: number of completed phases; born: its value
                           // at initialisation
  int warp;                // warp, lanes, epoch and line of the initialisation
  uint32_t lanes, clk, src;
  uint32_t gone;           // line of its invalidation; 0: valid
  bool fenced;             // fenced after its initialisation
  uint32_t shared;         // cluster barrier's round after the fence; 0: none
  // The last completion by an agent, or arrival from another CTA: its epoch of
  // the mbarrier, its line, its warp and lane, and their epoch. moved: the
  // agent wrote memory.
  uint32_t landed, land;
  int lander, lane;
  uint32_t left;
  bool moved;
  bool fed[2];             // whether bytes are expected: in the current phase,
                           // in the previous one
  uint32_t *came[2];       // arrivals of the current and of the previous phase:
                           // an epoch per warp
  struct SimUse *use;      // last use by each warp
  struct SimPassed *passed;  // last wait of each warp that passed
  struct SimPassed *missed;  // first wait that does not happen before the end
                             // of the phase after its own; NULL: none
  int misser;              // warp that made the wait `missed`
  uint32_t last;           // line, warp and lane of the last arrival
  int comer, at_lane;
  uint32_t expect;         // line of the last expect_tx
  bool begun, early;       // begun: the current phase has an arrival; early: a
                           // wait passed before the first phase was complete
  int64_t sum, had;        // completed bytes; sum: in the current phase; had:
                           // in the previous one
  SimPast past[PASTS];     // what the phases release, indexed by OPEN to
                           // FAR_DONE
};

// Execute instructions of lanes of w. simmbar_wait returns false if w must wait
// (SW_MBAR).
void simmbar_init(SimWarp *w, const SimIns *i);
void simmbar_inval(SimWarp *w, const SimIns *i);
void simmbar_arrive(SimWarp *w, const SimIns *i);
void simmbar_expect(SimWarp *w, const SimIns *i);
bool simmbar_wait(SimWarp *w, const SimIns *i);
void simmbar_try(SimWarp *w, const SimIns *i);
void simmbar_cpasync(SimWarp *w, const SimIns *i);
void simmbar_fence(SimWarp *w);
void simmbar_share(SimCluster *c, uint32_t met);
// Returns the mbarrier that lane l passes to an agent. addr: its address in the
// cluster's shared memory, an element of m. NULL: the mbarrier is unusable,
// which is reported. proxy: the agent uses a proxy of its own.
SimMbar *simmbar_for(SimWarp *w, const SimIns *i, int l, const SimMem *m,
                     uint32_t addr, bool proxy);
// Returns the mbarrier at an address without checking its initialisation; NULL:
// there is none.
SimMbar *simmbar_at(const SimCluster *c, uint32_t addr);
// simmbar_complete records that an agent completes `bytes` bytes. simmbar_epoch
// and simmbar_actor return the epoch and the actor of what it wrote.
void simmbar_complete(SimCluster *c, SimMbar *b, uint32_t bytes);
uint32_t simmbar_epoch(const SimMbar *b);
int simmbar_actor(const SimCluster *c, const SimMbar *b);
// Each mbarrier has two actors. An epoch of simmbar_actor means that what a
// phase releases is visible. An epoch of simmbar_twin means only that a phase
// is complete; such an actor is a turn actor. (For other actors, simmbar_twin
// returns the actor itself.) Threads know the epoch of a turn actor even
// without memory order: if they arrived, or saw a copy complete, after a thread
// that knew it. The arrivals of each warp are a turn actor, too. simmbar_turns
// returns the nturn turn actors' part of a vector clock of all actors, warps
// first.
static inline int simmbar_turn(const SimProg *p) {
  return p->nactor - p->nmbar - p->nturn;
}
static inline uint32_t *simmbar_turns(const SimProg *p, uint32_t *vc) {
  return vc + simmbar_turn(p);
}
static inline int simmbar_twin(const SimProg *p, int actor) {
  return actor >= p->nactor - p->nmbar ? actor - p->nmbar : actor;
}
void simmbar_land(SimMbar *b, const SimWarp *w, int lane, uint32_t src,
                  bool moved);
// Adds turn epochs that threads know if they see b's phase complete.
void simmbar_turned(SimCluster *c, SimMbar *b, const uint32_t *turns);
void simmbar_end(SimCluster *c);       // called when all warps have exited
// Reports whether some instruction creates an mbarrier in an object of shared
// memory.
bool simmbar_holds(const Fn *fn, const Mem *m);
// Reports active mbarriers among n bytes of the cluster's shared memory that
// lane l accesses as data.
void simmbar_data(SimWarp *w, const SimIns *i, int l, uint32_t addr,
                  uint32_t n, bool write);
// Fills in f with the reason why w accesses too early the bytes that a copy of
// phase `phase` writes. landed: the copy is complete.
void simmbar_late(SimFault *f, const SimWarp *w, const SimMbar *b,
                  uint32_t phase, bool landed);
// Reports whether a wait of w at b passed although its phase is not complete.
bool simmbar_ahead(const SimWarp *w, const SimMbar *b);
// Returns the pending arrival after w's cp.asyncs; NULL: there is none.
const struct SimAsync *simmbar_landing(const SimWarp *w);
void simmbar_reset(SimCluster *c);
void simmbar_free(SimCluster *c);

#endif
// SPDX-License-Identifier: MIT
