// Finds warpgroup MMAs whose sums no instruction reads before another MMA
// overwrites them (lost_sums.c).
#ifndef CUTE_LOST_SUMS_H
#define CUTE_LOST_SUMS_H

#include "ir/ir.h"

// Returns the first MMA after instruction `after` that does not accumulate and
// overwrites unread sums of an MMA, or 0 if there is none.
Ref lost_sums(const Fn *fn, Ref after);

#endif
// SPDX-License-Identifier: MIT
