// Evaluates scalar operations on raw bits.
#ifndef CUTE_EVAL_H
#define CUTE_EVAL_H

#include "ir/ir.h"

// Evaluates a SCALAR of ops.h with operands of type t; integers may be
// sign-extended. Division by zero returns the hardware's result.
uint64_t eval_scalar(Op op, DType t, uint64_t a, uint64_t b, uint64_t c);
// Returns an integer of type t as int64_t, sign- or zero-extended.
int64_t eval_widen(DType t, uint64_t u);
// Evaluates an f32 function of MATHS (rows.h) that the hardware approximates.
uint32_t eval_approx(MathFn f, uint32_t x, uint32_t y);
uint64_t eval_narrow(DType t, uint64_t u);  // truncates to t's bits
uint64_t eval_quiet(uint64_t u);  // makes an f64 NaN quiet
// Returns old + v as reductions in global memory compute it. A NaN of f64 is
// returned unchanged, v's before old's. `ftz` flushes subnormal operands and
// results of f32.
uint64_t eval_reduce(DType t, uint64_t old, uint64_t v, bool ftz);

#endif
// SPDX-License-Identifier: MIT
