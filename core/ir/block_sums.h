// Finds the store of a sum that depends on the index of the block only through
// the elements that the block loads (block_sums.c).
#ifndef CUTE_BLOCK_SUMS_H
#define CUTE_BLOCK_SUMS_H

#include "ir/ir.h"

// Returns the first such store to an element that depends on the block's index,
// or 0 if the function has none. Blocks that load the same elements store equal
// sums there.
Ref block_sums(Ctx *cx, const Fn *fn);

#endif
// SPDX-License-Identifier: MIT
