// Finds unwritten elements of outputs (left.c).
#ifndef CUTE_SIMLEFT_H
#define CUTE_SIMLEFT_H

#include "sim/areas.h"
#include "sim/hooks.h"

typedef struct SimLeft SimLeft;
// Returns the outputs that must be checked after the launch. It is called
// before the launch.
SimLeft *simleft_make(Ctx *cx, const SimProg *p);
// Returns the number of unwritten elements after the launch. Calls `found` for
// each output that has unwritten elements, unless `found` is NULL.
int64_t simleft_find(const SimProg *p, const SimLeft *t, SimFound *found,
                     void *ud);

#endif
// SPDX-License-Identifier: MIT
