// Unwritten outputs and elements of outputs (left.c).
#ifndef CUTE_SIMLEFT_H
#define CUTE_SIMLEFT_H

#include "sim/blocks.h"

typedef struct SimLeft SimLeft;
// Collects the outputs to check after the launch, before it starts.
SimLeft *simleft_make(Ctx *cx, const SimProg *p);
// Returns the number of unwritten elements after the launch, and adds reports
// to found unless it is NULL.
int64_t simleft_find(const SimProg *p, const SimLeft *t, Found found, void *ud);
// Finds a grid that is too small, as far as its stores show that.
SimShort simleft_short(Ctx *cx, const SimProg *p);

#endif
// SPDX-License-Identifier: MIT
