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
  uint32_t phase;          // phases that are over
  int warp;                // who made it, when and where
  uint32_t lanes, clk, src;
  uint32_t gone;           // ... and took it back: where; 0: it is there
  bool fenced;             // ... with a fence behind it
  uint32_t shared;         // since the cluster met for that time; 0: not yet
  uint32_t landed, land;   // the epoch in which agents or threads of other
  int lander, lane;        // CTAs came last; where, who, its own epoch
  uint32_t left;
  bool moved;              // ... an agent, and it wrote
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
void simmbar_land(SimMbar *b, const SimWarp *w, int lane, uint32_t src,
                  bool moved);
void simmbar_reset(SimCluster *c);
void simmbar_free(SimCluster *c);

#endif
