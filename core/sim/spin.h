// Livelock: warps that poll memory for a value that is never stored (spin.c).
#ifndef CUTE_SIMSPIN_H
#define CUTE_SIMSPIN_H

#include "sim/inside.h"

// The last poll of a warp. stuck: the warp has returned to a former state while
// memory is unchanged, so it will return to this state again and again.
struct SimSpin {
  uint64_t stamp, hash;    // stamp: number of memory changes at the poll; hash:
                           // hash of the warp's state
  uint32_t asked, pc;      // asked: number of polls with that stamp
  bool stuck;
  const SimIns *i;
  const SimMem *m;         // polled object; a lane and its byte offset follow
  int lane;
  int64_t at;
  uint32_t home;           // shared memory: first byte of the CTA, as in
                           // SimWarp.home
};

// Counts a change of the cluster's memory, or (global) of memory that all
// clusters share.
static inline void simspin_moved(SimCluster *c, bool global) {
  c->moved++;
  c->changed++;
  if (global && c->prog->changes) ++*c->prog->changes;
}
// Returns the number of memory changes that this cluster can observe.
uint64_t simspin_stamp(const SimCluster *c);
// Records a poll by w at i that changed nothing.
void simspin_ask(SimWarp *w, const SimIns *i);
// Returns a hash of the state of w before an instruction of a loop. Values that
// the loop computes anew are left out. 0: w is in no loop.
uint64_t simspin_state(SimWarp *w);
// Reports whether the innermost loop of w only loads and computes.
bool simspin_only_reads(const SimWarp *w);
// Tries a poll of w (a load or an atomic in a loop) that reads `a`, and
// restores w. Returns the number of scheduling steps after which w is in the
// same state if memory does not change. Returns 0 if the poll passes, or if
// that is unknown. room: simspin_room bytes of scratch.
size_t simspin_room(const SimProg *p);
int simspin_fails(SimWarp *w, const SimAsk *a, char *room);
// Reports whether a failing poll of w could pass if it came before some earlier
// step. Returns true if unknown.
bool simspin_could(SimWarp *w, char *room);
// Reports whether w waits in vain until others change memory.
bool simspin_stuck(const SimWarp *w);
bool simspin_same(const SimWarp *w, const SimWarp *u);  // reports whether both
                                                        // poll the same element
// Reports whether all runnable warps poll in vain. Sets *global if some poll
// global memory.
bool simspin_all(const SimCluster *c, bool *global);
// Reports the deadlock of a warp, together with all warps of its CTA that wait
// for the same element.
void simspin_tell(SimWarp *w);

#endif
// SPDX-License-Identifier: MIT
