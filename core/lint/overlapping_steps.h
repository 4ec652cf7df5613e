// Finds loops whose step is smaller than their tile (overlapping_steps.c).
#ifndef CUTE_OVERLAPPING_STEPS_H
#define CUTE_OVERLAPPING_STEPS_H

#include "ir/ir.h"

typedef struct OverlappingStep {
  Ref loop;        // the FOR
  Ref at;          // a load that reads elements again
  // n: number of elements that an iteration loads from the argument. again:
  // number of these elements that the preceding iteration also loads.
  int64_t n, again;
  int64_t step;    // the loop's step
} OverlappingStep;

// Calls `found` for each loop whose step is smaller than its tile.
void overlapping_steps(Ctx *cx, const Fn *fn,
                       void (*found)(void *ud, const OverlappingStep *s),
                       void *ud);

#endif
// SPDX-License-Identifier: MIT
