// Finds loops in which only the last iteration affects the result.
#ifndef CUTE_LOST_ITERATIONS_H
#define CUTE_LOST_ITERATIONS_H

#include "ir/ir.h"

// Searches after instruction `after` for the first loop in which only the last
// iteration affects the result. Returns the loop's instruction that overwrites
// the result of the preceding iteration, which was computed from loaded
// elements. Returns 0 if there is no such loop.
Ref lost_iterations(Ctx *cx, const Fn *fn, Ref after);

#endif
// SPDX-License-Identifier: MIT
