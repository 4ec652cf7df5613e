// Decoded assertions and their check (claim.c).
#ifndef CUTE_SIMCLAIM_H
#define CUTE_SIMCLAIM_H

#include "sim/inside.h"

// SimTerm: a value, or konst if it has no slot. SimTold: the bounds on a value.
// SimClaim: one bound for each mode of a coordinate of an element of mem, or
// (mem -1) an assumption.
typedef struct SimTerm {
  uint32_t slot;
  bool wide, uniform;
  int64_t konst;
} SimTerm;
typedef struct SimTold {
  SimTerm value, limit;
  int64_t lo, hi, div;
} SimTold;
typedef struct SimClaim {
  int n;
  int32_t mem;
  bool write;
  SimTerm when;        // checked where this is true
  uint32_t note;       // 0, or the name of a range that begins or ends
  bool begins;
  SimTold *part;
  uint32_t rule;       // 0, or a TracedRule: the parts are layout words
  uint64_t *good;      // hash of the values that passed last
} SimClaim;

// Checks a TRAP whose x is a SimClaim; reports active lanes that violate it.
void simclaim_check(SimWarp *w, const SimIns *i);

#endif
// SPDX-License-Identifier: MIT
