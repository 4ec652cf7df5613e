// Finds results in registers that no instruction reads (unread_results.c).
#ifndef CUTE_UNREAD_RESULTS_H
#define CUTE_UNREAD_RESULTS_H

#include "ir/ir.h"

typedef struct UnreadResult {
  // the instruction whose result is unread: an MMA, a load of elements, or the
  // update of a variable
  Ref at;
  const Mem *mem;  // the registers, or NULL for a variable
  Ref var;         // the updated variable, or 0
  bool load;       // whether `at` loads elements that are overwritten unread
  // If `at` is an MMA: whether an instruction reads the sums of an earlier MMA
  // in the same registers. Only some of the results are then unread.
  bool some;
} UnreadResult;

// Calls `found` for each unread result, but only once for each script line.
void unread_results(Ctx *cx, const Fn *fn,
                    void (*found)(void *ud, const UnreadResult *u), void *ud);

#endif
// SPDX-License-Identifier: MIT
