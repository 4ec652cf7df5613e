// Decoded assertions.
#ifndef CUTE_DECODE_ASSERTION_H
#define CUTE_DECODE_ASSERTION_H

#include "decode/prog.h"

// SimTerm: a value in a register slot; if slot is 0, the constant `konst`.
// SimBounded: a value and its bounds. SimAssertion: an assertion about n
// values. If `mem` is -1, the assertion is an assumption of cute.assume.
// Otherwise the values are the coordinate of an accessed element of memory
// object `mem`, with bounds for each mode.
typedef struct SimTerm {
  uint32_t slot;
  bool wide, uniform;
  int64_t konst;
} SimTerm;
typedef struct SimBounded {
  SimTerm value, limit;
  int64_t lo, hi, div;
} SimBounded;
typedef struct SimAssertion {
  int n;
  int32_t mem;
  bool write;
  // The condition under which the assertion is checked; by default always true.
  SimTerm when;
  // If not 0, this record is not an assertion: a named range of the script
  // begins or ends here, and the range's name is text `note` of Fn.text.
  uint32_t note;
  bool begins, slice;
  SimBounded *part;
  // the TracedRule by which the third of three layouts must follow from the
  // other two, or 0 if the assertion is not about layouts
  uint32_t rule;
  uint64_t *good;      // hash of the last values that passed the check
} SimAssertion;

#endif
// SPDX-License-Identifier: MIT
