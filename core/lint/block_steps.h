// Finds loops whose iterations several blocks repeat (block_steps.c).
#ifndef CUTE_BLOCK_STEPS_H
#define CUTE_BLOCK_STEPS_H

#include "ir/ir.h"

typedef struct BlockStep {
  Ref loop;        // the FOR
  int64_t step;    // step of the loop
  // difference between the first values of the loop's counter in two adjacent
  // blocks
  int64_t first;
} BlockStep;

// Calls `found` for each loop whose iterations several blocks repeat.
void block_steps(Ctx *cx, const Fn *fn,
                 void (*found)(void *ud, const BlockStep *s), void *ud);

#endif
// SPDX-License-Identifier: MIT
