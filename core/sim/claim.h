// Decoded assertions and their check (claim.c).
#ifndef CUTE_SIMCLAIM_H
#define CUTE_SIMCLAIM_H

#include "sim/inside.h"

// SimTerm: the slot of a value, or the constant konst if there is no slot.
// SimTold: the bounds on a value. SimClaim: an assumption (mem is -1), or one
// bound for each mode of a coordinate of an element of mem.
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
  SimTerm when;        // condition under which the assertion is checked
  uint32_t note;       // name of a range that begins or ends here; 0: none
  bool begins;
  SimTold *part;
  uint32_t rule;       // TracedRule that the layout words in the parts must
                       // fulfil; 0: none
  uint64_t *good;      // hash of the values that passed the last check
} SimClaim;

// Checks the assertion of a TRAP, whose x is a SimClaim. Reports the active
// lanes that violate it.
void simclaim_check(SimWarp *w, const SimIns *i);

#endif
// SPDX-License-Identifier: MIT
