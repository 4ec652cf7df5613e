// Integer overflow in addresses and comparisons (overflow.c).
#ifndef CUTE_WATCH_OVERFLOW_H
#define CUTE_WATCH_OVERFLOW_H

#include "sim/machine.h"

// maximum number of checked results for one instruction
enum { SIM_WRAPS = 8 };
// The results on which an instruction depends and that may overflow. `of` has
// their instructions in the IR. Decoding replaces these instructions by numbers
// from 0 on.
typedef struct SimWraps {
  int n;
  // for each result: index into Fn.mem of the object whose address depends on
  // it
  int32_t mem[SIM_WRAPS];
  uint32_t of[SIM_WRAPS];
} SimWraps;

// Finds and numbers the results that may overflow and on which p's instructions
// depend.
void overflow_find(Ctx *cx, SimProg *p);
// Reports whether r is a product (or, with `sums`, also a sum) that may exceed
// 32 bits.
bool overflow_possible(const Fn *fn, Ref r, bool sums);
// Checks the result of instruction i, which may overflow. The number of the
// result is i->jump - 1.
void overflow_note(SimWarp *w, const SimIns *i);
// Reports overflows in the addresses of access x by the lanes of mask. Returns
// the lanes whose overflow it reported.
uint32_t overflow_check(const Access *x, uint32_t mask);
// Reports overflows in values that instruction i compares, divides or shifts
// (i->wraps).
void overflow_compare(SimWarp *w, const SimIns *i);

#endif
// SPDX-License-Identifier: MIT
