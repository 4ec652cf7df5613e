// Stages of rings in shared memory (ring.c).
#ifndef CUTE_DECODE_RING_H
#define CUTE_DECODE_RING_H

#include "decode/prog.h"
#include "layout/layout.h"

// If m, an object in shared memory, is a ring of stages according to its
// layout, sets s->stages to their number, and s->stage to the bytes from one
// stage to the next.
void ring_find(Ctx *cx, const Fn *fn, const Mem *m, SimMem *s);

#endif
// SPDX-License-Identifier: MIT
