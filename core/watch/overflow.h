// Integer overflow in addresses and comparisons (overflow.c).
#ifndef CUTE_WATCH_OVERFLOW_H
#define CUTE_WATCH_OVERFLOW_H

#include "sim/machine.h"

// maximum number of results for one instruction that are checked for overflow
enum { SIM_WRAPS = 8 };
// The results that may overflow and on which an instruction depends. of[k] is
// the IR instruction of result k. After decoding, of[k] is the number of the
// result, counted from 0.
typedef struct SimWraps {
  int n;
  // for each result: index in Fn.mem of the object whose address is computed
  // from the result
  int32_t mem[SIM_WRAPS];
  uint32_t of[SIM_WRAPS];
} SimWraps;

// Finds the results that may overflow and on which p's instructions depend, and
// numbers them.
void overflow_find(Ctx *cx, SimProg *p);
// Reports whether r is a product that may exceed 32 bits. With `sums`, reports
// the same for sums, too.
bool overflow_possible(const Fn *fn, Ref r, bool sums);
// Checks the result of instruction i for overflow. The number of the result is
// i->jump - 1.
void overflow_note(SimWarp *w, const SimIns *i);
// Reports overflows in the addresses of access x by the lanes of mask. Returns
// the lanes whose overflow was reported.
uint32_t overflow_check(const Access *x, uint32_t mask);
// Reports overflows in values (i->wraps) that instruction i compares, divides
// or shifts.
void overflow_compare(SimWarp *w, const SimIns *i);

#endif
// SPDX-License-Identifier: MIT
