// Derivatives of traced values.
#ifndef CUTE_DERIVATIVE_H
#define CUTE_DERIVATIVE_H

#include "ir/ir.h"

// Emits the instructions that compute the derivative of y with respect to x,
// and returns the derivative. x and y are floats. Dependences through memory,
// integers and conditions are ignored, as if these were constants. For min,
// max, abs and sel, the result is the derivative of the selected operand. If an
// operation between x and y has no derivative here, returns 0 and sets *op to
// its name. If the longest chain of operations from x to y has more than
// IR_LONGEST_CHAIN, returns 0 and sets *op to NULL.
enum { IR_LONGEST_CHAIN = 4096 };
Ref ir_derivative(Ctx *cx, Fn *fn, Ref y, Ref x, const char **op);

// Finds the loads (OP_LD) of memory object mem on which the value y depends,
// and writes them to `out`. Loads that y needs only for addresses do not count.
// The order of the loads depends only on the expression of y. Returns the
// number of these loads. `out` has room for `most` loads.
uint32_t ir_loads(Ctx *cx, Fn *fn, Ref y, Ref mem, Ref *out, uint32_t most);

#endif
// SPDX-License-Identifier: MIT
