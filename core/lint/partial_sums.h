// Finds sums of a lane's or warp's own elements that lack a reduction
// (partial_sums.c).
#ifndef CUTE_PARTIAL_SUMS_H
#define CUTE_PARTIAL_SUMS_H

#include "ir/ir.h"

// A sum (or maximum) of elements that the threads share among themselves, which
// each thread combines with its own elements and stores.
typedef struct PartialSum {
  Ref at;           // the instruction that adds
  bool warps;       // whether only the sums of warps are not combined
  bool extreme;     // whether it is a maximum or minimum
} PartialSum;

// Calls `found` for each sum that lacks a reduction.
void partial_sums(Ctx *cx, const Fn *fn,
                  void (*found)(void *ud, const PartialSum *s), void *ud);

#endif
// SPDX-License-Identifier: MIT
