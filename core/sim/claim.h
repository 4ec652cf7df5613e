// Decoded assertions.
#ifndef CUTE_SIMCLAIM_H
#define CUTE_SIMCLAIM_H

#include "sim/machine.h"

// A SimTerm is a value in a slot, or the constant konst if slot is 0. A SimTold
// is a value and its bounds. A SimClaim is an assumption of cute.assume (mem is
// -1), or the coordinate of an accessed element of mem, with bounds for each
// mode.
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
  // The assertion is checked only where this condition holds. By default it
  // always holds.
  SimTerm when;
  // index into Fn.text: a named range of the script begins or ends here; 0: an
  // assertion
  uint32_t note;
  bool begins, slice;
  SimTold *part;
  // the TracedRule by which the third layout must follow from the other two; 0:
  // none
  uint32_t rule;
  uint64_t *good;      // hash of the last values that passed the check
} SimClaim;

#endif
// SPDX-License-Identifier: MIT
