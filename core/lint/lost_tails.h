// Finds loops over whole tiles that omit the rest of a row (lost_tails.c).
#ifndef CUTE_LOST_TAILS_H
#define CUTE_LOST_TAILS_H

#include "ir/ir.h"

// A load in a loop that reads the first `n` of `extent` elements of each row of
// argument `mem`, although the kernel reads the other elements elsewhere.
typedef struct LostTail {
  Ref at;
  const Mem *mem;
  int64_t n, extent;
} LostTail;

// Calls `found` for each such load.
void lost_tails(Ctx *cx, const Fn *fn,
                void (*found)(void *ud, const LostTail *t), void *ud);

#endif
// SPDX-License-Identifier: MIT
