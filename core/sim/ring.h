// Stages of rings in shared memory (ring.c).
#ifndef CUTE_SIMRING_H
#define CUTE_SIMRING_H

#include "layout/layout.h"
#include "sim/machine.h"

// If the layout of m, an object in shared memory, has a mode for the stages of
// a ring, stores the number of stages in s->stages, and the bytes from one
// stage to the next in s->stage.
void simring_find(Ctx *cx, const Fn *fn, const Mem *m, SimMem *s);

#endif
// SPDX-License-Identifier: MIT
