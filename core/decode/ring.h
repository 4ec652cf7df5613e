// Stages of rings in shared memory (ring.c).
#ifndef CUTE_DECODE_RING_H
#define CUTE_DECODE_RING_H

#include "decode/prog.h"
#include "layout/layout.h"

// If the layout of m, an object in shared memory, has a mode for the stages of
// a ring, stores the number of stages in s->stages, and the bytes from one
// stage to the next in s->stage.
void ring_find(Ctx *cx, const Fn *fn, const Mem *m, SimMem *s);

#endif
// SPDX-License-Identifier: MIT
