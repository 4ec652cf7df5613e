// Finds sums to which several lanes, warps or blocks add the same value, and
// elements to which several of them store different values (repeated_sums.c).
#ifndef CUTE_REPEATED_SUMS_H
#define CUTE_REPEATED_SUMS_H

#include "ir/ir.h"

// Mask of the threads in which a value is the same. Bit k of SAME_LANES: lanes
// whose indices differ only in bit k. SAME_WARPS: all warps of a block.
// SAME_BLOCKS: all blocks.
enum { SAME_LANES = 31, SAME_WARPS = 32, SAME_BLOCKS = 64 };

// A mistake.
// - at: an atomic addition whose result is unused, the sum of a value and its
//   shuffle, the sum of elements of a shared tensor, or the store of a sum.
// - same: mask SAME_* of the threads that add or store the same value.
// - apart: these threads store different values, but to the same element.
// - mem: the shared tensor whose equal elements `at` adds, or NULL.
typedef struct RepeatedSum {
  Ref at;
  uint8_t same;
  bool apart;
  const Mem *mem;
} RepeatedSum;

// Calls `found` for each mistake.
void repeated_sums(Ctx *cx, const Fn *fn,
                   void (*found)(void *ud, const RepeatedSum *s), void *ud);

// Returns the mask of SAME_* for each value, or NULL if the masks are unknown.
const uint8_t *same_values(Ctx *cx, const Fn *fn);

#endif
// SPDX-License-Identifier: MIT
