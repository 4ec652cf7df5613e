// Decoded assertions.
#ifndef CUTE_DECODE_ASSERTION_H
#define CUTE_DECODE_ASSERTION_H

#include "decode/prog.h"

// A SimTerm is the value in a register slot or, if slot is 0, the constant
// `konst`. A SimBounded is a value and its bounds. A SimAssertion asserts that
// each of n values is within its bounds. If `mem` is -1, it is an assumption of
// cute.assume. Otherwise the values are the coordinate of an element of memory
// object `mem` that the kernel accesses.
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
  // If `note` is not 0, this record is not an assertion. It marks the begin or
  // the end of a named range of the script. The name is text `note` of Fn.text.
  uint32_t note;
  bool begins, slice;
  SimBounded *part;
  // If not 0, the assertion is about three layouts, and the third must follow
  // from the other two by this TracedRule.
  uint32_t rule;
  uint64_t *good;      // hash of the last values that passed the check
} SimAssertion;

#endif
// SPDX-License-Identifier: MIT
