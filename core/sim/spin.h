// Livelock: warps that poll memory for a value that is never stored (spin.c).
#ifndef CUTE_SIMSPIN_H
#define CUTE_SIMSPIN_H

#include "sim/inside.h"

// The last poll of a warp. stuck: the warp has returned to its state while
// memory is unchanged, so it will return again and again.
struct SimSpin {
  uint64_t stamp, hash;    // memory changes so far; hash of the warp's state
  uint32_t asked, pc;      // asked: polls with that stamp
  bool stuck;
  const SimIns *i;
  const SimMem *m;         // polled object; a lane, and its byte
  int lane;
  int64_t at;
  uint32_t home;           // shared memory: of the CTA, as SimWarp.home
};

// Counts a change of memory: of the cluster's, or (global) for all clusters.
static inline void simspin_moved(SimCluster *c, bool global) {
  c->moved++;
  c->changed++;
  if (global && c->prog->changes) ++*c->prog->changes;
}
// Returns the number of memory changes that this cluster can observe.
uint64_t simspin_stamp(const SimCluster *c);
// Records a poll by w at i that changed nothing.
void simspin_ask(SimWarp *w, const SimIns *i);
// Returns a hash of the state of w before an instruction of a loop, without
// values that the loop computes anew; 0: w is in no loop.
uint64_t simspin_state(SimWarp *w);
// Reports whether the innermost loop of w only loads and computes.
bool simspin_only_reads(const SimWarp *w);
// Tries a poll of w (a load or an atomic in a loop) that reads `a`, and
// restores w. Returns the number of scheduling steps after which w is in the
// same state, if memory does not change; 0: it passes, or that is unknown.
// room: simspin_room bytes of scratch.
size_t simspin_room(const SimProg *p);
int simspin_fails(SimWarp *w, const SimAsk *a, char *room);
// Reports whether a failing poll of w could pass before some earlier step. True
// if unknown.
bool simspin_could(SimWarp *w, char *room);
// Reports whether w waits in vain unless others change memory.
bool simspin_stuck(const SimWarp *w);
bool simspin_same(const SimWarp *w, const SimWarp *u);  // for the same element
// Reports whether all runnable warps do. *global: some poll global memory.
bool simspin_all(const SimCluster *c, bool *global);
// Reports the deadlock of a warp, and of all in its CTA that wait for the same
// element.
void simspin_tell(SimWarp *w);

#endif
// SPDX-License-Identifier: MIT
