// Integer overflow in addresses and comparisons (wrap.c).
#ifndef CUTE_SIMWRAP_H
#define CUTE_SIMWRAP_H

#include "sim/inside.h"

enum { SIM_WRAPS = 8 };      // per instruction
// Results on which an access depends. They are instructions of the IR, and
// after decoding, numbers from 0 on.
typedef struct SimWraps {
  int n;
  int32_t mem[SIM_WRAPS];    // object that each result addresses (index into
                             // Fn.mem)
  uint32_t of[SIM_WRAPS];
} SimWraps;
struct Access;

// Finds and numbers the results of p's instructions that may overflow.
void simwrap_find(Ctx *cx, SimProg *p);
// Checks one of these results when it is computed. i->jump is its number + 1.
void simwrap_note(SimWarp *w, const SimIns *i);
// Checks the addresses of x in the lanes of mask. Returns the lanes that it
// reported.
uint32_t simwrap_check(const struct Access *x, uint32_t mask);
// Checks i, which compares, divides or shifts values that depend on i->wraps.
void simwrap_compare(SimWarp *w, const SimIns *i);

#endif
// SPDX-License-Identifier: MIT
