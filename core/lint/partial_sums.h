// Finds sums over the elements of only one lane or warp that lack a reduction
// over all lanes or warps (partial_sums.c).
#ifndef CUTE_PARTIAL_SUMS_H
#define CUTE_PARTIAL_SUMS_H

#include "ir/ir.h"

// A partial sum (or maximum). Each thread adds only its part of the elements,
// combines this sum with its own elements, for example by a division, and
// stores the result.
typedef struct PartialSum {
  Ref at;           // the instruction that adds
  int lanes;        // number of lanes whose elements the sum contains
  bool warps;  // whether the sums of lanes are combined, but not those of warps
  bool extreme;     // a maximum or minimum, not a sum
} PartialSum;

// Calls `found` for each sum that lacks a reduction.
void partial_sums(Ctx *cx, const Fn *fn,
                  void (*found)(void *ud, const PartialSum *s), void *ud);

#endif
// SPDX-License-Identifier: MIT
