// Stages of rings in shared memory (ring.c).
#ifndef CUTE_SIMRING_H
#define CUTE_SIMRING_H

#include "layout/layout.h"
#include "sim/shadow.h"

// Sets s->stages and s->stage from the layout of m, an object in shared memory.
void simring_find(Ctx *cx, const Fn *fn, const Mem *m, SimMem *s);
// Says in f, a race of two warp roles about granule g, whether x came after a
// wait for another stage. For a write after a read, u is the warp that read at
// epoch clk: says whether u had released the stage before.
void simring_stray(SimFault *f, const Access *x, uint32_t g, const SimWarp *u,
                   uint32_t clk);
// Fills in what the other stages hold at the place of a read by lane l of
// granule g, which nothing wrote or an operation in flight writes.
void simring_look(SimFault *f, const Access *x, int l, uint32_t g);

#endif
// SPDX-License-Identifier: MIT
