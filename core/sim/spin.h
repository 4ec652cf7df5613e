// Warps that ask memory for something that does not come (spin.c).
#ifndef CUTE_SIMSPIN_H
#define CUTE_SIMSPIN_H

#include "sim/inside.h"

// What a warp asked last, and whether it has been in this state before, with
// no change of memory since: then it comes to it again and again.
struct SimSpin {
  uint64_t stamp, hash;    // of memory; of the warp's state
  uint32_t asked, pc;      // times with that stamp
  bool stuck;
  const SimIns *i;
  const SimMem *m;         // what it asks, a lane of it, which byte
  int lane;
  int64_t at;
  uint32_t home;           // shared memory: of that CTA, as SimWarp.home
};

// Memory changed: that of the cluster, or (global) everybody's.
static inline void simspin_moved(SimCluster *c, bool global) {
  c->moved++;
  c->changed++;
  if (global && c->prog->changes) ++*c->prog->changes;
}
// Times that memory changed, as far as this cluster sees.
uint64_t simspin_stamp(const SimCluster *c);
// w asked memory, at i, and changed nothing.
void simspin_ask(SimWarp *w, const SimIns *i);
// The state of w before an instruction of a loop, without what is computed anew
// from there on; 0: it is in none.
uint64_t simspin_state(SimWarp *w);
// Reports whether the innermost loop of w only loads and computes.
bool simspin_only_reads(const SimWarp *w);
// Tries a poll of w, a load or an atomic in a loop that finds `a`, and leaves w
// as it was. Returns the turns after which w is in the same state again if
// memory does not change; 0: it goes on, or that is unknown. room: so many
// bytes to work in.
size_t simspin_room(const SimProg *p);
int simspin_fails(SimWarp *w, const SimAsk *a, char *room);
// Reports whether a poll of w that fails could pass before some earlier turn,
// or that is unknown.
bool simspin_could(SimWarp *w, char *room);
// Does w wait in vain as long as nobody else changes memory?
bool simspin_stuck(const SimWarp *w);
bool simspin_same(const SimWarp *w, const SimWarp *u);  // ... for the same
// Do all that could run; true: some of them for global memory.
bool simspin_all(const SimCluster *c, bool *global);
// The fault of a warp that does, and of all in its CTA that wait for the same.
void simspin_tell(SimWarp *w);

#endif
