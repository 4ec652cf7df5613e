// Finds results in registers that no instruction reads (unread_results.c).
#ifndef CUTE_UNREAD_RESULTS_H
#define CUTE_UNREAD_RESULTS_H

#include "ir/ir.h"

typedef struct UnreadResult {
  Ref at;          // an MMA, or an instruction that loads elements
  const Mem *mem;  // the registers
  bool load;       // whether `at` loads elements that are overwritten unread
  bool some;       // for an MMA: whether earlier sums in its registers are read
} UnreadResult;

// Calls `found` for each unread result, once for each line.
void unread_results(Ctx *cx, const Fn *fn,
                    void (*found)(void *ud, const UnreadResult *u), void *ud);

#endif
// SPDX-License-Identifier: MIT
