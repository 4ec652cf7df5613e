// Finds sums of exponentials that are not rescaled when their maximum changes
// (unscaled_sums.c).
#ifndef CUTE_UNSCALED_SUMS_H
#define CUTE_UNSCALED_SUMS_H

#include "ir/ir.h"

// UNSCALED: an instruction adds exponentials to a sum, although the loop
// changes the maximum in the exponents and does not rescale the sum. MERGED: an
// instruction adds such sums of several lanes, each of which has a maximum of
// its own. GROWING: an MMA adds to sums in a loop that never clears them,
// although each iteration computes exponentials of them.
typedef enum UnscaledKind {
  SUM_UNSCALED, SUM_MERGED, SUM_GROWING
} UnscaledKind;
typedef struct UnscaledSum {
  UnscaledKind kind;
  Ref at;           // the instruction that adds
} UnscaledSum;

// Calls `found` for each instruction with one of these mistakes.
void unscaled_sums(Ctx *cx, const Fn *fn,
                   void (*found)(void *ud, const UnscaledSum *u), void *ud);

#endif
// SPDX-License-Identifier: MIT
