// Finds two kinds of sums of loaded elements: sums for which the block's index
// only selects the elements, and sums that atomics add to arguments
// (block_sums.c).
#ifndef CUTE_BLOCK_SUMS_H
#define CUTE_BLOCK_SUMS_H

#include "ir/ir.h"

// Returns the first store of a sum for which the block's index only selects the
// loaded elements. The index of the stored element must also depend on the
// block. Returns 0 if there is none. Blocks that load the same elements store
// equal sums.
Ref block_sums(Ctx *cx, const Fn *fn);
// Calls `found` once for each pointer argument to which an atomic adds loaded
// elements. Atomics whose results the kernel uses do not count.
void block_sums_added(Ctx *cx, const Fn *fn,
                      void (*found)(void *ud, int32_t arg), void *ud);

#endif
// SPDX-License-Identifier: MIT
