// Finds sums that a kernel overwrites before an instruction reads them
// (lost_sums.c).
#ifndef CUTE_LOST_SUMS_H
#define CUTE_LOST_SUMS_H

#include "ir/ir.h"

// Returns the first instruction after `after` that overwrites sums that nothing
// has read: an MMA that does not accumulate, or a reset in a loop. Returns 0 if
// there is none.
Ref lost_sums(Ctx *cx, const Fn *fn, Ref after);

#endif
// SPDX-License-Identifier: MIT
