// Finds loops in which only the last iteration affects the result.
#ifndef CUTE_LOST_ITERATIONS_H
#define CUTE_LOST_ITERATIONS_H

#include "ir/ir.h"

// Finds the first such loop after instruction `after`. Returns the instruction
// that overwrites, in each iteration, what the preceding iteration computed
// from its loads. Returns 0 if there is no such loop.
Ref lost_iterations(Ctx *cx, const Fn *fn, Ref after);

#endif
// SPDX-License-Identifier: MIT
