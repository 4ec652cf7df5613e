// mbarriers of shared memory (mbar.c): their state, what threads do to them,
// and what agents do.
#ifndef CUTE_SIMMBAR_H
#define CUTE_SIMMBAR_H

#include "sim/inside.h"

// What this phase releases, and what the last one did; FAR: what threads of
// other CTAs do, to those who wait for the cluster.
enum { OPEN, DONE, FAR_OPEN, FAR_DONE, PASTS };

// One of them.
struct SimMbar {
  uint32_t at;             // byte of the cluster's shared memory
  int32_t mem;             // object and element, for reports
  int64_t element;
  uint32_t expected, missing;  // arrivals of a phase
  int64_t bytes;           // expected less those that came
  uint32_t phase, born;    // phases that are over; when it was made
  int warp;                // who made it, when and where
  uint32_t lanes, clk, src;
  uint32_t gone;           // ... and took it back: where; 0: it is there
  bool fenced;             // ... with a fence behind it
  uint32_t shared;         // since the cluster met for that time; 0: not yet
  uint32_t landed, land;   // the epoch in which agents or threads of other
  int lander, lane;        // CTAs came last; where, who, its own epoch
  uint32_t left;
  bool moved;              // ... an agent, and it wrote
  bool fed[2];             // bytes are expected in this phase, in the last one
  uint32_t *came[2];       // who arrived there: an epoch a warp
  struct SimUse *use;      // each warp's last
  struct SimPassed *passed;  // ... its last wait that passed
  struct SimPassed *missed;  // the first that nothing orders before the end of
                             // the phase behind its own; NULL: none
  int misser;              // ... whose
  uint32_t last;           // where somebody came last; who
  int comer, at_lane;
  uint32_t expect;         // where bytes were expected last
  bool begun, early;       // something came in this phase; a wait passed
                           // before the first one was over
  int64_t sum, had;        // bytes that came in this phase, in that before
  SimPast past[PASTS];     // what is released
};

// One instruction of lanes of w. wait: false when it must wait (SW_MBAR).
void simmbar_init(SimWarp *w, const SimIns *i);
void simmbar_inval(SimWarp *w, const SimIns *i);
void simmbar_arrive(SimWarp *w, const SimIns *i);
void simmbar_expect(SimWarp *w, const SimIns *i);
bool simmbar_wait(SimWarp *w, const SimIns *i);
void simmbar_try(SimWarp *w, const SimIns *i);
void simmbar_cpasync(SimWarp *w, const SimIns *i);
void simmbar_fence(SimWarp *w);
void simmbar_share(SimCluster *c, uint32_t met);
// The barrier at an address of the cluster's shared memory, an element of m,
// that lane l hands to an agent; NULL: it cannot be used, which is told. proxy:
// the agent has one of its own.
SimMbar *simmbar_for(SimWarp *w, const SimIns *i, int l, const SimMem *m,
                     uint32_t addr, bool proxy);
// The same without a look at who knows of it; NULL: none.
SimMbar *simmbar_at(const SimCluster *c, uint32_t addr);
// Agents moved so many bytes, in that epoch of its actor, from line src.
void simmbar_complete(SimCluster *c, SimMbar *b, uint32_t bytes);
uint32_t simmbar_epoch(const SimMbar *b);
int simmbar_actor(const SimCluster *c, const SimMbar *b);
// Actors of mbarriers are twins: simmbar_actor's epochs are what a thread may
// read; simmbar_twin's that a phase is over (of others: the actor itself).
// The latter are turns, which also those know who have no order of memory: who
// came, or saw a copy end, behind somebody who knew. So are the arrivals of
// each warp. simmbar_turns: nturn of them, warps first, in a vector of all
// actors.
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
// Who sees its phase end knows of these turns.
void simmbar_turned(SimCluster *c, SimMbar *b, const uint32_t *turns);
void simmbar_end(SimCluster *c);       // all warps are done
// Is some mbarrier made where an object of shared memory lies?
bool simmbar_holds(const Fn *fn, const Mem *m);
// Tells of mbarriers at work among n bytes of the cluster's shared memory that
// lane l reads, or writes, as data.
void simmbar_data(SimWarp *w, const SimIns *i, int l, uint32_t addr,
                  uint32_t n, bool write);
// Into f: why w uses too early what a copy of that phase brings to b, which has
// landed or not.
void simmbar_late(SimFault *f, const SimWarp *w, const SimMbar *b,
                  uint32_t phase, bool landed);
// Did a wait of w at b pass for a phase that is not over?
bool simmbar_ahead(const SimWarp *w, const SimMbar *b);
// The arrival that will tell of w's cp.asyncs; NULL: none is on its way.
const struct SimAsync *simmbar_landing(const SimWarp *w);
void simmbar_reset(SimCluster *c);
void simmbar_free(SimCluster *c);

#endif
