// Finds unwritten elements of outputs (unwritten.c).
#ifndef CUTE_WATCH_UNWRITTEN_H
#define CUTE_WATCH_UNWRITTEN_H

#include "decode/areas.h"
#include "sim/hooks.h"

typedef struct SimLeft SimLeft;
// Called before the launch. Returns the outputs that must be checked after it.
SimLeft *unwritten_make(Ctx *cx, const SimProg *p);
// Returns the number of unwritten elements after the launch. Calls `found` for
// each output that has unwritten elements, unless `found` is NULL.
int64_t unwritten_find(const SimProg *p, const SimLeft *t, SimFound *found,
                       void *ud);

#endif
// SPDX-License-Identifier: MIT
