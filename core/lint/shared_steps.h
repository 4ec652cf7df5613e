// Finds steps of scans and reductions in shared memory that lack elements
// (shared_steps.c).
#ifndef CUTE_SHARED_STEPS_H
#define CUTE_SHARED_STEPS_H

#include "ir/ir.h"

// A wrong step. If `lost` is set, a thread replaces its own element by another
// element instead of adding both. Otherwise, the step's condition omits element
// 0.
typedef struct SharedStep {
  Ref at;
  const Mem *mem;
  bool lost;
} SharedStep;

// Calls `found` for each wrong step.
void shared_steps(Ctx *cx, const Fn *fn,
                  void (*found)(void *ud, const SharedStep *s), void *ud);

#endif
// SPDX-License-Identifier: MIT
