// Finds maxima, minima, products and sums that start with a wrong value
// (zero_starts.c).
#ifndef CUTE_ZERO_STARTS_H
#define CUTE_ZERO_STARTS_H

#include "ir/ir.h"

typedef struct ZeroStart {
  // the operation (a maximum, minimum, product, sum or comparison), or the
  // instruction that stores its result
  Ref at;
  Op op;       // OP_MAX, OP_MIN, OP_MUL or OP_ADD
  double start;  // OP_ADD: the constant with which the sum starts
  bool masked; // whether a condition replaces some elements by 0
  // bit k: whether the operation combines elements of argument k; only for the
  // first 64 arguments
  uint64_t args;
  // registers that a maximum reads although nothing overwrites the infinity
  // with which they were filled, or NULL
  const Mem *kept;
} ZeroStart;

// Calls `found` for each operation that starts with a wrong value.
void zero_starts(Ctx *cx, const Fn *fn,
                 void (*found)(void *ud, const ZeroStart *z), void *ud);

#endif
// SPDX-License-Identifier: MIT
