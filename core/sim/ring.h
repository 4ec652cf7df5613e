// Stages of rings in shared memory (ring.c).
#ifndef CUTE_SIMRING_H
#define CUTE_SIMRING_H

#include "layout/layout.h"
#include "sim/machine.h"

// Sets s->stages and s->stage from the layout of m, an object in shared memory.
void simring_find(Ctx *cx, const Fn *fn, const Mem *m, SimMem *s);

#endif
// SPDX-License-Identifier: MIT
