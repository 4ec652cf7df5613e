// Finds outputs whose elements are not the sums or products that the shapes of
// the arguments suggest (wrong_sums.c).
#ifndef CUTE_WATCH_WRONG_SUMS_H
#define CUTE_WATCH_WRONG_SUMS_H

#include "decode/areas.h"
#include "sim/machine.h"

// Describes in *out the first wrong element among samples of an output.
void wrong_sums_find(Ctx *cx, SimProg *p, SimWrongSum *out);

#endif
// SPDX-License-Identifier: MIT
