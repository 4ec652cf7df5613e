// Derivatives of traced values.
#ifndef CUTE_DERIVATIVE_H
#define CUTE_DERIVATIVE_H

#include "ir/ir.h"

// Returns the derivative of y with respect to x, both floats; emits the
// instructions that compute it. Values that do not depend on x through floats
// (memory, integers, conditions) count as constants. At a kink of min, max, abs
// and sel it is the derivative of the side that the value takes. Returns 0 if
// there is none, and sets *op to the operation, by name, that has no derivative
// here.
Ref ir_derivative(Ctx *cx, Fn *fn, Ref y, Ref x, const char **op);

// Writes the loads of single elements of memory object mem on which y depends
// through values to out, in an order that only y's expression determines.
// Returns their number; out has room for `most`.
uint32_t ir_loads(Ctx *cx, Fn *fn, Ref y, Ref mem, Ref *out, uint32_t most);

#endif
// SPDX-License-Identifier: MIT
